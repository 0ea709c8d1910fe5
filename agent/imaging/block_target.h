// SPDX-License-Identifier: Apache-2.0
// Seam: what the writer writes to. A block device, or a file in tests.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace muster::agent {

/// Memory that a device can take and fill directly, past the page cache.
class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 4096;
  explicit AlignedBuffer(std::size_t capacity_bytes);

  /// Within the capacity; the content is kept.
  void resize(std::size_t size_bytes) { size_ = size_bytes; }
  char* data() { return memory_.get(); }
  std::size_t size() const { return size_; }
  std::string_view view() const { return {memory_.get(), size_}; }
  std::span<char> span() { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(char* memory) const;
  };
  std::unique_ptr<char, Free> memory_;
  std::size_t size_ = 0;
};

class BlockTarget {
 public:
  virtual ~BlockTarget() = default;
  virtual std::uint64_t sizeBytes() const = 0;
  /// Blocking; called from several threads for different ranges. Errors: Internal (I/O), naming
  /// offset and device
  virtual Result<void> write(std::uint64_t offset, std::string_view data) = 0;
  /// The range reads as zeros afterwards, whatever was there; the device may forget it (discard).
  virtual Result<void> zero(std::uint64_t offset, std::uint64_t length_bytes) = 0;
  /// Fills `out`.
  virtual Result<void> read(std::uint64_t offset, std::span<char> out) = 0;
  /// Everything is on the medium, and what is read next comes from there and not from memory.
  virtual Result<void> flush() = 0;
  /// Whether aligned reads always come from the medium, also before `flush`.
  virtual bool readsMedium() const { return false; }
  /// For people: the disk with its serial, as far as whoever opened it knew.
  virtual std::string name() const { return "the disk"; }
};

/// "cannot read NAME at byte N: WORDS", and that the disk must be replaced where the error number
/// (errno) is of a medium or of a device that is gone.
Error diskError(std::string_view what, std::string_view name, std::uint64_t offset,
                int error_number);

/// `name`: what the errors call it; without one, its path. Errors: NotFound, Denied, InvalidInput
/// (neither a block device nor a file)
Result<std::unique_ptr<BlockTarget>> openBlockTarget(const std::filesystem::path& path,
                                                     std::string name = {});

}  // namespace muster::agent
