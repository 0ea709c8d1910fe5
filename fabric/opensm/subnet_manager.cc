// SPDX-License-Identifier: Apache-2.0
#include "fabric/opensm/subnet_manager.h"

#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "fabric/opensm/opensm_files.h"
#include "inventory/model/fabric.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>

namespace muster::fabric {

namespace {

constexpr std::string_view kProvenPartitions =
    "partitions.conf.proven";  // the last ones that every table was read to follow
constexpr std::string_view kStarted =
    "opensm.started";  // digest of the files that the running process read
constexpr std::string_view kState = "opensm.state";  // what its log has said, for the next muster:
                                                     // OpenSM empties the log when it is full
constexpr std::string_view kGuids = "guids.json";
constexpr std::chrono::milliseconds kStopGrace{5000};
constexpr std::size_t kLogPieceBytes = 1u << 16;
constexpr std::size_t kTailBytes = 600;
constexpr std::size_t kMaxCommandLineBytes = 1u << 16;

std::string contentOf(const std::filesystem::path& path) { return io::readFile(path).value_or(""); }

/// Arguments of a process, as /proc shows them.
std::vector<std::string> argumentsOf(const std::filesystem::path& proc) {
  auto text = io::readFile(proc / "cmdline", kMaxCommandLineBytes).value_or("");
  std::vector<std::string> args;
  for (std::size_t from = 0; from < text.size();) {
    auto end = text.find('\0', from);
    args.push_back(text.substr(from, end - from));
    if (end == std::string::npos) break;
    from = end + 1;
  }
  return args;
}

}  // namespace

SubnetManager::SubnetManager(io::ProcessRunner& processes, const Tools& tools,
                             std::filesystem::path folder, std::optional<io::DaemonUnit> unit,
                             std::vector<std::filesystem::path> others)
    : processes_(processes),
      tools_(tools),
      folder_(std::move(folder)),
      unit_(std::move(unit)),
      others_(std::move(others)),
      pid_file_{folder_ / "opensm.pid"} {}

/// Ours are those that were started with our configuration file; more than one only after a crash
/// at the wrong moment.
SubnetManager::Processes SubnetManager::opensms() const {
  Processes out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    auto name = entry.path().filename().string();
    pid_t pid = 0;
    auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || end != name.data() + name.size()) continue;
    auto args = argumentsOf(entry.path());
    if (args.empty() || std::filesystem::path(args[0]).filename() != "opensm") continue;
    const auto reads = args.size() >= 3 && args[1] == "-F" ? args[2] : std::string();
    if (std::any_of(others_.begin(), others_.end(),
                    [&](const auto& folder) { return reads == (folder / kOpensmConf).string(); }))
      continue;  // of another fabric, on another port
    const bool is_own = !reads.empty() && (reads == served(kOpensmConf).string() ||
                                           reads == file(kOpensmConf).string());
    (is_own ? out.own : out.others).push_back(pid);
  }
  return out;
}

std::string SubnetManager::rival() const {
  if (tools_.areSimulated()) return {};
  const auto others = opensms().others;
  if (others.empty()) return {};
  return fmt::format(
      "opensm (pid {}) runs on the controller with files that are not muster's; end it for good: "
      "systemctl disable --now opensm, "
      "systemctl mask opensm, systemctl stop 'opensm@*'",
      others.front());
}

std::optional<pid_t> SubnetManager::pid() const {
  if (auto pid = pid_file_.alive()) return pid;
  auto orphans = opensms().own;
  if (orphans.empty() || !pid_file_.write(orphans.front())) return std::nullopt;
  return pid_file_.alive();
}

bool SubnetManager::startedWith(const SmFiles& files) const {
  return contentOf(file(kStarted)) == files.digest() &&
         contentOf(served(kOpensmConf)) == files.opensm_conf &&
         contentOf(served(kRootGuids)) == files.root_guids &&
         contentOf(served(kIoGuids)) == files.io_guids;
}

