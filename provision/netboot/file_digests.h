// SPDX-License-Identifier: Apache-2.0
// SHA-256 of files that rarely change: read again only when a file has another size, time or inode.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <map>
#include <string>

namespace muster::provision {

class FileDigests {
 public:
  /// Errors: NotFound, Internal (it cannot be read)
  Result<std::string> sha256(const std::filesystem::path& file);
  /// What is said of files that are not there any more.
  void dropMissing();

 private:
  struct Known {
    std::string stamp;  ///< of the file when it was read: size, times, inode
    std::string sha256;
  };
  std::map<std::filesystem::path, Known> known_;
};

}  // namespace muster::provision
