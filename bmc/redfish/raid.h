// SPDX-License-Identifier: Apache-2.0
// RAID by Redfish: Storage resources of the system that have volumes, made and deleted there.
// Intel's VROC and controllers on cards are Storage resources alike.
#pragma once

#include "bmc/raid.h"
#include "bmc/redfish/resources.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::bmc {

class RedfishRaid final : public Raid {
 public:
  explicit RedfishRaid(RedfishResources& resources) : resources_(resources) {}

  std::string address() const override { return resources_.address(); }
  Async<std::vector<RaidController>> raidControllers() override;
  Async<RaidOrder> createVolume(VolumeOrder order) override;
  Async<RaidOrder> deleteVolume(std::string uri) override;

 private:
  Async<std::optional<RaidController>> controllerAt(Member storage);
  Async<std::vector<Json>> controllersOf(Json storage);
  Async<Json> capabilitiesOf(Json collection);
  Async<std::string> jobOf(std::string task);

  RedfishResources& resources_;
};

}  // namespace muster::bmc
