// SPDX-License-Identifier: Apache-2.0
// One kept image: the folder images/KEY of the cache (image_cache.h) and what can be asked of it.
//
//   content.json         the canonical index; its SHA-256 is the image's digest
//   pack                 the chunks
//   index-SIGNER.json    the index as this controller, or another one, signed it
//   signer-SIGNER.pem    the public key of another site whose signature travelled with the image
#pragma once

#include "base/io/crypto.h"
#include "base/result.h"
#include "wire/pack_index.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace muster::provision {

struct PackedImage;

inline constexpr const char* kContentFile = "content.json";
inline constexpr const char* kPackFile = "pack";

bool isDigest(std::string_view text);

std::filesystem::path signedIndexOf(const std::filesystem::path& entry,
                                    const std::string& signer_id);
std::filesystem::path signerKeyOf(const std::filesystem::path& entry, const std::string& signer_id);
/// As SigningKey::id(), for a key of which only the public half is known.
std::string signerId(const std::string& public_pem);

/// The image of a cache folder, with an index signed by `key`; it is signed when this is its first
/// time here. Errors: Corrupt (content, size of the pack), Denied (an index that somebody else
/// signed)
Result<PackedImage> openEntry(const std::filesystem::path& entry, const io::SigningKey& key);

/// Reads content.json without asking who signed it. Errors: Corrupt
Result<wire::PackIndex> contentOf(const std::filesystem::path& entry);

/// When the image was made, in seconds since 1970; it travels with an export.
std::int64_t madeAt(const std::filesystem::path& entry);
void setMadeAt(const std::filesystem::path& entry, std::int64_t seconds);

/// The pack against content.json, which every controller signs for itself. Errors: Corrupt
Result<void> checkPack(const std::filesystem::path& entry);

/// Checks the pack, throws away what is there of a signature by `key` and signs anew.
Result<PackedImage> signAgain(const std::filesystem::path& entry, const io::SigningKey& key);

/// Every chunk unpacked and compared, every signature. Empty when all is well; else one sentence a
/// fault.
std::vector<std::string> faultsOf(const std::filesystem::path& entry, const io::SigningKey& key,
                                  unsigned threads);

/// Whole entries below CACHE/images, in the order of their keys. What is being built is none.
std::vector<std::filesystem::path> listEntries(const std::filesystem::path& cache);

}  // namespace muster::provision
