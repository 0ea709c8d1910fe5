// SPDX-License-Identifier: Apache-2.0
// The .torrent of a pack: follows from the pack alone, so every controller makes the same one at
// any time.
#pragma once

#include "wire/metainfo.h"

#include <atomic>
#include <filesystem>

namespace muster::provision {

using wire::kLeastPieceBytes, wire::kMostPieceBytes, wire::Metainfo, wire::pieceBytesFor,
    wire::readMetainfo;

/// Blocking: hashes the whole pack. Errors: NotFound, Internal (cannot be read), Unavailable
/// (`stop` was set)
Result<Metainfo> makeMetainfo(const std::filesystem::path& pack, const std::atomic<bool>& stop);
/// Reads `file`, or makes it of the pack and keeps it there. Blocking. Errors: of makeMetainfo
Result<Metainfo> keptMetainfo(const std::filesystem::path& file, const std::filesystem::path& pack,
                              const std::atomic<bool>& stop);

}  // namespace muster::provision
