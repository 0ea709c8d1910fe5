// SPDX-License-Identifier: Apache-2.0
// Fabric CI: the declared fabric in ibsim, with real OpenSM and the files that muster would give
// it, and one fault after the other.
//
// Asked after each fault: is the declared routing engine still in force, does every pair of HCAs
// that is left have a way through the tables that really are in the switches, does the comparison
// name exactly this fault, and does doing what the repair says mend it.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "base/io/process.h"
#include "fabric/packet_paths/forwarding.h"
#include "fabric/topology/topology.h"
#include "inventory/model/fwd.h"

#include <array>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fabric {

struct Comparison;

enum class FaultKind { CablePulled, SwitchLost, RailSwapped, PartitionsTypo, ManagerLost };
std::string_view toString(FaultKind kind);
inline constexpr std::array kAllFaults = {FaultKind::CablePulled, FaultKind::SwitchLost,
                                          FaultKind::RailSwapped, FaultKind::PartitionsTypo,
                                          FaultKind::ManagerLost};

struct Fault {
  FaultKind kind;
  std::string name;  ///< "leaf-su1-r0 port 33 – spine-001 port 1", a switch, a node, "second line"
  std::vector<Link> links;  ///< CablePulled: the one; RailSwapped: the two declared ones
};
struct FaultOutcome {
  Fault fault;
  std::vector<std::string> problems;  ///< what should not be; empty: held
  std::string effect;                 ///< in a few words: what it did to routing and reachability
  double seconds = 0;
  std::size_t together = 1;     ///< so many faults were there at once, this one among them
  double failover_seconds = 0;  ///< ManagerLost: from the kill to the standby's SUBNET UP
};
struct RehearsalReport {
  std::string fabric, error;
  std::string routing_engine;  ///< in force while healthy
  std::size_t hcas = 0, switches = 0, cables = 0;
  Reachability healthy;
  bool slowed = false;  ///< links faster than ibsim knows were rehearsed as HDR
  std::vector<FaultOutcome> outcomes;
  std::size_t manager_restarts = 0;   ///< because OpenSM had stopped sweeping
  std::vector<std::string> left_out;  ///< what was asked for and cannot be rehearsed, and why
  double seconds = 0;

  static constexpr int kHeld = 0, kBroke = 1, kNoAnswer = 2;
  int exitCode() const;
};

struct RehearsalOptions {
  std::string fabric = {};       ///< its name; empty: the only one
  std::filesystem::path folder;  ///< of the simulation: logs stay there
  std::set<FaultKind> kinds = {kAllFaults.begin(), kAllFaults.end()};
  std::size_t together = 8;  ///< at most so many faults that do not touch each other at once
                             ///< (faultGroups); 1: each alone
  std::function<void(const FaultOutcome&)> tell = [](const FaultOutcome&) {};
};

/// Every fault of the asked kinds that the declaration has. Pure.
std::vector<Fault> faultsOf(const Topology& declared, const inventory::Fabric& fabric,
                            const std::set<FaultKind>& kinds);

/// Faults that are injected at once: pulled cables that have no switch and no host in common, swaps
/// of different hosts; all others alone. A group that holds is taken as each of its faults holding:
/// a fabric that lacks more cables is no easier to route, the comparison must name every one of
/// them exactly, and each repair must mend its own. What that does not prove is an engine that
/// gives up over one missing cable and not over several. A group that breaks is rehearsed again,
/// each fault alone. Pure.
std::vector<std::vector<Fault>> faultGroups(std::vector<Fault> faults, const Topology& declared,
                                            std::size_t together);

/// Whether the comparison says exactly these faults, which are of one kind. Empty: it does. Pure.
std::vector<std::string> misnamed(const std::vector<Fault>& faults, const Comparison& compared);

Async<RehearsalReport> rehearse(const inventory::Cluster& cluster, io::ProcessRunner& processes,
                                Clock& clock, RehearsalOptions options);
std::string toText(const RehearsalReport& report);
std::string toJson(const RehearsalReport& report);

}  // namespace muster::fabric
