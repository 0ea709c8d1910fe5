// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_policy.h"

#include "app/runs/run_scope.h"
#include "base/time_zone.h"
#include "inventory/model/approvals.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace muster::app {

using namespace lifecycle;
using inventory::Disturbance;
using inventory::MaintenanceWindow;

namespace {

/// Windows come back every week; what differs from week to week are the clocks of the zones.
constexpr std::chrono::days kHorizon{400};
constexpr std::chrono::days kLongestWindow{8};  ///< inventory/schema allows a week

using Names = std::set<std::string>;

/// Nodes by how much they are disturbed; each set includes those after it.
struct Disturbed {
  std::array<Names, 4> by;  ///< by Disturbance
  Names& of(Disturbance what) { return by.at(static_cast<std::size_t>(what)); }
  const Names& of(Disturbance what) const { return by.at(static_cast<std::size_t>(what)); }
  void add(Disturbance at_least, const std::string& node) {
    for (std::size_t i = 0; i <= static_cast<std::size_t>(at_least); ++i) by.at(i).insert(node);
  }
  void add(Disturbance at_least, const std::vector<NodeName>& nodes) {
    for (const auto& node : nodes) add(at_least, node.str());
  }
  void add(Disturbance at_least, const Names& nodes) {
    for (const auto& node : nodes) add(at_least, node);
  }
  void add(const PlanImpact& impact) {
    add(Disturbance::Drain, impact.taken_out);
    add(Disturbance::Reset, impact.reset);
    add(Disturbance::Wipe, impact.wiped);
  }
};

std::string poolOf(const inventory::Cluster& cluster, const NodeName& name) {
  const auto* node = cluster.findNode(name);
  return node ? cluster.profileOf(*node).pool : std::string();
}

std::size_t neededFor(const inventory::Cluster& cluster, const Disturbed& disturbed) {
  std::size_t out = 0;
  for (const auto& rule : cluster.approvals) {
    const auto counts = [&](const std::string& node) {
      return rule.pools.empty() ||
             std::ranges::find(rule.pools, poolOf(cluster, NodeName(node))) != rule.pools.end();
    };
    const auto nodes = std::ranges::count_if(disturbed.of(rule.disruption), counts);
    if (nodes >= rule.min_nodes) out = std::max(out, static_cast<std::size_t>(rule.approvals));
  }
  return out;
}

bool opensOn(const MaintenanceWindow& window, std::chrono::local_days date) {
  if (window.days.empty()) return true;
  const auto day = static_cast<inventory::Weekday>(std::chrono::weekday(date).c_encoding());
  return std::ranges::find(window.days, day) != window.days.end();
}

std::vector<Span> merged(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::opens);
  std::vector<Span> out;
  for (const auto& span : spans) {
    if (out.empty() || span.opens > out.back().closes)
      out.push_back(span);
    else
      out.back().closes = std::max(out.back().closes, span.closes);
  }
  return out;
}

std::vector<Span> inBoth(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::vector<Span> out;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Span both{std::max(a[i].opens, b[j].opens), std::min(a[i].closes, b[j].closes)};
    if (both.opens < both.closes) out.push_back(both);
    a[i].closes < b[j].closes ? ++i : ++j;
  }
  return out;
}

}  // namespace

std::size_t approvalsNeeded(const inventory::Cluster& cluster, const Run& run) {
  if (cluster.approvals.empty() || !run.impact || !hasSomethingToAsk(*run.impact)) return 0;
  Disturbed disturbed;
  disturbed.add(Disturbance::Any, namesOf(run.subjects));
  disturbed.add(Disturbance::Drain, namesOf(run.agreed_out));
  disturbed.add(Disturbance::Reset, namesOf(run.agreed_resets));
  disturbed.add(Disturbance::Wipe, namesOf(run.agreed_wipes));
  disturbed.add(*run.impact);
  return neededFor(cluster, disturbed);
}

std::size_t approvalsNeeded(const inventory::Cluster& cluster, const Plan& plan,
                            const PlanImpact& impact) {
  Run run;
  run.impact = impact;
  run.subjects = withSubjects("", plan);
  return approvalsNeeded(cluster, run);
}

Result<std::vector<Span>> openSpans(const std::vector<MaintenanceWindow>& windows, Span within) {
  using namespace std::chrono;
  std::vector<Span> out;
  for (const auto& window : windows) {
    TRY(zone, TimeZone::load(window.time_zone));
    const auto local = [&zone](WallTime at) {
      return floor<days>(zone.toLocal(floor<seconds>(at)));
    };
    const auto last = local(within.closes) + days(1);
    for (auto date = local(within.opens) - kLongestWindow; date <= last; date += days(1)) {
      if (!opensOn(window, date)) continue;
      const Span span{zone.toUtc(date + minutes(window.from_minute)),
                      zone.toUtc(date + minutes(window.from_minute)) + minutes(window.minutes)};
      if (span.closes > within.opens && span.opens < within.closes) out.push_back(span);
    }
  }
  return merged(std::move(out));
}

Result<WindowState> windowFor(const inventory::Cluster& cluster,
                              const std::vector<NodeName>& taken_out, WallTime now) {
  WindowState out;
  Names pools;
  for (const auto& node : taken_out)
    if (const auto pool = cluster.pools.find(poolOf(cluster, node));
        pool != cluster.pools.end() && !pool->second.maintenance.empty())
      pools.insert(pool->first);
  out.pools.assign(pools.begin(), pools.end());
  if (pools.empty()) return out;
  const Span within{now, now + kHorizon};
  std::vector<Span> open{within};
  for (const auto& pool : pools) {
    TRY(spans, openSpans(cluster.pools.at(pool).maintenance, within));
    open = inBoth(open, spans);
  }
  out.is_open = !open.empty() && open.front().opens <= now;
  if (!out.is_open && !open.empty()) out.next = open.front().opens;
  return out;
}

Result<void> requireNoApprovals(const inventory::Cluster& cluster, const Plan& plan,
                                const PlanImpact& impact, WallTime now) {
  const auto needed = approvalsNeeded(cluster, plan, impact);
  TRY(window, windowFor(cluster, impact.taken_out, now));
  if (needed == 0 && window.is_open) return {};
  std::string why;
  if (needed > 0) why = fmt::format("the inventory asks for {} approvals of this plan", needed);
  if (!window.is_open)
    why += fmt::format(
        "{}no maintenance window of pool {} is open now{}", why.empty() ? "" : ", and ",
        fmt::join(window.pools, ", "),
        window.next ? "; the next one opens at " + muster::toString(*window.next) : std::string());
  return fail(ErrorCode::Denied,
              why +
                  "; nothing was done. Let the monitor or server of the site carry it out: "
                  "`muster server`, then the same command without --direct");
}

}  // namespace muster::app
