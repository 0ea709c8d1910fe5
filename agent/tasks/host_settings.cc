// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/host_settings.h"

#include "agent/tasks/host_files.h"
#include "agent/tasks/package_manager.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

using wire::HostSettings;
using wire::HostUser;

constexpr std::chrono::seconds kToolLimit{60}, kTrustLimit{180}, kAskLimit{20};
constexpr std::size_t kMaxFileBytes = 1u << 20, kMaxBundleBytes = 32u << 20;
constexpr std::string_view kBefore = ".before-muster", kAsDeclared = "as-declared";

std::string contentOf(const fs::path& path, std::size_t limit = kMaxFileBytes) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  auto text = io::readFile(path, limit);
  return text ? *text : std::string();
}

fs::path settingsFile(const fs::path& root, const std::string& driver) {
  return root / wire::kHostSettingsFolder / (driver + ".json");
}

/// Nullopt: nothing is declared. Errors: those of parsing
Result<std::optional<HostSettings>> declared(const fs::path& root, const std::string& driver) {
  std::error_code error;
  const auto file = settingsFile(root, driver);
  if (!fs::exists(file, error)) return std::optional<HostSettings>();
  TRY(text, io::readFile(file, kMaxFileBytes));
  TRY(settings, wire::parseHostSettings(text));
  return std::optional(std::move(settings));
}

// ---- the record of what is muster's here

struct Record {
  std::set<std::string> files, users;
  bool empty() const { return files.empty() && users.empty(); }
};

fs::path recordFile(const fs::path& root, const std::string& driver) {
  return root / "var/lib/muster" / ("host-" + driver + ".json");
}

Record readRecord(const fs::path& root, const std::string& driver) {
  Record record;
  const auto json = jsonOrNone(contentOf(recordFile(root, driver)), kOrderJson);
  if (!json.is_object()) return record;
  for (const auto& [key, set] :
       {std::pair("files", &record.files), std::pair("users", &record.users)})
    if (const auto list = json.find(key); list != json.end() && list->is_array())
      for (const auto& item : *list)
        if (item.is_string()) set->insert(item.get<std::string>());
  return record;
}

Result<void> writeRecord(const fs::path& root, const std::string& driver, const Record& record) {
  const auto file = recordFile(root, driver);
  std::error_code error;
  if (record.empty()) {
    fs::remove(file, error);
    return {};
  }
  TRY_OK(io::makeDirs(file.parent_path()));
  return io::writeFileAtomic(
      file, jsonText(nlohmann::json{{"files", record.files}, {"users", record.users}}));
}

// ---- files

/// A file of the distribution's own, which one of ours replaces whole, is kept beside it.
Result<void> putFile(const fs::path& root, const HostFile& file) {
  const auto path = root / file.path;
  fs::path kept = path;
  kept += kBefore;
  std::error_code error;
  const bool ours = file.path.find("muster") != std::string::npos ||
                    contentOf(path).starts_with("# Written by muster");
  if (!ours && fs::exists(path, error) && !fs::exists(kept, error)) {
    fs::rename(path, kept, error);
    if (error)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot keep {}: {}", path.string(), error.message()));
  }
  TRY_OK(io::makeDirs(path.parent_path()));
  return io::writeFileAtomic(path, file.content, file.mode);
}

void takeBack(const fs::path& root, const std::string& file) {
  const auto path = root / file;
  fs::path kept = path;
  kept += kBefore;
  std::error_code error;
  fs::remove(path, error);
  if (fs::exists(kept, error)) fs::rename(kept, path, error);
}

// ---- users

/// A line of passwd or shadow, in its parts.
std::vector<std::string> entryOf(const fs::path& database, const std::string& name) {
  std::istringstream lines(contentOf(database));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + ":")) continue;
    std::vector<std::string> parts;
    std::istringstream words(line);
    for (std::string part; std::getline(words, part, ':');) parts.push_back(part);
    return parts;
  }
  return {};
}

std::set<std::string> groupsOf(const fs::path& root, const std::string& user) {
  std::set<std::string> out;
  std::istringstream lines(contentOf(root / "etc/group"));
  for (std::string line; std::getline(lines, line);) {
    const auto members = line.rfind(':');
    if (members == std::string::npos) continue;
    std::istringstream words(line.substr(members + 1));
    for (std::string member; std::getline(words, member, ',');)
      if (member == user) out.insert(line.substr(0, line.find(':')));
  }
  return out;
}

constexpr std::size_t kUid = 2, kShell = 6, kHash = 1, kExpires = 7;

std::string part(const std::vector<std::string>& entry, std::size_t at) {
  return at < entry.size() ? entry[at] : std::string();
}

