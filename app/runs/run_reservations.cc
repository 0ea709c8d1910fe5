// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_reservations.h"

#include "app/runs/run_policy.h"
#include "base/log.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/facet.h"
#include "lifecycle/model/finding.h"

#include <algorithm>

namespace muster::app {

using namespace lifecycle;

namespace {

constexpr std::chrono::seconds kLookInterval{10};
constexpr int kToldAfterFailures = 6;
constexpr std::chrono::hours kLongestWindow{24 * 8};

FacetRef troubleFacet() { return {Subject::cluster(), FacetName("reservations")}; }

/// When the windows that are open at `from` close; `from` itself where none is.
Result<WallTime> closesAt(const std::vector<inventory::MaintenanceWindow>& windows, WallTime from) {
  TRY(spans, openSpans(windows, {from, from + kLongestWindow}));
  for (const auto& span : spans)
    if (span.opens <= from && span.closes > from) return span.closes;
  return from;
}

bool isInPool(const FactSet& facts, const NodeName& node) {
  const auto* fact = facts.find(Subject(node), FacetName(std::string(kPoolFacet)));
  return fact && (fact->value == "in" || fact->value == "silent");
}

}  // namespace

Result<std::vector<pool::Reservation>> wantedReservations(const inventory::Cluster& cluster,
                                                          const std::vector<Run>& open,
                                                          const FactSet& facts, WallTime now) {
  std::vector<pool::Reservation> out;
  for (const auto& run : open) {
    if (!run.unreadable.empty() || !run.impact || isEnd(run.state)) continue;
    const bool waits = run.state == RunState::Waiting;
    std::map<std::string, pool::Reservation> by_pool;
    for (const auto& name : run.impact->taken_out) {
      const auto* node = cluster.findNode(name);
      if (!node || (!waits && !isInPool(facts, name))) continue;
      by_pool[cluster.profileOf(*node).pool].nodes.insert(name.str());
    }
    for (auto& [name, reservation] : by_pool) {
      const auto found = cluster.pools.find(name);
      if (found == cluster.pools.end() || !found->second.slurm) continue;
      const auto& ahead = found->second.slurm->reserve_hours;
      if (!ahead || (waits && run.waits_until - now > std::chrono::hours(*ahead))) continue;
      reservation.run = run.id;
      reservation.pool = name;
      reservation.is_ahead = waits;
      reservation.from = run.waits_until;
      TRY(closes, closesAt(found->second.maintenance, run.waits_until));
      reservation.until = std::max(closes, run.waits_until + run.impact->at_least);
      out.push_back(std::move(reservation));
    }
  }
  return out;
}

Async<void> keepReservationsOnce(const ReservationServices& services) {
  CO_TRY(open, services.runs.list({.open_only = true, .limit = kMaxOpenRuns}));
  CO_TRY(facts, services.store.facts());
  CO_TRY(wanted, wantedReservations(services.cluster, open, facts, services.clock.now()));
  co_return co_await services.reservations.keep(std::move(wanted));
}

Task<void> keepReservations(ReservationServices services) {
  int failures = 0;
  bool told = true;  // one of the process before is over as well
  for (;;) {
    if (services.reservations.isIdle()) {
      co_await services.clock.sleep(std::chrono::hours(1));
      continue;
    }
    const auto kept = co_await keepReservationsOnce(services);
    failures = kept ? 0 : failures + 1;
    if (failures == 1) logWarning("pool", "reservations in Slurm: {}", kept.error().str());
    if (kept && told) told = !services.store.clearFindings(troubleFacet()).has_value();
    if (failures == kToldAfterFailures)
      told = services.store
                 .addFinding({troubleFacet(), Severity::Warning,
                              "nodes cannot be reserved in Slurm ahead of maintenance: " +
                                  kept.error().str(),
                              "",
                              "see that slurmctld answers, and that muster's user may make "
                              "reservations there; the runs begin without them, and drain",
                              services.clock.now(), kMonitorSource})
                 .has_value();
    co_await services.clock.sleep(kLookInterval);
  }
}

}  // namespace muster::app
