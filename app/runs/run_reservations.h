// SPDX-License-Identifier: Apache-2.0
// Which nodes are to be reserved in their scheduler for runs that wait for a maintenance window.
// docs/pools.md, docs/adr/0340
#pragma once

#include "base/async/task.h"
#include "inventory/model/cluster.h"
#include "lifecycle/model/facet.h"
#include "lifecycle/runs/run.h"
#include "lifecycle/store/runs.h"
#include "lifecycle/store/store.h"
#include "pool/reservations.h"

#include <vector>

namespace muster::app {

/// Of runs that wait: what they take out of each pool that asks for reservations, from when their
/// window opens until it closes, or as long as the run lasts at least. Of runs that have begun:
/// nodes that are still in their pool, which keep what they have. Pure.
/// Errors: InvalidInput (a time zone that this machine does not have)
Result<std::vector<pool::Reservation>> wantedReservations(const inventory::Cluster& cluster,
                                                          const std::vector<lifecycle::Run>& open,
                                                          const lifecycle::FactSet& facts,
                                                          WallTime now);

/// Borrowed.
struct ReservationServices {
  const inventory::Cluster& cluster;
  lifecycle::RunStore& runs;
  lifecycle::Store& store;
  Clock& clock;
  pool::Reservations& reservations;
};
/// For ever. What Slurm refuses is a finding of the cluster, facet `reservations`, until it does
/// not.
Task<void> keepReservations(ReservationServices services);
/// One look.
Async<void> keepReservationsOnce(const ReservationServices& services);

}  // namespace muster::app
