// SPDX-License-Identifier: Apache-2.0
#include "lab/netns.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "base/json_input.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstring>
#include <set>
#include <thread>

extern "C" {
#include <sys/pidfd.h>  // glibc 2.36 forgets to say that it is C
}

namespace muster::lab {

namespace {

constexpr int kEndRounds = 10;  // a process may fork while it is being ended

constexpr std::string_view kMark = "muster-lab ";

using Identity = std::pair<dev_t, ino_t>;

std::filesystem::path fileOf(const std::string& netns) {
  return std::filesystem::path("/run/netns") / netns;
}

std::optional<std::pair<dev_t, ino_t>> identityOf(const std::filesystem::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  return std::pair{info.st_dev, info.st_ino};
}

pid_t parentOf(pid_t pid) {
  auto text = io::readFile(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text) return 0;
  auto name_end = text->rfind(')');
  pid_t parent = 0;
  char state = 0;
  if (name_end == std::string::npos ||
      std::sscanf(text->c_str() + name_end + 1, " %c %d", &state, &parent) != 2)
    return 0;
  return parent;
}

/// This process and everything above it: a shell inside the namespace may well be the one that
/// calls down.
std::set<pid_t> ownLine() {
  std::set<pid_t> line;
  for (pid_t pid = ::getpid(); pid > 1 && line.insert(pid).second;) pid = parentOf(pid);
  return line;
}

Result<void> ip(std::vector<std::string> args, std::string input = {}) {
  io::Command command;
  command.program = "ip";
  command.args = std::move(args);
  command.stdin_text = std::move(input);
  TRY_OK(io::runChecked(command));
  return {};
}

void signalAll(const std::vector<pid_t>& pids, int number, const Identity& netns) {
  for (auto pid : pids) {
    io::Fd process(::pidfd_open(pid, 0));
    if (!process.valid() || identityOf(fmt::format("/proc/{}/ns/net", pid)) != netns)
      continue;  // the number was given to another process
    ::pidfd_send_signal(process.get(), number, nullptr, 0);
  }
}

std::vector<pid_t> allProcesses() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos)
      found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

std::vector<pid_t> processesOf(const Identity& netns) {
  auto own = ownLine();
  std::vector<pid_t> found;
  for (auto pid : allProcesses())
    if (!own.contains(pid) && identityOf(fmt::format("/proc/{}/ns/net", pid)) == netns)
      found.push_back(pid);
  return found;
}

bool waitUntilEmpty(const Identity& netns, std::chrono::milliseconds limit) {
  auto end = std::chrono::steady_clock::now() + limit;
  for (auto pids = processesOf(netns); !pids.empty(); pids = processesOf(netns)) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    io::Fd process(::pidfd_open(pids.front(), 0));
    pollfd ended{process.get(), POLLIN, 0};
    if (process.valid()) ::poll(&ended, 1, static_cast<int>(left.count()));
    ::waitpid(pids.front(), nullptr, WNOHANG);  // when it was started by this very process
  }
  return true;
}

/// Errors: Internal when processes stay
Result<void> endAll(const Identity& netns, std::chrono::milliseconds grace) {
  signalAll(processesOf(netns), SIGTERM, netns);
  if (waitUntilEmpty(netns, grace)) return {};
  for (int round = 0; round < kEndRounds; ++round) {
    signalAll(processesOf(netns), SIGKILL, netns);
    if (waitUntilEmpty(netns, std::chrono::seconds(1))) return {};
  }
  return fail(ErrorCode::Internal,
              fmt::format("{} processes of the lab's network namespace do not end",
                          processesOf(netns).size()));
}

/// What the bridge of the namespace that this thread is in says.
std::optional<std::string> markHere() {
  auto shown = io::runChecked({.program = "ip", .args = {"-j", "link", "show", "type", "bridge"}});
  if (!shown) return std::nullopt;
  const auto links = jsonOrNone(*shown, kToolJson);
  if (!links.is_array()) return std::nullopt;
  for (const auto& link : links)
    if (link.is_object() && link.contains("ifalias") && link.at("ifalias").is_string())
      if (auto alias = link.at("ifalias").get<std::string>(); alias.starts_with(kMark))
        return alias;
  return std::nullopt;
}

Result<void> enterFile(const std::filesystem::path& path) {
  io::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid())
    return fail(ErrorCode::NotFound,
                fmt::format("there is no network namespace {}; run 'muster lab up' first",
                            path.filename().string()));
  if (::setns(file.get(), CLONE_NEWNET) != 0)
    return fail(errno == EPERM ? ErrorCode::Denied : ErrorCode::Internal,
                fmt::format("cannot enter namespace {}: {}", path.filename().string(),
                            std::strerror(errno)));
  return {};
}

