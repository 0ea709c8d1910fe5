// SPDX-License-Identifier: Apache-2.0
// Reservations of Slurm for work that is to begin at a time that is known: no job starts that would
// run into it, so the nodes are free then, instead of being drained late. docs/pools.md,
// docs/adr/0340
//
// What is there is read from slurmctld each time and compared with what should be there, so nothing
// is remembered: after a crash the next look deletes what nobody wants any more. A reservation is
// muster's by its name, which holds the cluster and the run; others are never touched.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/io/process.h"
#include "inventory/model/fwd.h"
#include "pool/pool.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::pool {

/// What should be reserved for one run in one pool.
struct Reservation {
  std::string run;  ///< id of the run
  std::string pool;
  std::set<std::string> nodes;
  WallTime from{}, until{};
  /// It waits for its time. Otherwise the run has begun: what is reserved stays so only for those
  /// of `nodes` that are still in the reservation, and nothing is made or moved.
  bool is_ahead = true;
};

/// As slurmctld has it.
struct SlurmReservation {
  std::string name;
  std::set<std::string> nodes;
  WallTime from{}, until{};
  bool is_active = false;
};
/// `scontrol show reservation -o`, with its times in UTC. Pure. Errors: Corrupt
Result<std::vector<SlurmReservation>> parseReservations(std::string_view text);

/// "muster-CLUSTER-RUN-POOL"
std::string reservationName(const std::string& cluster, const Reservation& reservation);
/// Whether a muster of this cluster has made it. Pure.
bool isOwnReservation(std::string_view name, std::string_view cluster);

/// Words for scontrol, one list an order: what makes `present` what is wanted. Pure.
std::vector<std::vector<std::string>> reservationOrders(
    const std::string& cluster, const std::vector<Reservation>& wanted,
    const std::vector<SlurmReservation>& present, WallTime now);

/// The reservations in the Slurm clusters of all pools that ask for some. Borrowed.
class Reservations {
 public:
  Reservations(const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
               PoolOptions options);
  /// No pool asks for reservations: nothing is to be done.
  bool isIdle() const { return confs_.empty(); }
  /// One look, and what follows from it. Errors, after all that could be done: Unavailable
  /// (slurmctld does not answer, or refuses: its words)
  Async<void> keep(std::vector<Reservation> wanted);

 private:
  Async<void> keepIn(std::string conf, std::vector<Reservation> wanted);
  Async<std::string> scontrol(std::string conf, std::vector<std::string> args);
  Async<std::set<std::string>> nodesOf(std::string conf);

  const inventory::Cluster& cluster_;
  io::ProcessRunner& processes_;
  Clock& clock_;
  const PoolOptions options_;
  std::map<std::string, std::set<std::string>> confs_;  ///< slurm.conf → pools that ask
};

}  // namespace muster::pool
