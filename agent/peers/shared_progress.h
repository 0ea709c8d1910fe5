// SPDX-License-Identifier: Apache-2.0
// What muster-peer and muster-agent report to each other, without a call: a file that both map.
//
//   SharedProgress, then one mark a piece:  lacking → have                     the engine: its hash
//   was right and its bytes are in the store file
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

inline constexpr char kProgressMagic[8] = {'m', 'p', 'e', 'e', 'r', '/', '1', '\0'};
inline constexpr const char* kProgressFile = "progress";  ///< in the swarm's folder
inline constexpr const char* kStoreFile = "pack";         ///< sparse, as long as the pack

struct SharedProgress {
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

inline constexpr std::size_t progressBytes(std::uint32_t pieces) {
  return sizeof(SharedProgress) + pieces;
}
inline PieceMark* marksOf(SharedProgress* progress) {
  return reinterpret_cast<PieceMark*>(progress + 1);
}
inline const PieceMark* marksOf(const SharedProgress* progress) {
  return reinterpret_cast<const PieceMark*>(progress + 1);
}

}  // namespace muster::agent
