// Fabric CI: the declared fabric in ibsim, with real OpenSM and the files that muster would give it, and one fault after the other.
//
// Asked after each fault: is the declared routing engine still in force, does every pair of HCAs that is left have a way
// through the tables that really are in the switches, does the comparison name exactly this fault, and does doing what the
// repair says mend it.
#pragma once

#include "fabric/fabric.h"
#include "fabric/forwarding.h"

namespace muster::fabric {

enum class FaultKind { CablePulled, SwitchLost, RailSwapped, PartitionsTypo, ManagerLost };
std::string_view toString(FaultKind kind);
inline constexpr std::array kAllFaults = {FaultKind::CablePulled, FaultKind::SwitchLost, FaultKind::RailSwapped, FaultKind::PartitionsTypo,
                                          FaultKind::ManagerLost};

struct Fault {
  FaultKind kind;
  std::string name;         ///< "leaf-su1-r0 port 33 – spine-001 port 1", a switch, a node, "second line"
  std::vector<Link> links;  ///< CablePulled: the one; RailSwapped: the two declared ones
};
struct FaultOutcome {
  Fault fault;
  std::vector<std::string> problems;  ///< what should not be; empty: held
  std::string effect;                 ///< in a few words: what it did to routing and reachability
  double seconds = 0;
  double failover_seconds = 0;  ///< ManagerLost: from the kill to the standby's SUBNET UP
};
struct RehearsalReport {
  std::string fabric, error;
  std::string routing_engine;  ///< in force while healthy
  std::size_t hcas = 0, switches = 0, cables = 0;
  Reachability healthy;
  bool slowed = false;  ///< links faster than ibsim knows were rehearsed as HDR
  std::vector<FaultOutcome> outcomes;
  std::size_t manager_restarts = 0;  ///< because OpenSM had stopped sweeping
  std::vector<std::string> left_out;  ///< what was asked for and cannot be rehearsed, and why
  double seconds = 0;

  static constexpr int kHeld = 0, kBroke = 1, kNoAnswer = 2;
  int exitCode() const;
};

struct RehearsalOptions {
  std::filesystem::path folder;  ///< of the simulation: logs stay there
  std::set<FaultKind> kinds = {kAllFaults.begin(), kAllFaults.end()};
  std::function<void(const FaultOutcome&)> tell = [](const FaultOutcome&) {};
};

/// Every fault of the asked kinds that the declaration has. Pure.
std::vector<Fault> faultsOf(const Topology& declared, const inventory::Fabric& fabric, const std::set<FaultKind>& kinds);

Async<RehearsalReport> rehearse(const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock, RehearsalOptions options);
std::string toText(const RehearsalReport& report);
std::string toJson(const RehearsalReport& report);

}  // namespace muster::fabric
