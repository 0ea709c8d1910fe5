// SPDX-License-Identifier: Apache-2.0
// The .torrent of a pack (BEP 3), as muster's controllers make it and its agents take it: one
// writer, one reader.
//
// It names no tracker and no server: those differ by node and come with its task. One file, "pack";
// private, so that a client of other make looks for no peers elsewhere.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::wire {

inline constexpr std::uint32_t kLeastPieceBytes = 256u << 10, kMostPieceBytes = 4u << 20;
inline constexpr std::size_t kPieceHashBytes = 20;  ///< SHA-1
/// Small pieces are exchanged sooner, many pieces cost more to speak of.
std::uint32_t pieceBytesFor(std::uint64_t pack_bytes);

struct Metainfo {
  std::string bytes;      ///< the file
  std::string sha256;     ///< of the file, hex
  std::string info_hash;  ///< 20 bytes; names the swarm
  std::uint64_t pack_bytes = 0;
  std::uint32_t piece_bytes = 0, pieces = 0;
  std::size_t hashes_at = 0;  ///< of the first piece's, in `bytes`

  /// kPieceHashBytes a piece.
  std::string_view hashes() const {
    return std::string_view(bytes).substr(hashes_at, pieces * kPieceHashBytes);
  }
};

/// `hashes`: of pieces of pieceBytesFor(pack_bytes)
std::string writeMetainfo(std::uint64_t pack_bytes, std::string_view hashes);
/// What writeMetainfo has made. Errors: Corrupt
Result<Metainfo> readMetainfo(std::string bytes);

}  // namespace muster::wire
