// SPDX-License-Identifier: Apache-2.0
// What a device says of itself while it works.
#pragma once

#include <cstdint>
#include <optional>

namespace muster::burn {

/// One look at the sensors. What is not offered stays nullopt, which no evaluation takes for good.
struct Telemetry {
  double at_seconds = 0;
  std::optional<double> watts, limit_watts, clock_mhz, temperature_c;
  std::optional<std::uint64_t> throttle_power_ns, throttle_thermal_ns, throttle_hardware_ns,
      throttle_reasons;
  std::optional<std::uint64_t> ecc_corrected, ecc_uncorrected;
};

}  // namespace muster::burn
