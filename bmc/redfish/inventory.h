// SPDX-License-Identifier: Apache-2.0
// What a machine is and what it consists of: system, firmware, GPUs, and devices that still start.
#pragma once

#include "bmc/redfish/firmware_inventory.h"
#include "bmc/redfish/resources.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::bmc {

class RedfishInventory final : public Inventory {
 public:
  RedfishInventory(RedfishResources& resources, FirmwareInventory& firmware)
      : resources_(resources), firmware_(firmware) {}

  std::string address() const override { return resources_.address(); }
  Async<SystemInfo> system() override;
  Async<std::vector<FirmwareItem>> firmware() override;
  Async<Survey> survey() override;
  Async<std::vector<DeviceState>> devicesNotReady() override;
  Async<std::vector<BackgroundCopy>> backgroundCopies() override;

  /// The network adapters that are starting, being written, or unreadable; whether the host is on
  /// is the caller's to know.
  Async<std::vector<DeviceState>> lateAdapters();
  /// The MAC addresses are read again with the next system().
  void forgetMacs() {
    macs_.reset();
    boot_macs_.reset();
  }

 private:
  Async<std::vector<std::string>> macs(std::string collection);
  Async<std::vector<std::string>> bootMacs(std::string collection);
  Async<std::vector<ReportedIdentity>> reported(Json system);
  Async<std::vector<ReportedIdentity>> reportedByChassis(Json system);
  Async<std::vector<Survey::Gpu>> gpus();
  Async<std::vector<Survey::Gpu>> gpusOfChassis(std::vector<Member> systems);
  Async<std::vector<std::string>> macsOfAdapters();

  RedfishResources& resources_;
  FirmwareInventory& firmware_;
  std::optional<std::vector<std::string>> macs_, boot_macs_;
  UntilForgotten<std::vector<ReportedIdentity>> reported_by_chassis_;
  UntilForgotten<std::vector<std::string>> adapters_;  ///< collections of network adapters
};

}  // namespace muster::bmc