Async<void> makeUser(TaskTools tools, HostUser user) {
  for (const auto& group : user.groups) {
    std::vector<std::string> args = {"--force", group};
    CO_TRY_OK(co_await runTool(tools, "groupadd", std::move(args), kToolLimit));
  }
  const auto now = entryOf(tools.root / "etc/passwd", user.name);
  if (!now.empty() && std::atoi(part(now, kUid).c_str()) < wire::kLeastUid)
    co_return fail(ErrorCode::InvalidInput,
                   fmt::format("{} is an account of the system itself (uid {}): give the user "
                               "another name",
                               user.name, part(now, kUid)));
  std::vector<std::string> args = {"--shell", user.shell};
  if (user.uid != 0 && part(now, kUid) != std::to_string(user.uid)) {
    args.emplace_back("--uid");
    args.push_back(std::to_string(user.uid));
  }
  args.emplace_back("--groups");
  args.push_back(fmt::format("{}", fmt::join(user.groups, ",")));
  if (now.empty()) {
    args.emplace_back("--create-home");
  } else {
    args.emplace_back("--expiredate");  // a user that was declared before, and not in between
    args.emplace_back("");
  }
  args.push_back(user.name);
  CO_TRY_OK(
      co_await runTool(tools, now.empty() ? "useradd" : "usermod", std::move(args), kToolLimit));
  const auto hash = part(entryOf(tools.root / "etc/shadow", user.name), kHash);
  const auto wanted = user.password_hash.empty() ? std::string("*") : user.password_hash;
  if (hash == wanted) co_return Result<void>();
  // By standard input: others see the arguments of programs.
  io::Command command{.program = "chpasswd", .args = {"--encrypted"}};
  command.stdin_text = user.name + ":" + wanted + "\n";
  command.timeout = kToolLimit;
  CO_TRY(done, co_await tools.processes.run(std::move(command)));
  if (done.code != 0)
    co_return fail(ErrorCode::Internal,
                   fmt::format("chpasswd refused the hash of {}: {}", user.name, done.err));
  co_return Result<void>();
}

/// Its files and its processes stay: whose they are must be known.
Async<void> lockUser(TaskTools tools, std::string name) {
  if (entryOf(tools.root / "etc/passwd", name).empty()) co_return Result<void>();
  std::vector<std::string> args = {"--lock", "--expiredate", "1", name};
  CO_TRY_OK(co_await runTool(tools, "usermod", std::move(args), kToolLimit));
  co_return Result<void>();
}

// ---- what those that read the files are told

bool anyStarts(const std::set<std::string>& files, std::string_view prefix) {
  const auto at = files.lower_bound(std::string(prefix));
  return at != files.end() && at->starts_with(prefix);
}

Async<void> restart(TaskTools tools, std::string verb, std::string unit) {
  std::vector<std::string> args = {std::move(verb), std::move(unit)};
  CO_TRY_OK(co_await runTool(tools, "systemctl", std::move(args), kToolLimit));
  co_return Result<void>();
}

/// `files`: of now and before.
Async<void> tellReaders(TaskTools tools, std::set<std::string> files) {
  const bool debian = packageManager(tools.root) == PackageManager::Apt;
  if (files.contains("etc/chrony/chrony.conf") || files.contains("etc/chrony.conf")) {
    CO_TRY_OK(co_await restart(tools, "restart", debian ? "chrony" : "chronyd"));
  }
  if (anyStarts(files, "etc/systemd/timesyncd.conf.d/")) {
    CO_TRY_OK(co_await restart(tools, "restart", "systemd-timesyncd"));
  }
  if (anyStarts(files, "usr/local/share/ca-certificates/") ||
      anyStarts(files, "etc/pki/ca-trust/source/anchors/")) {
    std::vector<std::string> args;
    CO_TRY_OK(co_await runTool(tools, debian ? "update-ca-certificates" : "update-ca-trust",
                               std::move(args), kTrustLimit));
  }
  if (anyStarts(files, "etc/systemd/system.conf.d/90-muster-proxy")) {
    std::vector<std::string> args = {"daemon-reexec"};
    CO_TRY_OK(co_await runTool(tools, "systemctl", std::move(args), kToolLimit));
  }
  if (anyStarts(files, "etc/ssh/sshd_config.d/10-muster")) {
    CO_TRY_OK(co_await restart(tools, "try-reload-or-restart", debian ? "ssh" : "sshd"));
  }
  co_return Result<void>();
}

/// A file that sudo or sshd does not take locks people out; so it goes again.
Async<void> proveAccess(TaskTools tools, std::string driver, std::set<std::string> files) {
  struct Proof {
    std::string file, program;
    std::vector<std::string> args;
  };
  const auto sudoers = sudoersFile(driver);
  const std::vector<Proof> proofs = {
      {sudoers, "visudo", {"-c", "-q", "-f", (tools.root / sudoers).string()}},
      {"etc/ssh/sshd_config.d/10-muster.conf", "sshd", {"-t"}}};
  for (const auto& proof : proofs) {
    if (!files.contains(proof.file)) continue;
    auto args = proof.args;
    const auto done = co_await runTool(tools, proof.program, std::move(args), kToolLimit);
    if (done) continue;
    takeBack(tools.root, proof.file);
    co_return fail(Error(done.error()).within(fmt::format("/{} is removed again", proof.file)));
  }
  co_return Result<void>();
}

