// SPDX-License-Identifier: Apache-2.0
// Power supplies, place by place, and their redundancy: PowerSubsystem, or Power as it was before.
#pragma once

#include "bmc/redfish/resources.h"

namespace muster::bmc {

/// All supplies of all chassis. A chassis that has a PowerSubsystem with supplies is not asked for
/// its Power: both show the same ones (Dell).
/// Errors: NotFound (no chassis shows one), Denied, and what the reads end with: a chassis that
/// cannot be read now is not one without supplies
Async<PowerSupplies> readPowerSupplies(RedfishResources& resources);

/// Of one Power resource, and of a PowerSubsystem with the members of its collection. Pure.
void addPower(const Json& power, PowerSupplies& out);
void addPowerSubsystem(const Json& subsystem, const std::vector<Member>& supplies,
                       PowerSupplies& out);

}  // namespace muster::bmc
