// SPDX-License-Identifier: Apache-2.0
// What the inventory asks of a run: how many others must agree to it, and when it may take nodes
// out of work. Pure. docs/runs.md, docs/adr/0319
#pragma once

#include "base/clock.h"
#include "inventory/model/cluster.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/runs/run.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::app {

/// By the newest plan of the run and all that it was allowed before.
std::size_t approvalsNeeded(const inventory::Cluster& cluster, const lifecycle::Run& run);
/// Of a plan that no run carries out.
std::size_t approvalsNeeded(const inventory::Cluster& cluster, const lifecycle::Plan& plan,
                            const lifecycle::PlanImpact& impact);

/// A span in which something may begin; `closes` is not part of it.
struct Span {
  WallTime opens, closes;
  friend bool operator==(const Span&, const Span&) = default;
};
/// When the windows are open within a span: in order, none overlaps or touches another.
/// Errors: InvalidInput (a time zone that this machine does not have)
Result<std::vector<Span>> openSpans(const std::vector<inventory::MaintenanceWindow>& windows,
                                    Span within);

struct WindowState {
  bool is_open = true;
  std::optional<WallTime> next;    ///< when it opens; nullopt: not within a year, or it is open
  std::vector<std::string> pools;  ///< that have windows and lose nodes, by name
};
/// Whether nodes may be taken out of work now: all their pools must have a window open at once.
/// Errors: as openSpans
Result<WindowState> windowFor(const inventory::Cluster& cluster,
                              const std::vector<NodeName>& taken_out, WallTime now);

/// Of work that nobody can approve and that cannot wait: `apply` without a monitor. Errors: Denied
/// (it needs approvals, or a window is closed; says what to do)
Result<void> requireNoApprovals(const inventory::Cluster& cluster, const lifecycle::Plan& plan,
                                const lifecycle::PlanImpact& impact, WallTime now);

}  // namespace muster::app