// ---- reading back

std::string base64Of(std::string_view pem) {
  std::string out;
  for (const char c : pem)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '/' || c == '=') out += c;
  return out;
}

/// Bodies of PEM blocks without their line ends: stores break lines as they like.
std::set<std::string> bodiesIn(const std::string& pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  std::set<std::string> out;
  for (const auto& one : certificatesIn(pem))
    out.insert(base64Of(
        std::string_view(one).substr(kBegin.size(), one.find("-----END") - kBegin.size())));
  return out;
}

std::string trustDrift(const fs::path& root, const HostSettings& settings) {
  if (settings.authorities.empty()) return {};
  const auto trusted = bodiesIn(contentOf(root / trustBundleOf(root), kMaxBundleBytes));
  for (const auto& [name, pem] : settings.authorities)
    for (const auto& body : bodiesIn(pem))
      if (!trusted.contains(body)) return "authority " + name;
  return {};
}

std::string userDrift(const fs::path& root, const HostUser& user) {
  const auto entry = entryOf(root / "etc/passwd", user.name),
             shadow = entryOf(root / "etc/shadow", user.name);
  if (entry.empty()) return "user " + user.name + " is missing";
  if (user.uid != 0 && part(entry, kUid) != std::to_string(user.uid))
    return "user " + user.name + " uid";
  if (part(entry, kShell) != user.shell) return "user " + user.name + " shell";
  const auto hash = part(shadow, kHash);
  if (user.password_hash.empty() ? !hash.starts_with('*') && !hash.starts_with('!')
                                 : hash != user.password_hash)
    return "user " + user.name + " password";
  if (!part(shadow, kExpires).empty()) return "user " + user.name + " expires";
  const auto groups = groupsOf(root, user.name);
  if (groups != std::set<std::string>(user.groups.begin(), user.groups.end()))
    return "user " + user.name + " groups";
  return {};
}

std::string kernelDrift(const fs::path& root, const HostSettings& settings) {
  const auto first = [&](const char* file) {
    auto text = contentOf(root / file);
    text.erase(text.find_last_not_of(" \n") + 1);
    return text;
  };
  if (!settings.crash_kernel.empty()) {
    const auto reserved = first("sys/kernel/kexec_crash_size");
    if (reserved.empty() || reserved == "0") return "crash kernel is not reserved";
    if (first("sys/kernel/kexec_crash_loaded") != "1") return "crash kernel is not loaded";
  }
  if (!settings.serial_console.empty()) {
    std::istringstream consoles(first("sys/class/tty/console/active"));
    std::string tty;
    bool there = false;
    while (consoles >> tty) there = there || tty == settings.serial_console;
    if (!there) return "console " + settings.serial_console;
  }
  return {};
}

/// Lines whose first word is `key`, as sets of the others.
std::set<std::string> wordsBehind(const std::string& text, std::string_view key) {
  std::set<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != key) continue;
    while (words >> word) out.insert(word);
  }
  return out;
}

Task<std::string> sshdDrift(TaskTools tools, std::string driver, HostSettings settings) {
  const bool any_key =
      std::ranges::any_of(settings.users, [](const auto& user) { return !user.keys.empty(); });
  if (!any_key && settings.ssh_user_authorities.empty()) co_return std::string();
  std::vector<std::string> args = {"-T"};
  const auto out = co_await runTool(tools, "sshd", std::move(args), kAskLimit);
  if (!out) co_return std::string("sshd does not take its configuration");
  if (any_key &&
      !wordsBehind(*out, "authorizedkeysfile").contains(fmt::format("/{}/%u", kUserKeysFolder)))
    co_return std::string("sshd AuthorizedKeysFile");
  if (!settings.ssh_user_authorities.empty() &&
      !wordsBehind(*out, "trustedusercakeys").contains("/" + userAuthoritiesFile(driver)))
    co_return std::string("sshd TrustedUserCAKeys");
  co_return std::string();
}

