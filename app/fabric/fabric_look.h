// SPDX-License-Identifier: Apache-2.0
// A fabric as it is known: as declared, as the newest look has found it, as its counters were read
// last. Nothing is discovered for it.
#pragma once

#include "app/fabric/fabric_cables.h"
#include "app/site/options.h"
#include "inventory/model/fwd.h"
#include "lab/lab.h"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::app {

struct FabricLook {
  std::string name;
  bool is_compute = true;
  std::vector<std::string> fabrics;  ///< all that can be asked for
  FabricView view;
  std::optional<fabric::KeptReport> diff, health;
};

/// What the newest comparison with the declaration has found.
struct FabricFound {
  WallTime looked_at{};
  std::string error, note;  ///< error: it could not be discovered
  std::size_t devices = 0, links = 0, deviations = 0, excluded = 0;
  std::vector<std::string> repairs;  ///< sentences for the technician, the first kMostRepairs
};
/// How the cables' counters were when they were read last.
struct FabricCounters {
  WallTime looked_at{};
  std::string error;
  double window_s = 0;
  std::map<std::string, std::size_t> grades;  ///< good, warning, unproven, bad → cables
  std::vector<std::string> hints;
};
struct FabricSummary {
  std::string name;
  std::vector<std::string> fabrics;
  std::size_t switches = 0, hcas = 0, cables = 0, faulty = 0;
  std::vector<FabricLevel> levels;
  std::optional<FabricFound> found;      ///< nothing: nobody has looked yet
  std::optional<FabricCounters> health;  ///< nothing: they were never read
};

struct FabricCableFilter {
  std::string fabric;   ///< empty: the compute fabric
  std::string device;   ///< a switch, HCA or node; empty: all
  bool faulty = false;  ///< only those that deviate or have errors
  bool has(const FabricCable& cable) const;
};

/// Of several the main one where none is named. Errors: NotFound (none is declared, or none of this
/// name)
Result<const inventory::Fabric*> fabricAskedFor(const inventory::Cluster& cluster,
                                                const std::string& name);
/// What a fabric declares, expanded: it takes a second for 16,384 HCAs. Errors: InvalidInput
Result<std::shared_ptr<const fabric::Topology>> declaredFabric(const inventory::Cluster& cluster,
                                                               const inventory::Fabric& fabric);
/// `declared`: of `fabric`.
FabricLook fabricLook(const Options& options, const std::optional<lab::LabHandle>& lab,
                      const inventory::Cluster& cluster, const inventory::Fabric& fabric,
                      const fabric::Topology& declared);
/// The same of this host's inventory and state folder. Errors: those of the inventory, NotFound
Result<FabricLook> fabricLook(const Options& options, const std::string& name);
FabricSummary summaryOf(const FabricLook& look);
/// As GET /fabric and GET /fabric/cables answer them (docs/api.md).
nlohmann::json toJson(const FabricSummary& summary);
nlohmann::json toJson(const FabricCable& cable);

}  // namespace muster::app
