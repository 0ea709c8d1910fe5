// SPDX-License-Identifier: Apache-2.0
// Compares what was written with what the disk gives back.
//
// A chunk's own digest was checked before it was written; this finds disks that lose, swap or bend
// what they acknowledged, so a fast checksum is enough. Where reads come from the medium
// (O_DIRECT), threads of its own read chunks back while later ones are on their way,
// kReadBackLagBytes behind the writing; after the last flush the first block of every
// kSampledChunks-th is read once more, because a disk that is smaller than it says lays later
// chunks over earlier ones. Elsewhere all is read after the flush.
#pragma once

#include "agent/imaging/block_target.h"
#include "wire/pack_index.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace muster::agent {

inline constexpr std::uint64_t kReadBackLagBytes = 64u << 20;
inline constexpr std::uint64_t kFirstBlockBytes = 4096;
inline constexpr std::size_t kSampledChunks = 16;
inline constexpr std::size_t kReadBackThreads = 4;  ///< beside the writing
inline constexpr std::uint64_t kLastReaders = 16;   ///< after it

class ReadBack {
 public:
  /// Both are borrowed.
  ReadBack(const wire::PackIndex& index, BlockTarget& target);
  ~ReadBack();

  /// `sum`: quickSum of the raw chunk, which was written. Thread-safe, as are all below.
  void remember(std::size_t chunk, std::string_view raw, std::uint64_t sum);
  void rememberZero(std::size_t chunk) { chunks_[chunk].wanted = true; }
  /// What was found so far. Errors: Corrupt naming the byte range, the disk's
  Result<void> soFar();
  /// Blocking, once, after a flush: reads what is left. Errors: as soFar
  Result<void> finish();

 private:
  struct Chunk {
    std::uint64_t sum = 0, first_block = 0;
    bool wanted = false;  ///< not set for chunks that were read from the medium and found right
    bool read = false;    ///< whole, by the threads
  };
  void follow();
  void readRest();
  void found(Result<void> result);
  /// Errors: Corrupt
  Result<void> check(std::size_t chunk, AlignedBuffer& buffer, bool first_block_only);

  const wire::PackIndex& index_;
  BlockTarget& target_;
  std::vector<Chunk> chunks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::size_t> behind_;  ///< written and not read back, oldest first
  bool written_ = false;            ///< nothing more comes
  std::optional<Error> error_;
  std::vector<std::jthread> threads_;
};

}  // namespace muster::agent
