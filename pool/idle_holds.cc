// SPDX-License-Identifier: Apache-2.0
#include "pool/idle_holds.h"

#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"
#include "pool/reservations.h"
#include "pool/scontrol.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::pool {
namespace {

using Words = std::vector<std::string>;

constexpr std::chrono::seconds kHoldToolLimit{30};
constexpr std::size_t kShownBytes = 300, kMaxHoldListBytes = 8u << 20;
constexpr std::string_view kIdle = "IDLE";

/// Reasons of a waiting job that starts as soon as nodes are free (slurm_protocol_defs.c,
/// job_state_reason_string; squeue of 22.05 adds words behind the second and third).
constexpr std::array<std::string_view, 3> kExactReasons{"None", "Resources", "Priority"};
constexpr std::array<std::string_view, 2> kBegunReasons{
    "ReqNodeNotAvail", "Nodes required for job are DOWN, DRAINED or reserved"};
constexpr std::string_view kUnavailable = "UnavailableNodes:";

std::vector<std::string> splitAt(std::string_view text, char by) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto end = text.find(by);
    if (end > 0) out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

template <class Each>
Result<void> eachLine(std::string_view text, const Each& each) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.empty()) TRY_OK(each(line));
  }
  return {};
}

std::string secondOf(WallTime at) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}", std::chrono::ceil<std::chrono::seconds>(at));
}

bool haveCommon(const std::set<std::string>& a, const auto& b) {
  return std::ranges::any_of(b, [&a](const std::string& each) { return a.contains(each); });
}

}  // namespace

Result<std::vector<ListedNode>> parseListedNodes(std::string_view text) {
  std::vector<ListedNode> out;
  TRY_OK(eachLine(text, [&out](std::string_view line) -> Result<void> {
    ListedNode node{std::string(fieldOf(line, "NodeName").value_or("")),
                    std::string(fieldOf(line, "State").value_or("")),
                    splitAt(fieldOf(line, "Partitions").value_or(""), ',')};
    if (node.name.empty() || node.state.empty())
      return fail(ErrorCode::Corrupt,
                  "scontrol show node said: " + std::string(line.substr(0, kShownBytes)));
    out.push_back(std::move(node));
    return {};
  }));
  return out;
}

Result<std::vector<WaitingJob>> parseWaitingJobs(std::string_view text) {
  std::vector<WaitingJob> out;
  TRY_OK(eachLine(text, [&out](std::string_view line) -> Result<void> {
    std::array<std::string_view, 3> words;
    auto rest = line;
    for (auto& word : words) {
      const auto bar = rest.find('|');
      if (bar == std::string_view::npos)
        return fail(ErrorCode::Corrupt, "squeue said: " + std::string(line.substr(0, kShownBytes)));
      word = rest.substr(0, bar);
      rest.remove_prefix(bar + 1);
    }
    WaitingJob job{std::string(words[0]), splitAt(words[1], ','), {}, std::string(rest)};
    if (!words[2].empty() && words[2] != "(null)") {
      TRY(names, inventory::expandHostlist(words[2]));
      job.nodes.insert(names.begin(), names.end());
    }
    out.push_back(std::move(job));
    return {};
  }));
  return out;
}

bool mayWant(const WaitingJob& job, const std::set<std::string>& partitions,
             const std::set<std::string>& nodes) {
  if (!haveCommon(partitions, job.partitions)) return false;
  if (!job.nodes.empty() && !haveCommon(nodes, job.nodes)) return false;
  const std::string_view reason = job.reason;
  if (std::ranges::find(kExactReasons, reason) != kExactReasons.end()) return true;
  if (std::ranges::none_of(kBegunReasons, [&](auto begun) { return reason.starts_with(begun); }))
    return false;
  const auto at = reason.find(kUnavailable);  // it waits for these, which are down or drained
  if (at == std::string_view::npos) return true;
  const auto names = inventory::expandHostlist(reason.substr(at + kUnavailable.size()));
  return !names || haveCommon(nodes, *names);
}

std::string holdName(const std::string& cluster, const std::string& node) {
  return fmt::format("muster-{}-check-{}", cluster, node);
}

IdleHolds::IdleHolds(const inventory::Cluster& cluster, io::ProcessRunner& processes,
                     PoolOptions options)
    : cluster_(cluster), processes_(processes), options_(std::move(options)) {}

std::string IdleHolds::confOf(const std::string& pool) const {
  const auto& slurm = *cluster_.pools.at(pool).slurm;
  return (slurm.config.empty() ? options_.slurm_conf : cluster_.folder / slurm.config).string();
}

Async<std::string> IdleHolds::tool(std::string pool, std::string program, Words args) {
  io::Command command;
  command.program = std::move(program);
  command.args = std::move(args);
  command.env = options_.tool_env;
  command.env["SLURM_CONF"] = confOf(pool);
  command.env["TZ"] = "UTC";
  command.timeout = kHoldToolLimit;
  command.max_output_bytes = kMaxHoldListBytes;
  const auto shown = command.str().substr(0, kShownBytes);
  CO_TRY(exit, co_await processes_.run(std::move(command)));
  if (exit.code != 0)
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{}: {}", shown, (exit.err + exit.out).substr(0, kShownBytes)));
  co_return exit.out;
}

