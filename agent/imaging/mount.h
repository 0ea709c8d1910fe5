// SPDX-License-Identifier: Apache-2.0
// A file system that is mounted as long as this lives.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <utility>

namespace muster::agent {

class Mount {
 public:
  /// Errors: Internal
  static Result<Mount> make(const std::filesystem::path& device, const std::filesystem::path& point,
                            const char* type);
  /// A folder of this system at another place too. Errors: Internal
  static Result<Mount> bind(const std::filesystem::path& folder,
                            const std::filesystem::path& point);
  Mount(Mount&& other) noexcept : point_(std::exchange(other.point_, {})) {}
  ~Mount();
  /// Errors: Internal (still in use: what was written may not be on the disk)
  Result<void> end();

 private:
  explicit Mount(std::filesystem::path point) : point_(std::move(point)) {}
  std::filesystem::path point_;
};

}  // namespace muster::agent
