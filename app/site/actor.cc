// SPDX-License-Identifier: Apache-2.0
#include "app/site/actor.h"

#include "app/site/options.h"
#include "base/io/files.h"

#include <fmt/format.h>

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <vector>

namespace muster::app {
namespace {

constexpr std::size_t kMaxLoginUidBytes = 32;
constexpr std::size_t kMaxUserNameBytes = 64;
constexpr std::size_t kPasswdBytes = 64u << 10;
constexpr std::uint64_t kLoginUidUnset = std::numeric_limits<std::uint32_t>::max();

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-' || c == '@';
}

}  // namespace

uid_t actorUid(std::string_view loginuid, uid_t real_uid) {
  while (loginuid.ends_with('\n')) loginuid.remove_suffix(1);
  std::uint64_t uid = 0;
  const auto [end, error] =
      std::from_chars(loginuid.data(), loginuid.data() + loginuid.size(), uid);
  if (error != std::errc() || end != loginuid.data() + loginuid.size() || uid >= kLoginUidUnset)
    return real_uid;
  return static_cast<uid_t>(uid);
}

std::optional<std::string> sudoClaim(const char* sudo_user, std::string_view name) {
  const std::string_view claim = sudo_user ? sudo_user : "";
  if (claim.empty() || claim == name || claim.size() > kMaxUserNameBytes) return std::nullopt;
  if (!std::all_of(claim.begin(), claim.end(), isNameCharacter)) return std::nullopt;
  return std::string(claim);
}

std::string userName() {
  const auto loginuid = io::readFile("/proc/self/loginuid", kMaxLoginUidBytes);
  const uid_t uid = actorUid(loginuid.value_or(""), ::getuid());
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kPasswdBytes);
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found)
    return found->pw_name;
  return std::to_string(uid);
}

std::string hostName() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown host";
}

std::string sudoClaimText() {
  const auto claim = sudoClaim(std::getenv("SUDO_USER"), userName());
  return claim ? fmt::format(" (claims sudo user {})", *claim) : "";
}

std::string actorText() { return fmt::format("{}@{}{}", userName(), hostName(), sudoClaimText()); }

std::string actorText(const Options& options) {
  return options.actor.empty() ? actorText() : options.actor;
}

}  // namespace muster::app
