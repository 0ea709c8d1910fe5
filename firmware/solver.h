// SPDX-License-Identifier: Apache-2.0
// The order in which components reach their baseline. Pure: versions and constraints in, waves out.
//
// A step brings one component to its next version. No state on the way is a forbidden combination,
// whatever of a wave the machine activates when it is reset too early: within a wave every subset
// of its steps is allowed. A constraint that is broken already does not forbid the way out of it.
#pragma once

#include "firmware/activation_policy.h"
#include "inventory/model/firmware.h"

#include <map>
#include <string>
#include <vector>

namespace muster::firmware {

using Versions =
    std::map<std::string, std::string>;  ///< component (or a driver's probe) → running version

/// A component goes from → to. The image is the component's own, or one of its intermediate
/// versions.
struct UpdateStep {
  const inventory::FirmwareComponent* component = nullptr;
  std::string from, to;
  inventory::FirmwareImageFile image;
  Activation activation = Activation::None;
};

/// Steps that are staged one after the other and begin to run at one activation.
struct Wave {
  std::vector<UpdateStep> steps;
  Activation activation = Activation::None;
};

/// What stays as it is, and why.
struct Undone {
  const inventory::FirmwareComponent* component = nullptr;
  std::string running;  ///< "" when it is not known
  std::string why;
};

struct Schedule {
  std::vector<Wave> waves;
  std::vector<Undone> undone;
  const Undone* undoneOf(std::string_view component) const;
};

/// Shape:  baseline × running versions → waves. A component that is not listed in `running` is left
/// undone.
///         `running` may hold more than the baseline's components: constraints are about those too.
/// Order:  as few waves as can be; among those the baseline's declared order, the rest by
/// activation
///         (BMC first, AC last), then by name; constraints before all. Declared components keep
///         their order also where that costs a wave.
Schedule solve(const inventory::FirmwareBaseline& baseline, const Versions& running);

/// The wave that brings this component on: its own next one where nothing forbids to do that now,
/// else the first. Null: there is none.
const Wave* nextWaveFor(std::string_view component, const Schedule& schedule,
                        const inventory::FirmwareBaseline& baseline, const Versions& running);

/// The constraints that these versions break, in their own words with the versions that break them.
/// One that cannot be evaluated, because two versions cannot be compared, counts as broken.
std::vector<std::string> brokenConstraints(const inventory::FirmwareBaseline& baseline,
                                           const Versions& versions);

}  // namespace muster::firmware
