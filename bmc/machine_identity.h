// SPDX-License-Identifier: Apache-2.0
// What a BMC says of which machine is behind it, and the order in which it is believed
// (docs/adr/0225). Pure.
//
// Vendors put serial and model in different resources: PCs in ComputerSystem, NVIDIA's Grace trays
// in Chassis and ServiceRoot.Product, and some nowhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {

/// Where a value stands, in the order in which it is believed.
enum class IdentityPlace {
  System,   ///< ComputerSystem
  Chassis,  ///< a Chassis that encloses this system and no other one
  Part,     ///< a Chassis that the system names and that is a part of it: a BMC card, a board
  Manager,  ///< Manager: serial and UUID of the BMC; what made and what model is the BMC's own
  Service,  ///< ServiceRoot: Product and Vendor
};
/// "system", "chassis", …
std::string_view word(IdentityPlace place);

/// What one resource reports. "" where it reports nothing, or what makers leave in an empty field.
struct ReportedIdentity {
  IdentityPlace place = IdentityPlace::System;
  std::string resource;  ///< its URI
  std::string manufacturer = {}, model = {}, serial = {}, uuid = {};

  bool isEmpty() const {
    return manufacturer.empty() && model.empty() && serial.empty() && uuid.empty();
  }
};

/// Whether a serial is one, and not what boards carry when nobody wrote any.
bool isRealSerial(std::string_view serial);
/// The text without blanks at its ends; "" when it is no real serial.
std::string realSerial(std::string_view serial);
/// "a serial of a machine" → compared without regard to blanks at the ends.
bool sameText(std::string_view a, std::string_view b);

/// The first that a member is reported by, in the order of IdentityPlace; null: nothing reports it.
const ReportedIdentity* firstWith(const std::vector<ReportedIdentity>& reported,
                                  std::string ReportedIdentity::* member);

}  // namespace muster::bmc
