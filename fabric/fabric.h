// SPDX-License-Identifier: Apache-2.0
// Facade of fabric/: declared topology, subnet manager, partitions, declared-versus-found.
//
//   topology/   the declaration expanded to devices and cables; the texts of ibnetdiscover and
//   iblinkinfo discovery/  looking at the real fabric: InfiniBand tools, and two programs of our
//   own that ask it directly compare/    declared against found, and the fewest moves of cables
//   opensm/     files and process of the subnet manager, its log, partitions
//   routing/    the tables in the switches, walked
//   rehearsal/  the declared fabric in ibsim, fault by fault
//   health/     counters of every cable over a window
//   roce/       one marking for hosts and switches
//   exports/    cabling sheet, plot, files for Slurm, Kubernetes, NCCL, Prometheus
//
// Beside this file: the phases, of the fabric (phase) and of what single nodes need
// (node_services).
#pragma once

#include "base/io/process.h"
#include "fabric/options.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/phase.h"

#include <functional>
#include <memory>
#include <string>

namespace muster::fabric {

/// `fabric`: its name; empty: the only one.
std::unique_ptr<lifecycle::Phase> makeFabricPhase(const inventory::Cluster& cluster,
                                                  io::ProcessRunner& processes, Clock& clock,
                                                  FabricOptions options,
                                                  const std::string& fabric = {});
/// One phase for all InfiniBand fabrics that are managed. `options` of each.
std::unique_ptr<lifecycle::Phase> makeFabricPhases(
    const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
    const std::function<FabricOptions(const std::string& fabric)>& options);

}  // namespace muster::fabric