Async<std::vector<ListedNode>> IdleHolds::nodesOf(std::string pool) {
  Words show{"show", "node", "-o"};
  CO_TRY(text, co_await tool(pool, "scontrol", std::move(show)));
  CO_TRY(nodes, parseListedNodes(text));
  std::set<std::string> partitions;
  std::erase_if(nodes, [&](const ListedNode& node) {
    const auto* known = cluster_.findNode(NodeName(node.name));
    if (!known || cluster_.profileOf(*known).pool != pool) return true;
    partitions.insert(node.partitions.begin(), node.partitions.end());
    return false;
  });
  partitions_[pool] = std::move(partitions);
  co_return std::move(nodes);
}

Async<bool> IdleHolds::doesJobWait(std::string pool, std::set<std::string> nodes) {
  Words args{"--noheader", "--states=PENDING", fmt::format("--format={}", kWaitingFormat)};
  CO_TRY(text, co_await tool(pool, "squeue", std::move(args)));
  CO_TRY(jobs, parseWaitingJobs(text));
  co_return std::ranges::any_of(
      jobs, [&](const WaitingJob& job) { return mayWant(job, partitions_[pool], nodes); });
}

Async<std::vector<NodeName>> IdleHolds::idle(std::string pool) {
  std::vector<NodeName> out;
  CO_TRY(nodes, co_await nodesOf(pool));
  std::set<std::string> names;
  for (const auto& node : nodes)
    if (node.state == kIdle && !held_[pool].contains(node.name)) {
      names.insert(node.name);
      out.emplace_back(node.name);
    }
  if (out.empty()) co_return std::move(out);
  CO_TRY(waits, co_await doesJobWait(pool, std::move(names)));
  if (waits) out.clear();
  co_return std::move(out);
}

Async<bool> IdleHolds::isWanted(std::string pool) {
  if (held_[pool].empty()) co_return false;
  co_return co_await doesJobWait(pool, held_[pool]);
}

/// By what slurmctld tells, not by the words in which it refuses.
Async<bool> IdleHolds::isFree(std::string pool, std::string node) {
  CO_TRY(nodes, co_await nodesOf(pool));
  const auto found = std::ranges::find(nodes, node, &ListedNode::name);
  if (found == nodes.end() || found->state != kIdle) co_return false;
  Words show{"show", "reservation", "-o"};
  CO_TRY(text, co_await tool(pool, "scontrol", std::move(show)));
  CO_TRY(present, parseReservations(text));
  co_return std::ranges::none_of(
      present, [&node](const SlurmReservation& each) { return each.nodes.contains(node); });
}

Async<bool> IdleHolds::hold(std::string pool, NodeName node, WallTime until) {
  const auto name = "ReservationName=" + holdName(cluster_.name, node.str());
  const auto end = "EndTime=" + secondOf(until);
  if (held_[pool].contains(node.str())) {
    Words longer{"update", name, end};
    CO_TRY_OK(co_await tool(pool, "scontrol", std::move(longer)));
    co_return true;
  }
  Words create{"create",     "reservation",        name, "StartTime=now", end,
               "Users=root", "Nodes=" + node.str()};
  held_[pool].insert(node.str());  // whatever becomes of this call, it is looked at and deleted
  const auto made = co_await tool(pool, "scontrol", std::move(create));
  if (made) co_return true;
  held_[pool].erase(node.str());
  CO_TRY(is_free, co_await isFree(pool, node.str()));
  if (is_free) co_return fail(made.error());
  co_return false;
}

Async<void> IdleHolds::release(std::string pool, NodeName node) {
  Words remove{"delete", "ReservationName=" + holdName(cluster_.name, node.str())};
  auto removed = co_await tool(pool, "scontrol", std::move(remove));
  if (removed) held_[pool].erase(node.str());
  if (removed) co_return Result<void>();
  Words show{"show", "reservation", "-o"};
  CO_TRY(text, co_await tool(pool, "scontrol", std::move(show)));
  CO_TRY(present, parseReservations(text));
  const auto name = holdName(cluster_.name, node.str());
  if (std::ranges::find(present, name, &SlurmReservation::name) != present.end())
    co_return std::unexpected(std::move(removed).error());
  held_[pool].erase(node.str());  // it has ended by itself
  co_return Result<void>();
}

Async<void> IdleHolds::releaseAll() {
  Result<void> out;
  for (const auto& [name, pool] : cluster_.pools) {
    if (!pool.slurm || !pool.slurm->active_checks) continue;
    Words show{"show", "reservation", "-o"};
    auto text = co_await tool(name, "scontrol", std::move(show));
    auto present = text ? parseReservations(*text)
                        : Result<std::vector<SlurmReservation>>(std::unexpected(text.error()));
    if (!present) {
      out = std::unexpected(present.error());
      continue;
    }
    for (const auto& each : *present) {
      if (each.nodes.size() != 1 || each.name != holdName(cluster_.name, *each.nodes.begin()))
        continue;
      auto released = co_await release(name, NodeName(*each.nodes.begin()));
      if (!released) out = std::move(released);
      logInfo("pool", "the hold {} of an earlier process is deleted", each.name);
    }
  }
  co_return out;
}

}  // namespace muster::pool
