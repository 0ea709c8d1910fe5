// SPDX-License-Identifier: Apache-2.0
// The boot override of a machine: written where the service wants it, verified by reading it again.
#pragma once

#include "bmc/redfish/resources.h"
#include "inventory/model/fwd.h"
#include "inventory/model/profile.h"

#include <string>

namespace muster::bmc {

/// What the system boots from next, by its Boot object.
BootTarget bootOverrideOf(const Json& system);

class RedfishBoot final : public Boot {
 public:
  RedfishBoot(RedfishResources& resources, inventory::BootMode mode)
      : resources_(resources), boot_mode_(mode) {}

  std::string address() const override { return resources_.address(); }
  Async<void> bootOnce(BootTarget target) override;
  Async<void> boot(BootOverride what) override;

 private:
  /// The resource to which an override is written; the system's is read by readSystem().
  Async<SystemSnapshot> read(std::string uri);
  Async<void> write(std::string uri, BootOverride what);

  RedfishResources& resources_;
  inventory::BootMode boot_mode_;
};

}  // namespace muster::bmc
