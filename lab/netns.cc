#include "lab/netns.h"

#include "base/io/files.h"
#include "base/io/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
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

std::filesystem::path fileOf(const std::string& netns) { return std::filesystem::path("/run/netns") / netns; }

std::optional<std::pair<dev_t, ino_t>> identityOf(const std::filesystem::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  return std::pair{info.st_dev, info.st_ino};
}

pid_t parentOf(pid_t pid) {
  auto text = io::readFile(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text) return 0;
  auto name_end = text->rfind(')');
  pid_t parent = 0;
  char state = 0;
  if (name_end == std::string::npos || std::sscanf(text->c_str() + name_end + 1, " %c %d", &state, &parent) != 2) return 0;
  return parent;
}

/// This process and everything above it: a shell inside the namespace may well be the one that calls down.
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

void signalAll(const std::vector<pid_t>& pids, int number, const std::pair<dev_t, ino_t>& netns) {
  for (auto pid : pids) {
    io::Fd process(::pidfd_open(pid, 0));
    if (!process.valid() || identityOf(fmt::format("/proc/{}/ns/net", pid)) != netns) continue;  // the number was given to another process
    ::pidfd_send_signal(process.get(), number, nullptr, 0);
  }
}

bool waitUntilEmpty(const std::string& netns, std::chrono::milliseconds limit) {
  auto end = std::chrono::steady_clock::now() + limit;
  for (auto pids = processesIn(netns); !pids.empty(); pids = processesIn(netns)) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    io::Fd process(::pidfd_open(pids.front(), 0));
    pollfd ended{process.get(), POLLIN, 0};
    if (process.valid()) ::poll(&ended, 1, static_cast<int>(left.count()));
    ::waitpid(pids.front(), nullptr, WNOHANG);  // when it was started by this very process
  }
  return true;
}

}  // namespace

bool namespaceExists(const std::string& netns) { return std::filesystem::exists(fileOf(netns)); }

Result<void> makeNamespace(const Rack& rack) {
  if (!namespaceExists(rack.netns)) TRY_OK(ip({"netns", "add", rack.netns}));
  std::string batch = "link set lo up\n";
  if (io::Command exists{.program = "ip", .args = {"-n", rack.netns, "link", "show", rack.bridge}}; !io::runChecked(exists))
    batch += fmt::format("link add {} type bridge stp_state 0 forward_delay 0\n", rack.bridge);
  batch += fmt::format("address replace {}/{} dev {}\n", rack.controller.str(), rack.network.prefix_bits, rack.bridge);
  for (const auto& node : rack.nodes) batch += fmt::format("address replace {}/32 dev {}\n", node.bmc_address.str(), rack.bridge);
  batch += fmt::format("link set {} up\n", rack.bridge);
  return ip({"-n", rack.netns, "-batch", "-"}, batch);
}

std::vector<pid_t> processesIn(const std::string& netns) {
  std::vector<pid_t> found;
  auto wanted = identityOf(fileOf(netns));
  if (!wanted) return found;
  auto own = ownLine();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    auto pid = static_cast<pid_t>(std::stol(name));
    if (!own.contains(pid) && identityOf(entry.path() / "ns" / "net") == wanted) found.push_back(pid);
  }
  return found;
}

Result<void> endProcessesIn(const std::string& netns, std::chrono::milliseconds grace) {
  auto identity = identityOf(fileOf(netns));
  if (!identity) return {};
  signalAll(processesIn(netns), SIGTERM, *identity);
  if (waitUntilEmpty(netns, grace)) return {};
  for (int round = 0; round < kEndRounds; ++round) {
    signalAll(processesIn(netns), SIGKILL, *identity);
    if (waitUntilEmpty(netns, std::chrono::seconds(1))) return {};
  }
  return fail(ErrorCode::Internal, fmt::format("{} processes of namespace {} do not end", processesIn(netns).size(), netns));
}

Result<void> removeNamespace(const std::string& netns) {
  if (!namespaceExists(netns)) return {};
  return ip({"netns", "delete", netns});
}

Result<void> enterNamespace(const std::string& netns) {
  io::Fd file(::open(fileOf(netns).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return fail(ErrorCode::NotFound, fmt::format("there is no network namespace {}; run 'muster lab up' first", netns));
  if (::setns(file.get(), CLONE_NEWNET) != 0)
    return fail(errno == EPERM ? ErrorCode::Denied : ErrorCode::Internal,
                fmt::format("cannot enter namespace {}: {}", netns, std::strerror(errno)));
  return {};
}

Result<void> insideNamespace(const std::string& netns, const std::function<Result<void>()>& work) {
  Result<void> result;
  std::thread inside([&] {
    result = enterNamespace(netns);
    if (result) result = work();
  });
  inside.join();
  return result;
}

}  // namespace muster::lab
