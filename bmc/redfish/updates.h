// SPDX-License-Identifier: Apache-2.0
// Firmware updates: what is the same whichever way an image takes. The ways are strategies
// (update_strategy.h, rollback.h).
#pragma once

#include "bmc/firmware_images.h"
#include "bmc/redfish/bmc_reset.h"
#include "bmc/redfish/firmware_inventory.h"
#include "bmc/redfish/resources.h"
#include "bmc/redfish/rollback.h"
#include "bmc/redfish/tasks.h"
#include "bmc/redfish/update_strategy.h"

#include <memory>
#include <string>
#include <vector>

namespace muster::bmc {

class RedfishUpdates final : public Updates {
 public:
  RedfishUpdates(RedfishResources& resources, FirmwareInventory& inventory, BmcReset& reset,
                 FirmwareImages& images)
      : resources_(resources),
        inventory_(inventory),
        reset_(reset),
        images_(images),
        tasks_(resources) {}

  std::string address() const override { return resources_.address(); }
  Async<std::string> startUpdate(FirmwareUpdate update) override;
  Async<TaskStatus> task(std::string uri) override;
  Async<TaskList> tasks() override;
  Async<bool> sharesPackage(std::string component, std::string other) override;
  Async<void> cancelStaged(std::string component, std::size_t waiting) override;
  Async<void> commitImage(std::string component) override;
  Async<std::string> previousImage(std::string component) override;
  Async<void> rollBack(std::string component) override;

 private:
  /// Chosen when they are first needed: what one has begun it also ends.
  Async<void> chooseStrategies();
  Async<TaskStatus> followed(std::string uri);
  ImageServices imageServices();
  Async<Json> updateParameters(std::string component);
  Async<void> refuseWhileUpdating();
  Async<std::string> refusal(RedfishReply reply, std::string component);

  RedfishResources& resources_;
  FirmwareInventory& inventory_;
  BmcReset& reset_;
  FirmwareImages& images_;
  RedfishTasks tasks_;
  std::vector<std::unique_ptr<UpdateStrategy>> strategies_;
};

}  // namespace muster::bmc
