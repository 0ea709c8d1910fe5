// SPDX-License-Identifier: Apache-2.0
// What a burn says: a verdict a stage and a device, with seeds to repeat it. Anything but Pass has
// not passed.
#pragma once

#include "validate/burn/device.h"

#include <map>
#include <nlohmann/json_fwd.hpp>

namespace muster::burn {

/// Slow: what was asked for did not fit into the time, and nothing that was seen is wrong; the rate
/// is among the values.
enum class Outcome { Pass, Fail, Timeout, NoData, Error, Slow };
std::string_view toString(Outcome outcome);  ///< "pass", "no-data"

struct StageReport {
  std::string name;  ///< "gemm fp32 integer"
  Outcome outcome = Outcome::NoData;
  std::vector<std::string> findings;     ///< why it has not passed
  std::map<std::string, double> values;  ///< a key ends in its unit
  std::uint64_t seed = 0;
  std::string golden;     ///< digest of what every device must compute
  std::string reference;  ///< digest of what this one computed on random data: equal on all devices
                          ///< of a model and library
  std::string product;    ///< of which: "n 16384, seed 6d7573746572"

  void fails(std::string why) { outcome = Outcome::Fail, findings.push_back(std::move(why)); }
  /// No verdict could be reached; a failure that is known already stays one.
  void lacks(Outcome why, std::string text);
};

struct DeviceReport {
  Identity identity;
  std::vector<StageReport> stages;
  std::vector<Telemetry> telemetry;  ///< one a second, and at the edges of stages
  Outcome outcome() const;           ///< the worst of its stages; no stage: NoData
};

struct Report {
  std::uint64_t seed = 0;
  std::vector<DeviceReport> devices;
  Outcome outcome() const;  ///< no device: NoData
};

nlohmann::json toJson(const Report& report);
/// For people: a line a stage.
std::string toText(const Report& report);

}  // namespace muster::burn
