// SPDX-License-Identifier: Apache-2.0
#include "cli/view/run_view.h"

#include "base/printable.h"
#include "cli/view/plan_view.h"
#include "lifecycle/runs/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace muster::cli {
namespace {

using lifecycle::Run;
using lifecycle::RunKind;
using lifecycle::RunReason;
using lifecycle::RunState;

std::string nodesOf(const Run& run) {
  if (run.kind == RunKind::ImageBuild)
    return run.image_build.image.empty() ? "missing images" : "image " + run.image_build.image;
  return run.apply.nodes.empty() ? "all nodes" : run.apply.nodes;
}

std::string stateText(const Run& run) {
  if (!run.unreadable.empty()) return "unreadable";
  std::string out(toString(run.state));
  if (run.reason != RunReason::None) out += fmt::format(" ({})", toString(run.reason));
  if (run.order != lifecycle::RunOrder::None)
    out += fmt::format(", {} ordered", toString(run.order));
  return out;
}

std::string progressText(const Run& run) {
  const auto& progress = run.progress;
  if (progress.rounds == 0) return "-";
  return fmt::format("{}/{}", progress.done, progress.planned);
}

}  // namespace

ExitCode exitCodeOf(RunState state) {
  switch (state) {
    case RunState::Done:
      return kOk;
    case RunState::Failed:
    case RunState::Outdated:
      return kFailed;
    default:
      return kWorkLeft;
  }
}

std::string runTable(const std::vector<Run>& runs) {
  if (runs.empty()) return "there are no runs\n";
  std::string out = fmt::format("{:<15}{:<15}{:<34}{:<9}{:<26}{:<16}{}\n", "ID", "KIND", "STATE",
                                "DONE", "ASKED AT", "BY", "NODES");
  for (const auto& run : runs)
    out += fmt::format("{:<15}{:<15}{:<34}{:<9}{:<26}{:<16}{}\n", run.id, toString(run.kind),
                       stateText(run), progressText(run), toString(run.asked_at),
                       printable(run.asked_by.principal), printable(nodesOf(run)));
  return out;
}

std::string runWaitsText(const Run& run) {
  if (run.state == RunState::Waiting)
    return fmt::format(
        "run {} waits until {}: {}; an admin may let it begin now: `muster run "
        "override {} --reason …`\n",
        run.id, muster::toString(run.waits_until), printable(run.text), run.id);
  if (run.state != RunState::NeedsApproval) return {};
  const auto approvals = approvalsOf(run);
  if (approvals < run.approvals_needed)
    return fmt::format("run {} waits for {} more to agree to plan {}: `muster run approve {}`\n",
                       run.id, run.approvals_needed - approvals, run.plan_hash.substr(0, 12),
                       run.id);
  return fmt::format("run {} waits until {} confirms plan {}: `muster run approve {}`\n", run.id,
                     printable(run.asked_by.principal), run.plan_hash.substr(0, 12), run.id);
}

std::string runText(const Run& run) {
  std::string out = fmt::format("run {}: {}, {}\n", run.id, toString(run.kind), stateText(run));
  if (!run.unreadable.empty()) return out + "  " + printable(run.unreadable) + "\n";
  const auto line = [&out](std::string_view name, const std::string& value) {
    if (!value.empty()) out += fmt::format("  {:<14}{}\n", name, printable(value));
  };
  line(run.kind == RunKind::ImageBuild ? "builds" : "nodes", nodesOf(run));
  if (run.kind == RunKind::Erase) {
    line("erases", run.erase.disks.empty()
                       ? std::string("all disks that are built in")
                       : fmt::format("the disks {}", fmt::join(run.erase.disks, ", ")));
    line("reason", run.erase.reason);
  }
  line("asked by", fmt::format("{}@{} ({}) at {}", run.asked_by.principal, run.asked_by.address,
                               run.asked_by.way, toString(run.asked_at)));
  line("command", run.apply.command);
  if (run.kind == RunKind::Validate)
    line("gates",
         fmt::format("{}{}",
                     run.validate.gates.empty()
                         ? std::string("all of the nodes' profiles")
                         : fmt::format("{}", fmt::join(run.validate.gates, ", ")),
                     run.validate.synchronized_load ? ", each rack's nodes at one moment" : ""));
  if (run.kind == lifecycle::RunKind::Rollout)
    line("rollout",
         fmt::format("{}{}{}", run.rollout.id, run.rollout.back ? ", undone" : "",
                     run.rollout.driver.empty() ? "" : ", driver " + run.rollout.driver));
  if (run.kind == RunKind::FirmwareRetry) line("reason", run.firmware_retry.reason);
  if (run.kind == RunKind::Isolate)
    line("tests",
         fmt::format(
             "{}{}{}", run.isolate.engine.empty() ? "by what the nodes have" : run.isolate.engine,
             run.isolate.min_gbps > 0 ? fmt::format(", at least {} Gb/s", run.isolate.min_gbps)
                                      : std::string(),
             run.isolate.until == "good" ? ", 16 rounds: good, not cleared" : ""));
  line("after restart", std::string(toString(run.after_restart)));
  line("plan", run.plan_hash);
  for (const auto& approval : run.approvals)
    line(approval.confirmation ? "confirmed by" : "approved by",
         fmt::format("{} ({}) at {}, plan {}{}", approval.by.principal, approval.by.way,
                     toString(approval.at), approval.plan_hash.substr(0, 12),
                     approval.void_because.empty() ? "" : "; VOID: " + approval.void_because));
  for (const auto& each : run.overrides)
    line("OVERRIDDEN by",
         fmt::format("{} ({}) at {}, against {}: {}{}; {}", each.by.principal, each.by.way,
                     toString(each.at), toString(each.against), each.reason,
                     each.void_because.empty() ? "" : "; VOID: " + each.void_because,
                     each.acknowledged_by.empty()
                         ? "nobody has acknowledged it: `muster run acknowledge " + run.id + "`"
                         : "acknowledged by " + each.acknowledged_by));
  if (run.progress.rounds > 0)
    line("progress", fmt::format("{} of {} actions done, rounds: {}, {} failed, {} blocked, {} not "
                                 "started, {} left to others",
                                 run.progress.done, run.progress.planned, run.progress.rounds,
                                 run.progress.failed, run.progress.blocked, run.progress.skipped,
                                 run.progress.held));
  line("worked on by", run.worked_on_by);
  line("", run.text);
  if (run.impact) out += impactText(*run.impact);
  for (const auto& stamp : run.stamps)
    out +=
        fmt::format("  {}  {}{}  {}\n", toString(stamp.at), toString(stamp.state),
                    stamp.reason == RunReason::None ? std::string()
                                                    : fmt::format(" ({})", toString(stamp.reason)),
                    printable(stamp.by));
  for (const auto& problem : run.problems) out += "  " + printable(problem) + "\n";
  return out + runWaitsText(run);
}

std::string runEndText(const Run& run) {
  std::string out = fmt::format("run {} is {}", run.id, stateText(run));
  if (run.progress.rounds > 0)
    out +=
        fmt::format("; {} actions done, {} failed, {} blocked, {} not started", run.progress.done,
                    run.progress.failed, run.progress.blocked, run.progress.skipped);
  out += "\n";
  if (!run.text.empty()) out += "  " + printable(run.text) + "\n";
  for (const auto& problem : run.problems)
    if (problem != run.text) out += "  " + printable(problem) + "\n";
  return out;
}

}  // namespace muster::cli
