// SPDX-License-Identifier: Apache-2.0
// A subject's baseline against what is known of it: in which order its components come up, how long
// that takes, what is left undone.
#pragma once

#include "firmware/solver.h"
#include "lifecycle/model/facet.h"

namespace muster::inventory {
struct Cluster;
}
namespace muster::bmc {
struct FirmwareItem;
}

namespace muster::firmware {

inline FacetName facetOf(const std::string& component) {
  return FacetName("firmware." + component);
}
/// "" when the facet is not of a component.
std::string componentOf(const FacetName& facet);

/// Null for the cluster subject and for profiles without firmware.
const inventory::FirmwareBaseline* baselineOf(const inventory::Cluster& cluster,
                                              const lifecycle::Subject& subject);

/// Versions by the facts: the BMC's inventory, and what probes of drivers show.
Versions runningBy(const lifecycle::FactSet& facts, const lifecycle::Subject& subject);
Versions probesOf(const lifecycle::FactSet& facts, const lifecycle::Subject& subject);

/// How long flashes took, by component: what its own machine has shown.
using Durations = std::map<std::string, std::chrono::seconds>;

/// The evidence of a version's fact: what else the BMC says of the component. "": nothing.
std::string evidenceOf(const bmc::FirmwareItem& item);
/// The BMC says of the component that it cannot be updated (SoftwareInventory.Updateable: false).
bool isFixed(const lifecycle::FactSet& facts, const lifecycle::Subject& subject,
             const std::string& component);

inline FacetName tookFacet(const std::string& component) {
  return FacetName("firmware-took." + component);
}
Durations measuredBy(const lifecycle::FactSet& facts, const lifecycle::Subject& subject);
/// … and for whoever has shown nothing yet, the median of these machines.
Durations typicalOf(const std::vector<Durations>& machines);

/// A component at its place in the order. The first that is moved in a wave carries the time of the
/// whole wave.
struct PathStep {
  const inventory::FirmwareComponent* component = nullptr;
  std::chrono::seconds expected{0};
  std::string impossible = {};  ///< which constraint forbids it
};
struct UpgradePath {
  std::vector<PathStep> steps;  ///< every component of the baseline once: those in order as they
                                ///< are, others where their last step is
  Schedule schedule;
  Durations measured = {};
};
UpgradePath upgradePathOf(const inventory::FirmwareBaseline& baseline, const Versions& running,
                          Durations measured = {});
/// The schedule as it is carried out on this node: what has failed there for good stays as it is,
/// and is left undone with whyNotAgain. `running`: the versions that it was made from.
void leaveFailedUndone(Schedule& schedule, const Versions& running,
                       const lifecycle::Subject& subject, const lifecycle::FactSet& facts);

/// Of one flash, and of a whole wave with its activation: as declared, else as learned, else a
/// guess by the component's name.
std::chrono::minutes flashTime(const inventory::FirmwareComponent& component,
                               const Durations& measured = {});
std::chrono::minutes waveTime(const Wave& wave, const Durations& measured = {});

/// A node's way in one line for people: "3 waves, 2 resets, 1 AC cycle, about 74 min".
struct Totals {
  int flashes = 0, resets = 0, ac_cycles = 0;  ///< resets: of the BMC or by power
  std::chrono::minutes time{0};
};
Totals totalsOf(const Schedule& schedule, const Durations& measured = {});

}  // namespace muster::firmware
