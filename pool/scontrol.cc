// SPDX-License-Identifier: Apache-2.0
#include "pool/scontrol.h"

#include "inventory/model/node.h"
#include "inventory/parse/hostlist.h"
#include "pool/pool.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

namespace muster::pool {

namespace {

constexpr std::chrono::seconds kToolTimeout{30};
constexpr std::size_t kQuotedBytes = 300;
constexpr std::size_t kMaxReasonBytes = 200;

constexpr std::array<std::string_view, 3> kWorkingStates = {"IDLE", "MIXED", "ALLOCATED"};
// With one of these a node starts no job, whatever its base state says: until somebody resumes it …
/// What sinfo, and older or patched scontrols, print for a base state with a flag.
struct CompactState {
  std::string_view word, base, flag;
};
constexpr std::array<CompactState, 4> kCompactStates = {{{"DRAINED", "IDLE", "DRAIN"},
                                                         {"DRAINING", "ALLOCATED", "DRAIN"},
                                                         {"FAIL", "IDLE", "FAIL"},
                                                         {"FAILING", "ALLOCATED", "FAIL"}}};

constexpr std::array<std::string_view, 3> kHeldFlags = {"DRAIN", "FAIL", "INVALID_REG"};
// … or only until its slurmd registers again.
constexpr std::array<std::string_view, 5> kAwayFlags = {
    "NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "REBOOT_ISSUED"};

// What slurmctld itself gives as the reason of a node that it sets DOWN; with a star: the
// beginning. (22.05 to 25.11: node_mgr.c, job_mgr.c, ping_nodes.c, power_save.c, proc_req.c;
// gres.c.)
constexpr std::array<std::string_view, 25> kOwnReasons = {"Not responding",
                                                          "Node unexpectedly rebooted",
                                                          "Low RealMemory*",
                                                          "Low CPUs",
                                                          "Low TmpDisk",
                                                          "Low socket*core*thread count",
                                                          "gres/*",
                                                          "NO NETWORK ADDRESS FOUND",
                                                          "Duplicate jobid",
                                                          "Epilog error",
                                                          "Prolog error",
                                                          "Job env setup error",
                                                          "batch job complete failure",
                                                          "Kill task failed",
                                                          "ResumeTimeout reached",
                                                          "Powered down",
                                                          "Powered down after SuspendTimeout",
                                                          "Powered down after resume",
                                                          "Reboot ASAP",
                                                          "reboot ASAP",
                                                          "reboot requested",
                                                          "reboot issued",
                                                          "reboot complete",
                                                          "reboot timed out",
                                                          "(null)"};
constexpr std::string_view kReasonJoint =
    " : ";  ///< slurmctld adds its words behind those that were there

bool isOwnWord(std::string_view word) {
  return std::any_of(kOwnReasons.begin(), kOwnReasons.end(), [word](std::string_view own) {
    return own.ends_with('*') ? word.starts_with(own.substr(0, own.size() - 1)) : word == own;
  });
}

bool isSlurmctlds(std::string_view reason) {
  while (true) {
    const auto end = reason.find(kReasonJoint);
    if (!isOwnWord(reason.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    reason.remove_prefix(end + kReasonJoint.size());
  }
}

/// Whether muster may have given a reason: this process's user, or root, as whom it may have run
/// before. Anybody can begin a reason with muster's words.
bool isOwnUser(std::string_view user) {
  static const uid_t kUid = geteuid();
  static const std::string kName = [] {
    std::array<char, 4096> room{};
    passwd entry{}, *found = nullptr;
    getpwuid_r(kUid, &entry, room.data(), room.size(), &found);
    return std::string(found ? found->pw_name : "");
  }();
  return user.empty() || user == "root" || user == kName || user == std::to_string(kUid);
}

bool anyOf(const std::set<std::string>& flags, std::span<const std::string_view> wanted) {
  return std::any_of(wanted.begin(), wanted.end(), [&flags](std::string_view flag) {
    return flags.count(std::string(flag)) > 0;
  });
}

bool isWorking(const std::string& base) {
  return std::find(kWorkingStates.begin(), kWorkingStates.end(), base) != kWorkingStates.end();
}

std::string firstLines(std::string_view text) {
  return std::string(text.substr(0, std::min(text.size(), kQuotedBytes)));
}

}  // namespace

std::optional<std::string_view> fieldOf(std::string_view record, std::string_view key) {
  const auto label = fmt::format("{}=", key);
  std::size_t at = record.starts_with(label) ? 0 : record.find(" " + label);
  if (at == std::string_view::npos) return std::nullopt;
  if (at > 0) ++at;
  const auto value = record.substr(at + label.size());
  return value.substr(0, value.find_first_of(" \n"));
}

bool SlurmNode::hasJobs() const {
  return !down() && (has_listed_job || allocated_cpus > 0 || base == "ALLOCATED" ||
                     base == "MIXED" || flags.count("COMPLETING") > 0);
}

bool SlurmNode::takesJobs() const { return wouldTakeJobs() && !anyOf(flags, kAwayFlags); }

bool SlurmNode::wouldTakeJobs() const { return isWorking(base) && !anyOf(flags, kHeldFlags); }

bool SlurmNode::reasonIsMusters() const {
  return reason.starts_with(kDrainReasonPrefix) && isOwnUser(reason_by);
}

bool SlurmNode::takenOutByPerson() const {
  if (reasonIsMusters()) return false;
  if (flags.contains("FAIL")) return true;
  const bool is_slurmctlds = !reason.empty() && isSlurmctlds(reason);
  if (draining()) return !is_slurmctlds;
  return down() && !reason.empty() && !reason_by.empty() && !is_slurmctlds;
}

std::string SlurmNode::state() const {
  auto text = base;
  for (const auto& flag : flags) text += "+" + flag;
  return text;
}

Result<SlurmNode> parseSlurmNode(std::string_view text) {
  auto state = fieldOf(text, "State");
  if (!text.starts_with("NodeName=") || !state || state->empty())
    return fail(ErrorCode::Corrupt, "scontrol show node said: " + firstLines(text));
  SlurmNode node;
  for (bool first = true; !state->empty(); first = false) {
    auto end = state->find('+');
    auto word = state->substr(0, end);
    *state = end == std::string_view::npos ? std::string_view{} : state->substr(end + 1);
    if (word.ends_with('*')) {  // the short form of NOT_RESPONDING
      node.flags.emplace("NOT_RESPONDING");
      word.remove_suffix(1);
    }
    const auto* compact =
        first ? std::ranges::find(kCompactStates, word, &CompactState::word) : kCompactStates.end();
    if (compact != kCompactStates.end()) {
      node.base = compact->base;
      node.flags.emplace(compact->flag);
    } else if (first) {
      node.base = word;
    } else {
      node.flags.emplace(word);
    }
  }
  if (auto cpus = fieldOf(text, "CPUAlloc"))
    std::from_chars(cpus->data(), cpus->data() + cpus->size(), node.allocated_cpus);
  auto started = fieldOf(text, "SlurmdStartTime");
  node.slurmd_was_seen = started && *started != "None" && *started != "Unknown";
  if (auto at = text.find(" Reason="); at != std::string_view::npos) {
    auto reason = text.substr(at + 8);
    node.reason = reason.substr(0, reason.find('\n'));
    if (auto who = node.reason.rfind(" [");
        who != std::string::npos && node.reason.ends_with(']')) {  // "[root@time]"
      const auto stamp = node.reason.substr(who + 2, node.reason.size() - who - 3);
      node.reason_by = stamp.substr(0, stamp.rfind('@'));
      if (auto time = parseWallTime(stamp.substr(stamp.rfind('@') + 1) + "Z"))
        node.reason_since = *time;
      node.reason.erase(who);
    }
  }
  return node;
}

Async<io::ProcessExit> Scontrol::tool(std::string program, std::vector<std::string> args) {
  io::Command command;
  command.program = std::move(program);
  command.args = std::move(args);
  command.env = env_;
  command.timeout = kToolTimeout;
  co_return co_await processes_.run(std::move(command));
}

Async<std::optional<SlurmNode>> Scontrol::node(std::string name) {
  CO_TRY(nodes, co_await nodes_.look(name));
  const auto found = nodes->find(name);
  if (found == nodes->end()) co_return std::optional<SlurmNode>();
  if (!found->second) co_return fail(found->second.error());
  co_return std::optional<SlurmNode>(*found->second);
}

Async<Scontrol::List::Answer> Scontrol::ask(std::set<std::string> names) {
  co_return co_await (names.size() == 1 ? askOne(*names.begin()) : askAll());
}

Async<Scontrol::List::Answer> Scontrol::askOne(std::string name) {
  std::vector<std::string> args = {"show", "node", name, "-o"};
  CO_TRY(exit, co_await tool("scontrol", std::move(args)));
  auto nodes = std::make_shared<List::Entries>();
  // A record may quote the words of a person ("Reason=GPU 3 not found"): only slurmctld's own
  // sentence means that there is no such node.
  const auto unknown = fmt::format("Node {} not found", name);
  const bool known =
      exit.out.starts_with("NodeName=") ||
      (exit.out.find(unknown) == std::string::npos && exit.err.find(unknown) == std::string::npos);
  if (known && exit.code != 0)
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("slurmctld does not answer: {}", firstLines(exit.err)));
  if (!known) co_return List::Answer(std::move(nodes));
  auto node = parseSlurmNode(exit.out);
  if (node && !node->down() && !node->hasJobs()) {
    std::vector<std::string> only = {"--nodelist=" + name};
    CO_TRY(busy, co_await nodesWithJobs(std::move(only)));
    node->has_listed_job = !busy.empty();
  }
  nodes->emplace(name, std::move(node));
  co_return List::Answer(std::move(nodes));
}

Async<Scontrol::List::Answer> Scontrol::askAll() {
  const auto asked = nodes_.now();
  std::vector<std::string> args = {"show", "node", "-o"};
  CO_TRY(exit, co_await tool("scontrol", std::move(args)));
  if (exit.code != 0)
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("slurmctld does not answer: {}", firstLines(exit.err)));
  auto nodes = std::make_shared<List::Entries>();
  constexpr std::string_view kLabel = "NodeName=";
  for (std::string_view rest = exit.out; !rest.empty();) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.starts_with(kLabel))
      nodes->emplace(line.substr(kLabel.size(), line.find(' ') - kLabel.size()),
                     parseSlurmNode(line));
  }
  std::vector<std::string> everywhere;
  CO_TRY(busy, co_await nodesWithJobs(std::move(everywhere)));
  for (auto& [name, node] : *nodes)
    if (node) node->has_listed_job = busy.contains(name);
  List::Answer all = std::move(nodes);
  nodes_.keep(asked, all);
  co_return all;
}

