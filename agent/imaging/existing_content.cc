// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/existing_content.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace muster::agent {

namespace {

constexpr std::size_t kReportedChunks = 512;  ///< between two words of progress

}  // namespace

std::uint64_t readersFor(const wire::PackIndex& index) {
  return std::clamp<std::uint64_t>(kScanWindowBytes / index.chunk_bytes, 1, kReaders);
}

bool chunkMatches(const wire::PackIndex& index, std::size_t chunk, std::string_view raw) {
  if (index.chunks[chunk].zero) return wire::allZero(raw);
  return !wire::allZero(raw) && io::sha256Hex(raw) == index.chunks[chunk].sha256;
}

Result<void> scanContent(const wire::PackIndex& index, BlockTarget& target,
                         const std::function<void(std::size_t chunk, std::string_view raw)>& right,
                         const std::function<void(std::size_t chunks)>& scanned) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::optional<Error> error;
  std::size_t unreadable = 0;
  const auto read = [&] {
    AlignedBuffer raw(index.chunk_bytes);
    for (std::size_t i = next++; i < index.chunks.size(); i = next++) {
      raw.resize(index.rawBytes(i));
      if (auto done = target.read(i * index.chunk_bytes, raw.span()); !done) {
        const std::lock_guard guard(mutex);
        if (++unreadable <= kMaxUnreadableChunks) continue;
        if (!error) error = std::move(done).error();
        next = index.chunks.size();
        return;
      }
      if (chunkMatches(index, i, raw.view())) right(i, raw.view());
      if (i % kReportedChunks == kReportedChunks - 1) scanned(i + 1);
    }
  };
  {
    std::vector<std::jthread> readers;
    for (std::uint64_t i = 1; i < readersFor(index); ++i) readers.emplace_back(read);
    read();
  }
  if (error) return fail(std::move(*error));
  return {};
}

}  // namespace muster::agent