bool SubnetManager::nodesAre(const SmFiles& files) const {
  return contentOf(served(kNodeGuids)) == files.cn_guids;
}

bool SubnetManager::partitionsAre(const SmFiles& files) const {
  return contentOf(served(kPartitionsConf)) == files.partitions;
}

SmLog SubnetManager::log() const {
  io::Fd fd(::open(served(kOpensmLog).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat now{};
  if (!fd.valid() || ::fstat(fd.get(), &now) != 0) return {};
  auto& so_far = log_so_far_;
  if (so_far.inode != now.st_ino) {
    so_far = {now.st_ino, 0, SmLogReader(keptState()), {}};
  } else if (static_cast<std::uintmax_t>(now.st_size) < so_far.offset) {
    so_far.offset = 0;
    so_far.reader.truncated();
  }
  std::array<char, kLogPieceBytes> piece;
  for (ssize_t got;
       (got = ::pread(fd.get(), piece.data(), piece.size(), static_cast<off_t>(so_far.offset))) > 0;
       so_far.offset += static_cast<std::uintmax_t>(got))
    so_far.reader.feed({piece.data(), static_cast<std::size_t>(got)});
  auto state = so_far.reader.state();
  keep(state);
  return state;
}

/// Of the process that runs now; empty of any other.
SmLog SubnetManager::keptState() const {
  const auto json = jsonOrNone(contentOf(file(kState)), kKeptJson);
  const auto running = pid_file_.alive();
  SmLog log;
  if (!running || !json.is_object() || json.value("pid", nlohmann::json()) != *running) return log;
  const auto engine = json.value("engine", nlohmann::json());
  log.master = json.value("master", nlohmann::json()) == true;
  log.subnet_up = log.master && json.value("up", nlohmann::json()) == true;
  if (engine.is_string()) log.routing_engine = engine.get<std::string>();
  return log;
}

void SubnetManager::keep(const SmLog& log) const {
  const auto running = pid_file_.alive();
  if (!running) return;
  auto text = jsonText(nlohmann::json{{"pid", *running},
                                      {"master", log.master},
                                      {"up", log.subnet_up},
                                      {"engine", log.routing_engine}});
  if (text != log_so_far_.kept && io::writeFileAtomic(file(kState), text, 0600))
    log_so_far_.kept = std::move(text);
}

std::string SubnetManager::logTail() const {
  auto text = contentOf(served(kOpensmLog));
  if (text.empty()) text = contentOf(served(kOpensmOutput));
  return text.size() <= kTailBytes ? text : "…" + text.substr(text.size() - kTailBytes);
}

std::optional<std::set<std::string>> SubnetManager::nodeGuids() const {
  if (!pid()) return std::nullopt;
  auto now = log();
  if (!now.master || !now.subnet_up) return std::nullopt;
  auto text = io::readFile(served(kSubnetList));
  if (!text) return std::nullopt;
  return guidsInSubnetList(*text);
}

Result<void> SubnetManager::start(const SmFiles& files) {
  if (auto other = rival(); !other.empty()) return fail(ErrorCode::Conflict, std::move(other));
  TRY_OK(io::makeDirs(folder_, 0700));
  TRY_OK(stop());
  std::error_code ignored;
  std::filesystem::remove(file(kState), ignored);
  log_so_far_ = {};
  TRY_OK(io::writeFileAtomic(file(kStarted), files.digest(), 0600));
  TRY(pid, launch(files));
  return pid_file_.write(pid);
}

/// Answers the process that runs now.
Result<pid_t> SubnetManager::launch(const SmFiles& files) {
  io::DaemonFiles content{{std::string(kOpensmConf), files.opensm_conf},
                          {std::string(kRootGuids), files.root_guids},
                          {std::string(kIoGuids), files.io_guids},
                          {std::string(kNodeGuids), files.cn_guids},
                          {std::string(kPartitionsConf), files.partitions}};
  if (unit_) {
    // Of an OpenSM that this process has run before: its LIDs go along.
    if (auto lids = io::readFile(file(kGuidToLid))) content[std::string(kGuidToLid)] = *lids;
    TRY(answer, io::askDaemonUnit(*unit_, {{"start", content}}));
    const auto pid = answer.is_object() ? answer.value("pid", nlohmann::json()) : nlohmann::json();
    if (!pid.is_number_integer())
      return fail(ErrorCode::Corrupt, unit_->name + " did not say which process it has started");
    return pid.get<pid_t>();
  }
  for (const auto& [name, text] : content) TRY_OK(io::writeFileAtomic(file(name), text, 0600));
  std::error_code ignored;
  for (auto name : {kOpensmLog, kOpensmOutput, kSubnetList})
    std::filesystem::remove(file(name), ignored);
  return processes_.startDetached(
      opensmCommand(tools_.command("opensm", {"-F", file(kOpensmConf).string()}), folder_),
      file(kOpensmOutput));
}

Result<void> SubnetManager::put(std::string_view name, const std::string& text) const {
  if (!unit_) return io::writeFileAtomic(file(name), text, 0600);
  auto done = io::askDaemonUnit(*unit_, {{"write", {{std::string(name), text}}}});
  if (!done) return fail(std::move(done).error());
  return {};
}

Result<void> SubnetManager::hangUp() {
  auto running = pid();
  if (!running) return fail(ErrorCode::Unavailable, "opensm does not run");
  if (unit_) {
    auto done = io::askDaemonUnit(*unit_, {{"signal", "hup"}});
    if (!done) return fail(std::move(done).error());
    return {};
  }
  if (::kill(*running, SIGHUP) != 0)
    return fail(ErrorCode::Unavailable, fmt::format("cannot signal opensm (pid {})", *running));
  return {};
}

Result<void> SubnetManager::applyNodes(const SmFiles& files) {
  TRY_OK(put(kNodeGuids, files.cn_guids));
  return hangUp();
}

Result<void> SubnetManager::applyPartitions(const SmFiles& files) {
  TRY_OK(put(kPartitionsConf, files.partitions));
  return hangUp();
}

Result<void> SubnetManager::provePartitions(const SmFiles& files) const {
  if (contentOf(file(kProvenPartitions)) == files.partitions) return {};
  return io::writeFileAtomic(file(kProvenPartitions), files.partitions, 0600);
}

bool SubnetManager::provenPartitionsAre(const SmFiles& files) const {
  return contentOf(file(kProvenPartitions)) == files.partitions;
}

Result<PartitionRules> SubnetManager::rollBackPartitions() {
  TRY(former, io::readFile(file(kProvenPartitions)));
  // A former file that OpenSM would refuse too opens the fabric once more.
  TRY(rules, parsePartitions(former));
  TRY_OK(put(kPartitionsConf, former));
  TRY_OK(hangUp());
  return rules;
}

Result<void> SubnetManager::stop() {
  // Its process is another user's: only the unit can end it.
  if (unit_ && pid()) {
    auto done = io::askDaemonUnit(*unit_, {{"stop", true}});
    if (!done) return fail(std::move(done).error());
  }
  TRY_OK(pid_file_.terminate(kStopGrace));
  for (auto orphan : opensms().own) {
    TRY_OK(pid_file_.write(orphan));
    TRY_OK(pid_file_.terminate(kStopGrace));
  }
  return {};
}

Result<KnownGuids> SubnetManager::knownGuids() const {
  auto text = io::readFile(file(kGuids));
  if (text) return KnownGuids::fromJson(*text);
  if (text.error().code() == ErrorCode::NotFound) return KnownGuids{};
  return fail(std::move(text).error());
}

Result<void> SubnetManager::remember(const KnownGuids& known) {
  auto text = known.toJson();
  if (contentOf(file(kGuids)) == text) return {};
  TRY_OK(io::makeDirs(folder_, 0700));
  return io::writeFileAtomic(file(kGuids), text, 0600);
}

}  // namespace muster::fabric