Async<std::set<std::string>> Scontrol::nodesWithJobs(std::vector<std::string> only) {
  std::vector<std::string> args = {"--all", "--noheader", "--states=RUNNING,SUSPENDED",
                                   "--format=%N"};
  args.insert(args.end(), only.begin(), only.end());
  CO_TRY(exit, co_await tool("squeue", std::move(args)));
  if (exit.code != 0)
    co_return fail(ErrorCode::Unavailable, fmt::format("squeue: {}", firstLines(exit.err)));
  std::set<std::string> out;
  for (std::string_view rest = exit.out; !rest.empty();) {
    auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    while (line.ends_with(' ')) line.remove_suffix(1);
    if (line.empty()) continue;
    auto names = inventory::expandHostlist(line);
    if (!names)
      co_return fail(ErrorCode::Corrupt, fmt::format("squeue named nodes as '{}': {}",
                                                     firstLines(line), names.error().text()));
    out.insert(names->begin(), names->end());
  }
  co_return out;
}

Async<std::string> Scontrol::update(std::vector<std::string> args) {
  args.insert(args.begin(), "update");
  auto what = fmt::format("{}", fmt::join(args, " "));
  nodes_.ordered();
  auto exited = co_await tool("scontrol", std::move(args));
  nodes_.ordered();
  CO_TRY(exit, std::move(exited));
  if (exit.code != 0)
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("scontrol {}: {}", what, firstLines(exit.err + exit.out)));
  co_return std::string();
}

Async<std::string> Scontrol::jobs(std::string name) {
  std::vector<std::string> args = {"--nodelist=" + name, "--states=RUNNING,COMPLETING,SUSPENDED",
                                   "--noheader", "--format=job %i of %u, %L left"};
  CO_TRY(exit, co_await tool("squeue", std::move(args)));
  if (exit.code != 0)
    co_return fail(ErrorCode::Unavailable, fmt::format("squeue: {}", firstLines(exit.err)));
  auto text = firstLines(exit.out);
  while (text.ends_with('\n')) text.pop_back();
  for (auto at = text.find('\n'); at != std::string::npos; at = text.find('\n', at))
    text.replace(at, 1, "; ");
  co_return text;
}

Async<std::string> Scontrol::drain(std::string name, std::string reason) {
  for (auto& c : reason)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  std::vector<std::string> args = {"NodeName=" + name, "State=DRAIN",
                                   "Reason=" + reason.substr(0, kMaxReasonBytes)};
  co_return co_await update(std::move(args));
}

Async<std::string> Scontrol::resume(std::string name) {
  std::vector<std::string> args = {"NodeName=" + name, "State=RESUME"};
  co_return co_await update(std::move(args));
}

}  // namespace muster::pool