Result<void> insideFile(const std::filesystem::path& path,
                        const std::function<Result<void>()>& work) {
  Result<void> result;
  std::thread inside([&] {
    result = enterFile(path);
    if (result) result = work();
  });
  inside.join();
  return result;
}

std::optional<MarkedNamespace> markIn(const std::filesystem::path& file) {
  std::optional<std::string> mark;
  auto looked = insideFile(file, [&mark]() -> Result<void> {
    mark = markHere();
    return {};
  });
  if (!looked || !mark) return std::nullopt;
  auto words = mark->substr(kMark.size());
  auto space = words.find(' ');
  if (space == std::string::npos) return std::nullopt;
  return MarkedNamespace{words.substr(0, space), words.substr(space + 1), 0};
}

/// What a killed `ip netns add` or `delete` leaves: a name without a namespace.
void removeEmptyName(const std::string& netns) {
  std::error_code ignored;
  if (!namespaceExists(netns)) std::filesystem::remove(fileOf(netns), ignored);
}

}  // namespace

bool namespaceExists(const std::string& netns) {
  struct statfs info{};
  return ::statfs(fileOf(netns).c_str(), &info) == 0 && info.f_type == NSFS_MAGIC;
}

std::vector<MarkedNamespace> markedNamespaces() {
  std::vector<MarkedNamespace> found;
  std::set<Identity> seen;
  if (auto own = identityOf("/proc/self/ns/net")) seen.insert(*own);
  for (auto pid : allProcesses()) {
    const std::filesystem::path file = fmt::format("/proc/{}/ns/net", pid);
    auto identity = identityOf(file);
    if (!identity || !seen.insert(*identity).second) continue;
    if (auto marked = markIn(file)) {
      marked->member = pid;
      found.push_back(std::move(*marked));
    }
  }
  return found;
}

std::optional<MarkedNamespace> markOf(const std::string& netns) {
  return namespaceExists(netns) ? markIn(fileOf(netns)) : std::nullopt;
}

Result<void> nameNamespace(const MarkedNamespace& marked, const std::string& netns) {
  removeEmptyName(netns);
  return ip({"netns", "attach", netns, std::to_string(marked.member)});
}

Result<std::size_t> endProcessesOf(const MarkedNamespace& marked, std::chrono::milliseconds grace) {
  auto identity = identityOf(fmt::format("/proc/{}/ns/net", marked.member));
  if (!identity) return std::size_t{0};
  auto count = processesOf(*identity).size();
  TRY_OK(endAll(*identity, grace));
  return count;
}

Result<void> makeNamespace(const Rack& rack) {
  removeEmptyName(rack.netns);
  if (!namespaceExists(rack.netns)) TRY_OK(ip({"netns", "add", rack.netns}));
  std::string batch = "link set lo up\n";
  if (io::Command exists{.program = "ip", .args = {"-n", rack.netns, "link", "show", rack.bridge}};
      !io::runChecked(exists))
    batch += fmt::format("link add {} type bridge stp_state 0 forward_delay 0\n", rack.bridge);
  batch += fmt::format("address replace {}/{} dev {}\n", rack.controller.str(),
                       rack.network.prefix_bits, rack.bridge);
  for (const auto& node : rack.nodes)
    batch += fmt::format("address replace {}/32 dev {}\n", node.bmc_address.str(), rack.bridge);
  batch += fmt::format("link set {} alias \"{}{} {}\"\n", rack.bridge, kMark, rack.id,
                       rack.paths.root.string());
  batch += fmt::format("link set {} up\n", rack.bridge);
  return ip({"-n", rack.netns, "-batch", "-"}, batch);
}

std::vector<pid_t> processesIn(const std::string& netns) {
  auto wanted = namespaceExists(netns) ? identityOf(fileOf(netns)) : std::nullopt;
  return wanted ? processesOf(*wanted) : std::vector<pid_t>();
}

Result<void> endProcessesIn(const std::string& netns, std::chrono::milliseconds grace) {
  auto identity = namespaceExists(netns) ? identityOf(fileOf(netns)) : std::nullopt;
  return identity ? endAll(*identity, grace) : Result<void>();
}

Result<void> removeNamespace(const std::string& netns) {
  removeEmptyName(netns);
  return namespaceExists(netns) ? ip({"netns", "delete", netns}) : Result<void>();
}

Result<void> enterNamespace(const std::string& netns) { return enterFile(fileOf(netns)); }

Result<void> insideNamespace(const std::string& netns, const std::function<Result<void>()>& work) {
  return insideFile(fileOf(netns), work);
}

}  // namespace muster::lab
