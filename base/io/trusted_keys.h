// SPDX-License-Identifier: Apache-2.0
// Public keys of which each counts. A key that signs may be followed, in the same PEM text, by keys
// that signed before it: while a key is rotated both verify and only the first one signs.
// io::verify, and whoever takes a public key as PEM, takes such a text too.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::io {

/// A key and its successors, while a rotation is under way; what follows in a text is not looked
/// at.
inline constexpr std::size_t kMaxTrustedKeys = 4;

/// The PEM blocks of a text, in order, each with its line end; a text without one is answered as it
/// is.
std::vector<std::string> publicPems(std::string_view text);

/// The public keys of a file that a person has brought here: line ends of Windows and a missing
/// last one are no other key. Errors: InvalidInput (it holds no public key), those of
/// readRegularFile
Result<std::string> readPublicKeys(const std::filesystem::path& file);

/// The first PEM block of a text, of whatever kind, without what stands around it; empty: there is
/// none.
std::string_view firstPemBlock(std::string_view text);

/// SigningKey::id() of each of them: the first one signs.
std::vector<std::string> publicKeyIds(std::string_view text);

/// The block of the key with this id, or nothing: a signature that names its key is compared with
/// that key alone.
std::optional<std::string> trustedPemOf(std::string_view text, std::string_view key_id);

}  // namespace muster::io
