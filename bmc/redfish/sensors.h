// SPDX-License-Identifier: Apache-2.0
// Sensors, power supplies and leak detectors, in few requests a look: Thermal and Power hold all of
// a chassis, $expand gives a collection in one answer, and a metric report what remains. What only
// a request each would read takes turns.
#pragma once

#include "bmc/redfish/power_supplies.h"

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::bmc {

class RedfishSensors final : public Sensors {
 public:
  explicit RedfishSensors(RedfishResources& resources) : resources_(resources) {}

  std::string address() const override { return resources_.address(); }
  Async<std::vector<SensorReading>> sensors() override;
  Async<PowerSupplies> powerSupplies() override { return readPowerSupplies(resources_); }

 private:
  using Readings = std::vector<SensorReading>;
  using Steady = std::chrono::steady_clock::time_point;
  /// A chassis and where it leads; "": nowhere, or to nothing.
  struct Box {
    std::string thermal, power, sensors, power_subsystem, thermal_subsystem;
  };
  /// A sensor that has a request of its own.
  struct Single {
    std::optional<SensorReading> reading;  ///< nothing: it has none, or was not read yet
    Steady read_at{};                      ///< its definition, and its health
  };
  /// What was found, and holds for kPlanFor: only readings change from look to look.
  struct Plan {
    std::vector<Box> boxes;
    Steady made{};
    bool expand = true;  ///< until it turns out that sensors are not expanded
    std::map<std::string, std::vector<std::string>> listed;  ///< sensors of a collection
    std::map<std::string, Single> singles;                   ///< by URI
    std::optional<std::vector<std::string>> reports;         ///< that hold readings of singles
  };
  /// One look.
  struct Look {
    Readings out;
    std::set<std::string> shown;       ///< names and ids: a sensor may be listed in two chassis
    std::vector<std::string> wanted;   ///< singles
    std::optional<Error> unread = {};  ///< why something could not be read now
  };

  Async<std::shared_ptr<Plan>> planNow();
  Async<void> readOldLists(Box& box, Look& look);
  Async<void> readSensors(Plan& plan, Box& box, Look& look);
  Async<void> readSingles(Plan& plan, Look& look);
  Async<std::map<std::string, double>> reported(Plan& plan, const std::vector<std::string>& wanted);
  Async<void> readSupplies(Plan& plan, Look& look);
  Async<void> readLeakDetectors(Plan& plan, Look& look);
  Async<std::vector<Member>> membersOf(Plan& plan, std::string collection, std::size_t limit);
  /// What was read there last, while that is not too old: a resource that cannot be read now is not
  /// one without readings. Errors: Denied
  Result<void> takeLast(const std::string& uri, Error why, Look& look);
  Readings remember(const std::string& uri, Readings readings);

  RedfishResources& resources_;
  UntilForgotten<std::shared_ptr<Plan>> plan_;
  std::map<std::string, std::pair<Steady, Readings>> last_;  ///< by resource
};

}  // namespace muster::bmc
