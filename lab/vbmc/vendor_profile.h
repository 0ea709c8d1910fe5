// SPDX-License-Identifier: Apache-2.0
// Whose BMC a virtual one plays: what it has and how it behaves (behaviour.h). Names and properties
// are those of captures; tests/lab/vbmc/vendor_profile_captures_test.cc compares them.
#pragma once

#include "base/result.h"
#include "lab/vbmc/behaviour.h"

#include <span>
#include <string>
#include <string_view>

namespace muster::lab::vbmc {

/// What makes a written image run.
enum class Becomes { AtOnce, BmcReset, PowerCycle, AcCycle };

struct ComponentRow {
  std::string_view name, version;
  Becomes becomes = Becomes::PowerCycle;
  bool copies = false;  ///< its second slot is filled in the background after it was activated
};

/// How it lets its certificate be signed: CertificateService.GenerateCSR; Certificate.Rekey in its
/// place; iLO's own HttpsCert.
enum class CertificateMethod { Service, Rekey, HpeHttpsCert };

/// How it gets images: MultipartHttpPushUri; HttpPushUri, as its dialect has it; it fetches them
/// itself.
enum class Takes { Multipart, Push, Fetch };

struct VendorProfile {
  std::string_view name;  ///< "idrac", for people
  std::string_view vendor, manufacturer, model, bmc_version;
  std::string_view bmc;   ///< the component that is the BMC itself
  std::string_view bios;  ///< and the one that the system shows as BiosVersion
  std::span<const ComponentRow> components;
  std::span<const std::string_view> resets;  ///< ResetType values that it takes
  bool names_vendor = true;                  ///< in the service root; else only as Oem key
  bool baseboard_needs_host = false;         ///< HGX_* cannot be read while the host is off
  bool tells_events = true;                  ///< offers a stream of Server-Sent Events
  CertificateMethod certificates = CertificateMethod::Service;
  bool bios_by_job =
      false;  ///< staged BIOS attributes take effect only where their PATCH asked for that
  Takes takes = Takes::Multipart;

  const Behaviour& behaviour() const { return behaviourOf(name); }
  const ComponentRow* find(std::string_view component) const;
};

/// muster, idrac, idrac-before-multipart, ilo, supermicro, dgx-h100, gb200, openbmc, simple-update.
std::span<const VendorProfile> vendorProfiles();
/// Errors: NotFound with the names that there are
Result<const VendorProfile*> findVendorProfile(std::string_view name);

}  // namespace muster::lab::vbmc
