// The .torrent of a pack (BEP 3): follows from the pack alone, so every controller makes the same one at any time.
//
// It names no tracker and no server: those differ by node and come with its task. One file, "pack"; private, so that a client of other
// make looks for no peers elsewhere.
#pragma once

#include "base/result.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::provision {

inline constexpr std::uint32_t kLeastPieceBytes = 256u << 10, kMostPieceBytes = 4u << 20;
/// Small pieces are exchanged sooner, many pieces cost more to speak of.
std::uint32_t pieceBytesFor(std::uint64_t pack_bytes);

struct Metainfo {
  std::string bytes;      ///< the file
  std::string sha256;     ///< of the file, hex
  std::string info_hash;  ///< 20 bytes; names the swarm
  std::uint64_t pack_bytes = 0;
  std::uint32_t piece_bytes = 0, pieces = 0;
};

/// Blocking: hashes the whole pack. Errors: NotFound, Internal (cannot be read), Unavailable (`stop` was set)
Result<Metainfo> makeMetainfo(const std::filesystem::path& pack, const std::atomic<bool>& stop);
/// What makeMetainfo has made. Errors: Corrupt
Result<Metainfo> readMetainfo(std::string bytes);
/// Reads `file`, or makes it of the pack and keeps it there. Blocking. Errors: of makeMetainfo
Result<Metainfo> keptMetainfo(const std::filesystem::path& file, const std::filesystem::path& pack, const std::atomic<bool>& stop);

}  // namespace muster::provision
