// SPDX-License-Identifier: Apache-2.0
// The boot override of a machine: written where the service wants it, verified by reading it again.
#pragma once

#include "bmc/redfish/boot_order.h"
#include "bmc/redfish/resources.h"
#include "bmc/redfish/virtual_media.h"
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
  Async<std::vector<VirtualMedium>> virtualMedia() override { return media_.read(); }
  Async<VirtualMedium> insertMedia(std::vector<std::string> urls) override {
    return media_.insert(std::move(urls));
  }
  Async<void> ejectMedia(std::string drive) override { return media_.eject(std::move(drive)); }
  Async<BootOrder> bootOrder() override { return order_.read(); }
  Async<void> setBootOrder(std::vector<std::string> references) override {
    return order_.write(std::move(references));
  }

 private:
  /// The resource to which an override is written; the system's is read by readSystem().
  Async<SystemSnapshot> read(std::string uri);
  Async<void> write(std::string uri, BootOverride what);

  RedfishResources& resources_;
  inventory::BootMode boot_mode_;
  RedfishBootOrder order_{resources_};
  RedfishVirtualMedia media_{resources_};
};

}  // namespace muster::bmc
