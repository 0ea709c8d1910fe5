// SPDX-License-Identifier: Apache-2.0
// Tables that an inventory and a change have in common. Internal to inventory/.
#pragma once

#include "inventory/parse/change.h"
#include "inventory/schema/spec.h"

namespace muster::inventory {

const ObjectSpec* imageSpec();
const ObjectSpec* driverSpec();
const ObjectSpec* archiveSpec();
const ObjectSpec* hostSettingsSpec();
/// What host.crash_kernel of a driver needs of its other keys. (tables_host.cc)
void checkCrashKernel(const Driver& driver, const Value& map, Reader& reader);
const ObjectSpec* baselineSpec();
const ObjectSpec* unavailabilitySpec();
/// The table of a whole change file.
const ObjectSpec* changeSpec();

}  // namespace muster::inventory
