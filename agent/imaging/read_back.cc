// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/read_back.h"

#include "wire/task_reason.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace muster::agent {

ReadBack::ReadBack(const wire::PackIndex& index, BlockTarget& target)
    : index_(index), target_(target), chunks_(index.chunks.size()) {
  if (!target_.readsMedium()) return;
  for (std::size_t i = 0; i < kReadBackThreads; ++i) threads_.emplace_back([this] { follow(); });
}

ReadBack::~ReadBack() {
  const std::lock_guard guard(mutex_);
  written_ = true;
  behind_.clear();
  changed_.notify_all();
}

void ReadBack::remember(std::size_t chunk, std::string_view raw, std::uint64_t sum) {
  chunks_[chunk] = {sum, wire::quickSum(raw.substr(0, kFirstBlockBytes)), true, false};
  if (threads_.empty()) return;
  const std::lock_guard guard(mutex_);
  behind_.push_back(chunk);
  changed_.notify_one();
}

Result<void> ReadBack::soFar() {
  const std::lock_guard guard(mutex_);
  if (error_) return fail(*error_);
  return {};
}

void ReadBack::found(Result<void> result) {
  if (result) return;
  const std::lock_guard guard(mutex_);
  if (!error_) error_ = std::move(result).error();
}

/// A thread's life.
void ReadBack::follow() {
  AlignedBuffer buffer(index_.chunk_bytes);
  for (;;) {
    std::size_t chunk = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] {
        return written_ || behind_.size() * index_.chunk_bytes > kReadBackLagBytes;
      });
      if (behind_.empty() || error_) return;
      chunk = behind_.front();
      behind_.pop_front();
    }
    auto result = check(chunk, buffer, false);
    chunks_[chunk].read = result.has_value();
    found(std::move(result));
  }
}

Result<void> ReadBack::finish() {
  {
    const std::lock_guard guard(mutex_);
    written_ = true;
    changed_.notify_all();
  }
  threads_.clear();
  TRY_OK(soFar());
  readRest();
  return soFar();
}

void ReadBack::readRest() {
  std::atomic<std::size_t> next = 0;
  const auto read = [this, &next] {
    AlignedBuffer buffer(index_.chunk_bytes);
    for (std::size_t i = next++; i < chunks_.size() && soFar(); i = next++)
      if (chunks_[i].wanted && (!chunks_[i].read || i % kSampledChunks == 0))
        found(check(i, buffer, chunks_[i].read));
  };
  std::vector<std::jthread> readers;
  for (std::uint64_t i = 1;
       i < std::clamp<std::uint64_t>((kLastReaders << 20) / index_.chunk_bytes, 1, kLastReaders);
       ++i)
    readers.emplace_back(read);
  read();
}

Result<void> ReadBack::check(std::size_t chunk, AlignedBuffer& buffer, bool first_block_only) {
  const std::uint64_t offset = chunk * index_.chunk_bytes, size = index_.rawBytes(chunk);
  buffer.resize(first_block_only ? std::min(size, kFirstBlockBytes) : size);
  TRY_OK(target_.read(offset, buffer.span()));
  const Chunk& expected = chunks_[chunk];
  const bool right = index_.chunks[chunk].zero
                         ? wire::allZero(buffer.view())
                         : wire::quickSum(buffer.view()) ==
                               (first_block_only ? expected.first_block : expected.sum);
  if (right) return {};
  return fail(
      Error(ErrorCode::Corrupt,
            fmt::format("{} does not hold what was written to it (bytes {} to {} of the image "
                        "differ when read back): replace the disk",
                        target_.name(), offset, offset + size))
          .because(wire::TaskReason::DiskFailing));
}

}  // namespace muster::agent
