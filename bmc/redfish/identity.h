// SPDX-License-Identifier: Apache-2.0
// Reads what the resources of one BMC say of which machine it is (bmc/machine_identity.h).
#pragma once

#include "bmc/machine_identity.h"
#include "bmc/redfish/json_view.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {

class RedfishResources;

/// Whether two paths name one resource: HPE and AMI write some with a '/' at the end.
bool sameResource(std::string_view a, std::string_view b);

ReportedIdentity systemIdentity(const std::string& uri, const Json& system);
ReportedIdentity managerIdentity(const std::string& uri, const Json& manager);
ReportedIdentity serviceIdentity(const Json& service_root);
/// Of a chassis, as it stands to this system: Chassis where it encloses it and no other one, else
/// Part. Source: DSP0268 Chassis.ChassisType, Links.ComputerSystems
ReportedIdentity chassisIdentity(const std::string& uri, const Json& chassis,
                                 const std::string& system_uri);

/// MAC addresses of the network devices that the machine's firmware can boot from, as the device
/// paths of its BootOptions name them; what hangs on USB is left out. They are not all that the
/// machine has. Source: UEFI specification 10.3.4.18, MAC(…)
std::vector<std::string> macsOfBootOptions(const std::vector<Json>& options);

}  // namespace muster::bmc
