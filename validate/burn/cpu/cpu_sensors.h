// SPDX-License-Identifier: Apache-2.0
// What Linux says of processors and memory while they work: RAPL, cpufreq, hwmon, thermal
// throttling, EDAC.
#pragma once

#include "validate/burn/device.h"

#include <filesystem>

namespace muster::burn::cpu {

class CpuSensors {
 public:
  explicit CpuSensors(std::filesystem::path root) : root_(std::move(root)) {}
  /// Watts are the mean since the sample before; the first sample has none.
  Telemetry sample();

 private:
  std::optional<double> watts();
  std::filesystem::path root_;
  std::optional<double> energy_uj_;
  std::chrono::steady_clock::time_point energy_at_;
};

std::string firstLine(const std::filesystem::path& file);

}  // namespace muster::burn::cpu
