// SPDX-License-Identifier: Apache-2.0
// What an operator accepts as the identity of a machine whose BMC reports neither the declared
// serial nor a MAC: a value that the BMC does report, named with where it stands (docs/adr/0225).
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::inventory {

/// One value of one kind. Redfish: Chassis.SerialNumber, ComputerSystem.UUID, Manager.SerialNumber,
/// Manager.UUID, ServiceRoot.UUID.
struct AcceptedIdentity {
  enum class Kind { ChassisSerial, SystemUuid, ManagerSerial, ManagerUuid, ServiceUuid };
  Kind kind = Kind::ChassisSerial;
  std::string value;

  /// "manager-uuid=d82d…"
  std::string str() const;
  bool operator==(const AcceptedIdentity&) const = default;
};

/// Of the text that the inventory holds: KIND=VALUE, divided by blanks; all of them must be found.
/// Errors: InvalidInput (the text says how to write it)
Result<std::vector<AcceptedIdentity>> parseAcceptedIdentity(std::string_view text);
std::string str(const std::vector<AcceptedIdentity>& accepted);
/// "chassis-serial", as the inventory spells it.
std::string_view word(AcceptedIdentity::Kind kind);

}  // namespace muster::inventory
