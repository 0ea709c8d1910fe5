// SPDX-License-Identifier: Apache-2.0
// What the kernel's amdgpu says of one GPU, from its files. Source: the kernel's documentation of
// amdgpu (hwmon, RAS error counts, gpu_metrics), kgd_pp_interface.h (gpu_metrics v1.6 to v1.8).
#pragma once

#include "validate/burn/telemetry.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace muster::burn::hip {

/// Accumulated residencies of throttling, in cycles of the firmware's loop, and what they are
/// measured by.
struct Residencies {
  std::uint64_t clock_ns = 0;
  std::uint32_t cycles = 0, board = 0, power = 0, socket_heat = 0, regulator_heat = 0, hbm_heat = 0;
};
/// Of the bytes of gpu_metrics; nullopt: another version, or not offered by this GPU.
std::optional<Residencies> parseResidencies(std::string_view gpu_metrics);

class AmdBoard {
 public:
  /// `devices`: /sys/bus/pci/devices
  AmdBoard(const std::filesystem::path& devices, const std::string& pci);

  /// Empty: not known.
  std::string serial() const;
  Telemetry sample();

 private:
  void addThrottling(Telemetry& out);

  const std::filesystem::path folder_;
  std::optional<Residencies> last_;
  std::uint64_t power_ns_ = 0, heat_ns_ = 0, board_ns_ = 0;  ///< since the first sample
};

}  // namespace muster::burn::hip
