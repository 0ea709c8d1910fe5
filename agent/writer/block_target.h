// Seam: what the writer writes to. A block device, or a file in tests.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace muster::agent {

class BlockTarget {
 public:
  virtual ~BlockTarget() = default;
  virtual std::uint64_t sizeBytes() const = 0;
  /// Blocking; called from several threads for different ranges. Errors: Internal (I/O), naming offset and device
  virtual Result<void> write(std::uint64_t offset, std::string_view data) = 0;
  /// The range reads as zeros afterwards, whatever was there.
  virtual Result<void> zero(std::uint64_t offset, std::uint64_t length_bytes) = 0;
  /// Fills `out` (sized by the caller).
  virtual Result<void> read(std::uint64_t offset, std::string& out) = 0;
  /// Everything is on the medium, and what is read next comes from there and not from memory.
  virtual Result<void> flush() = 0;
};

/// Errors: NotFound, Denied, InvalidInput (neither a block device nor a file)
Result<std::unique_ptr<BlockTarget>> openBlockTarget(const std::filesystem::path& path);

}  // namespace muster::agent
