// SPDX-License-Identifier: Apache-2.0
// Brings the chunks of a pack onto a target: fetch → decompress → verify → write, several at a
// time, each checked before it is written, with a fixed amount of data in memory.
#pragma once

#include "agent/imaging/block_target.h"
#include "agent/imaging/image_mirrors.h"
#include "base/async/task.h"
#include "base/clock.h"
#include "base/io/http.h"
#include "wire/pack_index.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::agent {

inline constexpr int kLanes = 4;  ///< connections; some fetch while others unpack and write
inline constexpr std::uint64_t kGroupBytes = 2u << 20;  ///< compressed bytes of one request
inline constexpr std::uint64_t kRunBytes =
    2u << 20;  ///< chunks that follow each other are written in one go
inline constexpr int kCorruptRetries =
    3;  ///< of one chunk; the network may be at fault, the pack may be

struct ChunkJob {
  wire::PackIndex index;
  std::string pack_url;
  std::vector<std::string> mirror_urls;  ///< of the same pack; all are asked at once
  BlockTarget& target;
  bool keep_matching_chunks =
      false;  ///< look at the disk first: an earlier write may have left chunks that are right
  std::chrono::seconds deadline{600};
  std::chrono::milliseconds first_backoff{500}, max_backoff{10000};
  std::function<std::unique_ptr<io::HttpClient>()> make_http;
  Workers& workers;
  Clock& clock;
  std::function<void(double fraction, const std::string& text)>
      progress;  ///< fraction of raw bytes that are right on the target
  std::function<void(const wire::PackIndex& index, const std::vector<char>& right)> scanned =
      {};  ///< by chunk, before anything is fetched: what need not be
};

struct ChunkReport {
  std::uint64_t bytes_written = 0, bytes_skipped = 0;  ///< raw; zero ranges count as written
  std::uint64_t bytes_fetched = 0;                     ///< compressed
  std::uint64_t peak_buffer_bytes = 0;
  int retries = 0;
  std::vector<ImageMirrors::Dropped>
      dropped_mirrors;  ///< with corrupt bytes, or that did not answer while others did
};

/// The most image data that is in memory at one time, bytes.
std::uint64_t windowBytes(const wire::PackIndex& index);

/// Errors: Corrupt (a chunk is wrong again and again), NotFound (the server does not have the
/// pack), Timeout (deadline; the last
///         fault is quoted), InvalidInput (target too small, server without ranges), Internal
///         (disk)
Async<ChunkReport> writeChunks(ChunkJob job);

/// writeChunks, flush, read back.
Async<ChunkReport> writeAndVerify(ChunkJob job);

}  // namespace muster::agent