Task<std::string> timeDrift(TaskTools tools, HostSettings settings) {
  if (settings.time_servers.empty()) co_return std::string();
  const std::set<std::string> wanted(settings.time_servers.begin(), settings.time_servers.end());
  std::set<std::string> asked;
  if (timeClientOf(tools.root) == TimeClient::Chrony) {
    // Their names as they were written, in the third column; also those that DNS does not know.
    std::vector<std::string> args = {"-c", "-N", "sources", "-a"};
    const auto out = co_await runTool(tools, "chronyc", std::move(args), kAskLimit);
    if (!out) co_return std::string("chronyd does not answer");
    std::istringstream lines(*out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream columns(line);
      std::string mode, state, name;
      if (std::getline(columns, mode, ',') && std::getline(columns, state, ',') &&
          std::getline(columns, name, ','))
        asked.insert(name);
    }
  } else {
    std::vector<std::string> args = {"show-timesync", "--property=SystemNTPServers", "--value"};
    const auto out = co_await runTool(tools, "timedatectl", std::move(args), kAskLimit);
    if (!out) co_return std::string("timesyncd does not answer");
    std::istringstream words(*out);
    for (std::string word; words >> word;) asked.insert(word);
  }
  co_return asked == wanted ? std::string() : std::string("time servers");
}

Task<std::string> proxyDrift(TaskTools tools, HostSettings settings) {
  if (packageManager(tools.root) != PackageManager::Apt) co_return std::string();
  const std::vector<std::pair<std::string, std::string>> proxies = {
      {"http", settings.http_proxy}, {"https", settings.https_proxy}};
  for (const auto& [scheme, url] : proxies) {
    if (url.empty()) continue;
    std::vector<std::string> args = {"dump", "--format=%v%n", "Acquire::" + scheme + "::Proxy"};
    const auto out = co_await runTool(tools, "apt-config", std::move(args), kAskLimit);
    if (!out || out->substr(0, out->find('\n')) != url) co_return "apt's proxy of " + scheme;
  }
  co_return std::string();
}

std::string fileDrift(const fs::path& root, const std::vector<HostFile>& files) {
  for (const auto& file : files) {
    struct stat info{};
    const auto path = root / file.path;
    if (::stat(path.c_str(), &info) != 0 || contentOf(path) != file.content ||
        (info.st_mode & 07777) != file.mode)
      return "/" + file.path;
  }
  return {};
}

/// One value in a list of probes: none of the characters that such a list is made with.
std::string drift(std::string what) {
  std::ranges::replace(what, ',', ' ');
  std::ranges::replace(what, '=', ' ');
  return "drift:" + what;
}

}  // namespace

Async<void> applyHostSettings(TaskTools tools, std::string driver) {
  CO_TRY(settings, declared(tools.root, driver));
  const auto before = readRecord(tools.root, driver);
  if (!settings && before.empty()) co_return Result<void>();
  CO_TRY(files, hostFiles(tools.root, driver, settings.value_or(HostSettings())));
  Record now, either = before;
  for (const auto& file : files) now.files.insert(file.path);
  if (settings)
    for (const auto& user : settings->users) now.users.insert(user.name);
  either.files.insert(now.files.begin(), now.files.end());
  either.users.insert(now.users.begin(), now.users.end());
  // First what may be muster's: whoever dies behind it leaves nothing that is forgotten.
  CO_TRY_OK(writeRecord(tools.root, driver, either));
  for (const auto& old : before.files)
    if (!now.files.contains(old)) takeBack(tools.root, old);
  for (const auto& file : files) CO_TRY_OK(putFile(tools.root, file));
  CO_TRY_OK(co_await proveAccess(tools, driver, now.files));
  if (settings)
    for (const auto& user : settings->users) {
      CO_TRY_OK(co_await makeUser(tools, user));
    }
  for (const auto& old : before.users)
    if (!now.users.contains(old)) {
      CO_TRY_OK(co_await lockUser(tools, old));
    }
  CO_TRY_OK(co_await tellReaders(tools, either.files));
  co_return writeRecord(tools.root, driver, now);
}

Task<std::string> hostProbe(TaskTools tools, std::string driver) {
  const auto read = declared(tools.root, driver);
  if (!read) co_return drift("settings file: " + read.error().text());
  if (!*read) co_return std::string();
  const auto& settings = **read;
  const auto files = hostFiles(tools.root, driver, settings);
  if (!files) co_return drift(files.error().text());
  if (auto what = fileDrift(tools.root, *files); !what.empty()) co_return drift(std::move(what));
  if (auto what = trustDrift(tools.root, settings); !what.empty()) co_return drift(std::move(what));
  for (const auto& user : settings.users)
    if (auto what = userDrift(tools.root, user); !what.empty()) co_return drift(std::move(what));
  if (auto what = co_await sshdDrift(tools, driver, settings); !what.empty())
    co_return drift(std::move(what));
  if (auto what = co_await timeDrift(tools, settings); !what.empty())
    co_return drift(std::move(what));
  if (auto what = co_await proxyDrift(tools, settings); !what.empty())
    co_return drift(std::move(what));
  if (auto what = kernelDrift(tools.root, settings); !what.empty())
    co_return drift(std::move(what));
  co_return std::string(kAsDeclared);
}

}  // namespace muster::agent
