// SPDX-License-Identifier: Apache-2.0
// The reset of the BMC itself, and of everything that takes it away: it has happened when the BMC
// was away, and is over when everything behind it answers again.
#pragma once

#include "bmc/redfish/inventory.h"
#include "bmc/redfish/resources.h"

#include <chrono>
#include <string>

namespace muster::bmc {

class BmcReset {
 public:
  BmcReset(RedfishResources& resources, RedfishInventory& inventory)
      : resources_(resources), inventory_(inventory) {}

  /// By the manager's own action.
  Async<void> reset();
  /// Orders a reset that takes the BMC away, and waits until it is back and stable.
  Async<void> resetThrough(std::string target, std::string type, std::string manager,
                           std::string reset_time_before);
  Async<void> waitForReset(std::string manager, std::string reset_time_before,
                           std::chrono::seconds limit);
  Async<void> stabilize();

 private:
  Async<std::string> whatIsNotBack(bool adapters_too);

  RedfishResources& resources_;
  RedfishInventory& inventory_;
};

}  // namespace muster::bmc
