// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/file_digests.h"

#include "base/io/crypto.h"

#include <fmt/format.h>

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace muster::provision {

namespace {

/// Whoever writes to a file changes its ctime, whatever he does to the other times.
Result<std::string> stampOf(const std::filesystem::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0)
    return fail(errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Internal,
                fmt::format("cannot look at {}: {}", file.string(), std::strerror(errno)));
  return fmt::format("{}.{}.{}.{}.{}.{}.{}", info.st_dev, info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec,
                     info.st_ctim.tv_nsec);
}

}  // namespace

Result<std::string> FileDigests::sha256(const std::filesystem::path& file) {
  TRY(stamp, stampOf(file));
  auto& known = known_[file];
  if (known.stamp == stamp) return known.sha256;
  TRY(digest, io::sha256File(file));
  TRY(after, stampOf(file));
  if (after == stamp)
    known = {stamp, digest};  // else it is being written: read again the next time
  return digest;
}

void FileDigests::dropMissing() {
  std::error_code error;
  std::erase_if(
      known_, [&error](const auto& entry) { return !std::filesystem::exists(entry.first, error); });
}

}  // namespace muster::provision
