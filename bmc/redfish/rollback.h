// SPDX-License-Identifier: Apache-2.0
// The image that a component ran before, and an image that waits for its activation: one strategy a
// way to go back to the one, and to cancel the other, chosen by the quirk row.
#pragma once

#include "bmc/redfish/firmware_inventory.h"
#include "bmc/redfish/resources.h"
#include "bmc/redfish/tasks.h"

#include <functional>
#include <memory>
#include <string>

namespace muster::bmc {

struct PreviousImage {
  std::string version, uri;
};

class RollbackStrategy {
 public:
  virtual ~RollbackStrategy() = default;
  /// Errors: NotFound (the BMC holds none)
  virtual Async<PreviousImage> find(std::string component) = 0;
  /// Returns when it is taken in, or when nothing more is to be seen: the inventory decides.
  virtual Async<void> order(std::string component, PreviousImage image) = 0;
};

class CancelStagedStrategy {
 public:
  virtual ~CancelStagedStrategy() = default;
  /// See Updates::cancelStaged.
  virtual Async<void> cancel(std::string component, std::size_t waiting) = 0;
};

struct ImageServices {
  RedfishResources& resources;
  FirmwareInventory& inventory;
  std::function<Async<TaskStatus>(std::string uri)> task;  ///< Updates::task
};
std::unique_ptr<RollbackStrategy> makeRollbackStrategy(RollbackMethod method,
                                                       ImageServices services);
std::unique_ptr<CancelStagedStrategy> makeCancelStagedStrategy(CancelStagedMethod method,
                                                               ImageServices services);

}  // namespace muster::bmc
