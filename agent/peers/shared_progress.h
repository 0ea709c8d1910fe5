// SPDX-License-Identifier: Apache-2.0
// What muster-peer and muster-agent tell each other, without a call: a file that both map.
//
//   Board, then one mark a piece:  lacking → have                     the engine: its hash was
//   right and its bytes are in the store file
//                                  lacking → offered → taken → have   the agent has fetched it from
//                                  a server and put it into the store file
//
// The two programs are built with different versions of Boost (docs/adr/0027), so this header needs
// the standard library only.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

namespace muster::agent {

inline constexpr char kBoardMagic[8] = {'m', 'p', 'e', 'e', 'r', '/', '1', '\0'};
inline constexpr const char* kBoardFile = "board";  ///< in the swarm's folder
inline constexpr const char* kStoreFile = "pack";   ///< sparse, as long as the pack

struct Board {
  char magic[8];
  std::uint32_t piece_bytes, pieces;
  std::atomic<std::uint32_t> have;                  ///< pieces that are there
  std::atomic<std::uint32_t> connected;             ///< peers, without web seeds
  std::atomic<std::uint32_t> wrong_pieces;          ///< arrived whole, but with another hash
  std::atomic<std::uint32_t> banned;                ///< peers that nobody here talks to any more
  std::atomic<std::uint64_t> from_peers, uploaded;  ///< bytes of content
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

using PieceMark = std::atomic<unsigned char>;
inline constexpr unsigned char kLacking = 0, kHave = 1, kOffered = 2, kTaken = 3;
static_assert(sizeof(PieceMark) == 1 && PieceMark::is_always_lock_free);

inline constexpr std::size_t boardBytes(std::uint32_t pieces) { return sizeof(Board) + pieces; }
inline PieceMark* marksOf(Board* board) { return reinterpret_cast<PieceMark*>(board + 1); }
inline const PieceMark* marksOf(const Board* board) {
  return reinterpret_cast<const PieceMark*>(board + 1);
}

}  // namespace muster::agent
