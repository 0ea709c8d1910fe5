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
#include "fabric/compare/compare.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/phase.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::fabric {

/// Tools and opensm attach to the controller's HCA: SIM_HOST = ibsimNodeId(kControllerHca) in the
/// twin.
struct FabricOptions {
  std::filesystem::path run_folder;  ///< opensm.conf, root GUIDs, partitions.conf, logs, pid file
  std::vector<std::string> tool_prefix;  ///< put before each IB tool: {"ibsim-run"} in the twin
  std::map<std::string, std::string> tool_env;  ///< IBSIM_SOCKNAME, SIM_HOST in the twin
  std::chrono::seconds discovery_limit{
      60};  ///< for one ibnetdiscover: 16,384 HCAs take 10.5 s when nothing is lost
};
std::unique_ptr<lifecycle::Phase> makeFabricPhase(const inventory::Cluster& cluster,
                                                  io::ProcessRunner& processes, Clock& clock,
                                                  FabricOptions options);

/// One discovery of the whole fabric, compared with what the subnet manager sees when muster's own
/// is up. Errors: Unavailable (a MAD timed out, or the subnet manager sees other devices: an
/// incomplete discovery is no discovery)
Async<Topology> discover(io::ProcessRunner& processes, FabricOptions options);

/// What `muster fabric diff` shows.
struct DiffReport {
  std::string fabric;
  Topology declared, found;
  Comparison comparison;
  std::string error;  ///< why there is no answer; empty: there is one
  std::string note;   ///< what the answer leaves out

  static constexpr int kEqual = 0, kDeviates = 1, kNoAnswer = 2;
  int exitCode() const {
    return !error.empty() ? kNoAnswer : comparison.deviations.empty() ? kEqual : kDeviates;
  }
};
Async<DiffReport> diff(const inventory::Cluster& cluster, io::ProcessRunner& processes,
                       FabricOptions options);
/// The same, but for the switches' firmware, with what ibnetdiscover or iblinkinfo printed
/// elsewhere; that it printed nothing on stderr is the caller's word.
DiffReport diff(const inventory::Cluster& cluster, std::string_view found_text);
/// Looks again and again, `pause` after each; tells the first report and each that differs from the
/// one before. Ends when `tell` answers false.
Async<void> watch(const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
                  FabricOptions options, std::chrono::milliseconds pause,
                  std::function<bool(const DiffReport&)> tell);
std::string toText(const DiffReport& report);
std::string toJson(const DiffReport& report);

}  // namespace muster::fabric
