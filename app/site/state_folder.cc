// SPDX-License-Identifier: Apache-2.0
#include "app/site/state_folder.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/log.h"
#include "lifecycle/store/store_loss.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOfOthers = 0077;
constexpr mode_t kAllModeBits = 07777;

/// Takes other users' permissions away, by name. A link is left alone: what it points to is not
/// ours to change. Answers errno; a file that has just gone is no error.
int closeToOthers(const fs::path& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return errno == ENOENT ? 0 : errno;
  if (S_ISLNK(status.st_mode) || (status.st_mode & kOfOthers) == 0) return 0;
  return ::chmod(path.c_str(), status.st_mode & kAllModeBits & ~kOfOthers) == 0 || errno == ENOENT
             ? 0
             : errno;
}

std::unexpected<Error> cannotClose(const fs::path& path, int error) {
  return fail(ErrorCode::Denied, fmt::format("other users can read {} and its mode cannot be "
                                             "changed ({}); as its owner: chmod -R go-rwx {}",
                                             path.string(), std::strerror(error), path.string()));
}

}  // namespace

Result<void> prepareStateFolder(const fs::path& state) {
  std::error_code error;
  if (state.has_parent_path() && !fs::exists(state.parent_path(), error))
    TRY_OK(io::makeDirs(state.parent_path()));
  if (::mkdir(state.c_str(), kStateFolderMode) == 0) return {};  // a umask can only take more away
  if (errno != EEXIST)
    return fail(
        errno == EACCES || errno == EROFS ? ErrorCode::Denied : ErrorCode::NotFound,
        fmt::format(
            "the state folder {} cannot be made ({}); choose another: --state, MUSTER_STATE",
            state.string(), std::strerror(errno)));
  struct stat status{};
  if (::stat(state.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is no folder; choose another state folder: --state, MUSTER_STATE",
                            state.string()));
  const auto user = ::geteuid();
  if (status.st_uid != user)  // root too: its owner could put keys and links of his own into it
    return fail(ErrorCode::Denied,
                fmt::format("the state folder {} belongs to user {}, not to {}; run muster as that "
                            "user, give the folder to this one if what is in it can be trusted "
                            "(chown -R), or choose another: --state, MUSTER_STATE",
                            state.string(), status.st_uid, user));
  if ((status.st_mode & kOfOthers) == 0) return {};
  // The folder first: from then on nobody gets at what is in it.
  if (::chmod(state.c_str(), kStateFolderMode) != 0) return cannotClose(state, errno);
  for (fs::recursive_directory_iterator entry(state, error), end; !error && entry != end;
       entry.increment(error))
    if (const int refused = closeToOthers(entry->path()); refused != 0)
      return cannotClose(entry->path(), refused);
  const auto text = fmt::format(
      "other users could enter the state folder {} (mode {:04o}); it is closed to them now. If "
      "some of them are not trusted, the keys in {} may "
      "be known to them",
      state.string(), status.st_mode & kAllModeBits, (state / "keys").string());
  std::cerr << "muster: " << text << "\n";
  logWarning("state", "{}", text);
  return {};
}

bool wasUsed(const fs::path& state) {
  std::error_code ignored;
  return fs::exists(state / lifecycle::kMarkOfUse, ignored);
}

void makeLockFiles(const fs::path& state) {
  if (wasUsed(state)) return;
  for (const char* name : {"turn", "lock", "keep"})
    (void)io::Fd(::open((state / name).c_str(),
                        O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kStateFileMode));
}

Result<std::string> holderOf(const std::filesystem::path& state, const std::string& host) {
  const auto file = state / lifecycle::kMarkOfUse;
  auto id = io::readFile(file, 64);
  if (!id) {
    id = io::randomToken(6);
    makeLockFiles(state);
    TRY_OK(io::writeFileAtomic(file, *id, kStateFileMode));
  }
  return fmt::format("{} ({})", host, *id);
}

}  // namespace muster::app
