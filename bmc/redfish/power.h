// SPDX-License-Identifier: Apache-2.0
// Power of the host, verified by reading its state; the BMC's own reset; and standby power.
#pragma once

#include "bmc/redfish/ac_cycle.h"
#include "bmc/redfish/bmc_reset.h"
#include "bmc/redfish/locate_led.h"
#include "bmc/redfish/resources.h"

#include <chrono>
#include <string>

namespace muster::bmc {

class RedfishPower final : public Power {
 public:
  RedfishPower(RedfishResources& resources, RedfishBios& bios, BmcReset& reset)
      : resources_(resources), bios_(bios), reset_(reset) {}

  std::string address() const override { return resources_.address(); }
  Async<void> power(PowerAction action) override;
  Async<void> resetBmc() override { return reset_.reset(); }
  Async<void> sendNmi() override;
  Async<void> acCycle() override;
  Async<bool> locateLed() override { return led_.isOn(); }
  Async<void> setLocateLed(bool on) override { return led_.set(on); }

 private:
  /// Both answer the system as it was read last, in the wanted state. `seen`: read just now; null:
  /// reads it.
  Async<SystemSnapshot> reach(PowerState wanted, std::string type, std::chrono::seconds limit,
                              SystemSnapshot seen = nullptr);
  Async<SystemSnapshot> waitForPower(PowerState wanted, std::chrono::steady_clock::time_point until,
                                     std::string after);

  RedfishResources& resources_;
  RedfishBios& bios_;
  BmcReset& reset_;
  LocateLed led_{resources_};
};

}  // namespace muster::bmc
