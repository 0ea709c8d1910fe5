// SPDX-License-Identifier: Apache-2.0
#include "app/site/service_user.h"

#include <fmt/format.h>

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

namespace muster::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPasswdBytes = 4096;
/// DHCP and TFTP of dnsmasq (67, 69), addresses of clients that have none yet, and what
/// `muster discover` hears.
constexpr std::array kKeptCapabilities{CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW};

struct User {
  std::string name, home;
  uid_t uid = 0;
  gid_t gid = 0;
};

std::optional<User> userOf(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kPasswdBytes);
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found)
    return std::nullopt;
  return User{found->pw_name, found->pw_dir, found->pw_uid, found->pw_gid};
}

std::unexpected<Error> refused(const User& user, const char* step) {
  return fail(ErrorCode::Denied,
              fmt::format("this process cannot become user {} ({}: {}), to whom the state folder "
                          "belongs; run muster as that user: runuser -u {} -- muster …",
                          user.name, step, std::strerror(errno), user.name));
}

/// What the process may do from now on: those of kKeptCapabilities that it had.
bool keepCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> had{}, data{};
  if (::syscall(SYS_capget, &header, had.data()) != 0) return false;
  for (const auto capability : kKeptCapabilities) {
    const auto bit = had[0].permitted & (std::uint32_t{1} << capability);  // all are below 32
    data[0].permitted |= bit;
    data[0].effective |= bit;
    data[0].inheritable |= bit;
  }
  if (::syscall(SYS_capset, &header, data.data()) != 0) return false;
  for (const auto capability : kKeptCapabilities)
    if ((data[0].permitted & (std::uint32_t{1} << capability)) != 0 &&
        ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0)
      return false;
  return true;
}

}  // namespace

bool isServiceUser() {
  static const auto kUser = userOf(kServiceUser);
  return kUser && kUser->uid == ::geteuid();
}

bool belongsToServiceUser(const fs::path& state) {
  const auto user = userOf(kServiceUser);
  struct stat status{};
  return user && ::lstat(state.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == user->uid;
}

Result<bool> becomeOwnerOf(const fs::path& state, const std::string& name) {
  struct stat status{};
  if (::geteuid() != 0 || ::lstat(state.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid == 0)
    return false;
  const auto user = userOf(name);
  if (!user || user->uid != status.st_uid) return false;
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return refused(*user, "PR_SET_KEEPCAPS");
  if (::initgroups(user->name.c_str(), user->gid) != 0) return refused(*user, "initgroups");
  if (::setresgid(user->gid, user->gid, user->gid) != 0) return refused(*user, "setresgid");
  if (::setresuid(user->uid, user->uid, user->uid) != 0) return refused(*user, "setresuid");
  if (!keepCapabilities()) return refused(*user, "capset");
  if (::prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) != 0) return refused(*user, "PR_SET_KEEPCAPS");
  ::setenv("HOME", user->home.c_str(), 1);
  return true;
}

Result<void> giveTree(const fs::path& tree, const fs::path& like) {
  struct stat owner{}, now{};
  if (::geteuid() != 0 || ::stat(like.c_str(), &owner) != 0 || ::lstat(tree.c_str(), &now) != 0 ||
      now.st_uid == owner.st_uid)
    return {};
  const auto give = [&owner](const fs::path& path) -> Result<void> {
    if (::lchown(path.c_str(), owner.st_uid, owner.st_gid) == 0) return {};
    return fail(ErrorCode::Denied, fmt::format("cannot give {} to user {}: {}", path.string(),
                                               owner.st_uid, std::strerror(errno)));
  };
  std::error_code error;
  for (fs::recursive_directory_iterator entry(tree, error), end; !error && entry != end;
       entry.increment(error))
    TRY_OK(give(entry->path()));
  if (error)
    return fail(ErrorCode::Denied,
                fmt::format("cannot list {}: {}", tree.string(), error.message()));
  return give(tree);  // last: from then on others write there
}

}  // namespace muster::app
