// SPDX-License-Identifier: Apache-2.0
#include "api/access_file.h"

#include "base/io/files.h"

#include <fmt/format.h>

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace muster::api {
namespace {

constexpr std::size_t kMaxFileBytes = 1u << 20;
constexpr std::size_t kLookupBytes = 256u << 10;

std::optional<std::uint32_t> numberOf(std::string_view who) {
  std::uint32_t id = 0;
  const auto [end, error] = std::from_chars(who.data(), who.data() + who.size(), id);
  return error == std::errc() && end == who.data() + who.size() ? std::optional(id) : std::nullopt;
}

std::string userNameOf(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kLookupBytes);
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found)
    return found->pw_name;
  return fmt::format("uid {}", uid);
}

std::optional<gid_t> groupIdOf(const std::string& name) {
  if (auto number = numberOf(name)) return number;
  group entry{};
  group* found = nullptr;
  std::vector<char> buffer(kLookupBytes);
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found)
    return found->gr_gid;
  return std::nullopt;
}

bool isMember(const io::PeerCredentials& peer, const std::string& name) {
  const auto group = groupIdOf(name);
  return group &&
         (peer.gid == *group || std::ranges::find(peer.groups, *group) != peer.groups.end());
}

std::vector<std::string> wordsOf(const std::string& line) {
  std::istringstream in(line.substr(0, line.find('#')));
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

Result<AccessRow> rowOf(const std::vector<std::string>& words) {
  AccessRow row;
  if (words.size() < 3 || (words[0] != "user" && words[0] != "group"))
    return fail(ErrorCode::InvalidInput,
                "a row is: user|group NAME ROLE [pools=…] [racks=…] [nodes=…]");
  row.is_group = words[0] == "group";
  row.who = words[1];
  const auto role = parseRole(words[2]);
  if (!role)
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is no role; there are: {}", words[2], allRoles()));
  row.role = *role;
  TRY(scope, parseScope({words.begin() + 3, words.end()}));
  row.scope = std::move(scope);
  return row;
}

}  // namespace

Result<AccessTable> AccessTable::parse(std::string_view text, const std::string& file,
                                       Diagnostics& problems) {
  AccessTable out;
  std::istringstream in{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto words = wordsOf(line);
    if (words.empty()) continue;
    auto row = rowOf(words);
    if (row)
      out.rows_.push_back(std::move(*row));
    else
      problems.error({file, number, 1}, row.error().text());
  }
  if (!problems.hasErrors()) return out;
  return fail(
      Error(ErrorCode::InvalidInput, problems.all().front().text).at(problems.all().front().where));
}

Result<AccessTable> AccessTable::read(const std::filesystem::path& file) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return AccessTable{};
    return fail(ErrorCode::Unavailable, fmt::format("cannot look at {}", file.string()));
  }
  const bool is_ours = found.st_uid == 0 || found.st_uid == ::geteuid();
  if (!is_ours || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::Denied,
                fmt::format("{} says who may do what, and others than root may change it; run: "
                            "chown root {} && chmod 644 {}",
                            file.string(), file.string(), file.string()));
  TRY(text, io::readFile(file, kMaxFileBytes));
  Diagnostics problems;
  return parse(text, file.string(), problems);
}

std::optional<Identity> AccessTable::identify(const io::PeerCredentials& peer) const {
  Identity out{userNameOf(peer.uid), Way::UnixSocket, Role::Admin, {}, std::nullopt};
  if (peer.uid == 0 || peer.uid == ::geteuid()) return out;
  for (const auto& row : rows_) {
    const auto number = numberOf(row.who);
    const bool fits = row.is_group ? isMember(peer, row.who)
                      : number     ? *number == peer.uid
                                   : row.who == out.principal;
    if (!fits) continue;
    out.role = row.role;
    out.scope = row.scope;
    return out;
  }
  if (!isMember(peer, kViewerGroup)) return std::nullopt;
  out.role = Role::Viewer;
  return out;
}

}  // namespace muster::api
