// SPDX-License-Identifier: Apache-2.0
// Sensors, power supplies and leak detectors. Thermal and Power are two requests for all of a
// chassis; Sensors may be five hundred.
#pragma once

#include "bmc/redfish/resources.h"

#include <string>
#include <vector>

namespace muster::bmc {

class RedfishSensors final : public Sensors {
 public:
  explicit RedfishSensors(RedfishResources& resources) : resources_(resources) {}

  std::string address() const override { return resources_.address(); }
  Async<std::vector<SensorReading>> sensors() override;

 private:
  Task<std::vector<SensorReading>> readingsOf(Json chassis);
  Task<std::vector<SensorReading>> powerSupplies(std::string subsystem);
  Task<std::vector<SensorReading>> leakDetectors(std::string subsystem);

  RedfishResources& resources_;
};

}  // namespace muster::bmc
