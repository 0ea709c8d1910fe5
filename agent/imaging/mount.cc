// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/mount.h"

#include "base/io/files.h"

#include <fmt/format.h>

#include <sys/mount.h>
#include <cerrno>
#include <cstring>

namespace muster::agent {

Result<Mount> Mount::make(const std::filesystem::path& device, const std::filesystem::path& point,
                          const char* type) {
  TRY_OK(io::makeDirs(point));
  if (::mount(device.c_str(), point.c_str(), type, MS_NOATIME, "") != 0)
    return fail(ErrorCode::Internal, fmt::format("cannot mount {} as {}: {}", device.string(), type,
                                                 std::strerror(errno)));
  return Mount(point);
}

Result<Mount> Mount::bind(const std::filesystem::path& folder, const std::filesystem::path& point) {
  TRY_OK(io::makeDirs(point));
  if (::mount(folder.c_str(), point.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return fail(ErrorCode::Internal, fmt::format("cannot mount {} at {}: {}", folder.string(),
                                                 point.string(), std::strerror(errno)));
  return Mount(point);
}

Mount::~Mount() {
  if (!point_.empty()) ::umount2(point_.c_str(), MNT_DETACH);
}

Result<void> Mount::end() {
  const std::filesystem::path point = std::exchange(point_, {});
  if (::umount2(point.c_str(), 0) != 0) {
    const int error = errno;
    ::umount2(point.c_str(), MNT_DETACH);
    return fail(ErrorCode::Internal,
                fmt::format("cannot unmount {}: {}", point.string(), std::strerror(error)));
  }
  return {};
}

}  // namespace muster::agent
