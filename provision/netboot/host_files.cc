// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/host_files.h"

#include "base/io/files.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace muster::provision {

namespace {

constexpr std::size_t kMaxHostFileBytes = 4096;

std::unexpected<Error> failErrno(std::string_view what, const std::filesystem::path& path) {
  return fail(ErrorCode::Internal,
              fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(errno)));
}

/// dnsmasq reads when the file is closed, and a line is one write: it never sees a part.
Result<void> put(const std::filesystem::path& path, const std::string& content) {
  const io::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return failErrno("create", path);
  if (::fchmod(file.get(), 0644) != 0)
    return failErrno("set the mode of", path);  // whatever the umask is
  if (::write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    return failErrno("write", path);
  return {};
}

}  // namespace

Result<void> HostFiles::readBack() {
  TRY_OK(io::makeDirs(folder_));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const auto content = io::readFile(entry.path(), kMaxHostFileBytes);
    there_[entry.path().filename().string()] =
        content.value_or("");  // unreadable or too long: certainly not what is wanted
  }
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot list {}: {}", folder_.string(), error.message()));
  known_ = true;
  return {};
}

Result<HostChange> HostFiles::write(const HostLines& wanted) {
  if (!known_) TRY_OK(readBack());
  HostChange change;
  for (auto old = there_.begin(); old != there_.end();) {
    if (wanted.contains(old->first)) {
      ++old;
      continue;
    }
    const auto path = folder_ / old->first;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failErrno("remove", path);
    old = there_.erase(old);
    ++change.removed;
  }
  for (const auto& [name, content] : wanted) {
    const auto old = there_.find(name);
    if (old != there_.end() && old->second == content) continue;
    TRY_OK(put(folder_ / name, content));
    ++(old == there_.end() ? change.added : change.replaced);
    there_[name] = content;
  }
  return change;
}

Result<void> HostFiles::checkAnybodyCanRead() const {
  std::error_code error;
  const auto whole = std::filesystem::canonical(folder_, error);
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot look at {}: {}", folder_.string(), error.message()));
  for (auto at = whole; at.has_relative_path(); at = at.parent_path()) {
    const auto need =
        at == whole ? std::filesystem::perms::others_exec | std::filesystem::perms::others_read
                    : std::filesystem::perms::others_exec;
    if ((std::filesystem::status(at, error).permissions() & need) == need) continue;
    return fail(
        ErrorCode::Denied,
        fmt::format("dnsmasq could not read {}: {} is shut to other users; open it (chmod o+x)",
                    whole.string(), at.string()));
  }
  return {};
}

}  // namespace muster::provision
