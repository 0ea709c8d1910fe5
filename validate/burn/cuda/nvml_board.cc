// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cuda/nvml_board.h"

#include <algorithm>

namespace muster::burn::cuda {
namespace {

/// "00000000:3B:00.0" and "0000:3b:00.0" are the same place.
std::string tail(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text.size() > 12 ? text.substr(text.size() - 12) : text;
}

}  // namespace

std::optional<validate::GpuHealth> NvmlBoard::look() {
  if (!nvml_) return std::nullopt;
  if (index_) {
    auto gpu = nvml_->gpu(*index_);
    if (gpu && tail(gpu->identity.pci) == tail(pci_)) return std::move(*gpu);
    index_.reset();
  }
  const auto gpus = nvml_->gpus();
  if (!gpus) return std::nullopt;
  for (std::size_t i = 0; i < gpus->size(); ++i) {
    if (tail((*gpus)[i].identity.pci) != tail(pci_)) continue;
    index_ = static_cast<unsigned>(i);
    return (*gpus)[i];
  }
  return std::nullopt;
}

std::string NvmlBoard::serial() {
  const auto seen = look();
  return seen ? seen->identity.serial : "";
}

Telemetry NvmlBoard::sample() {
  Telemetry out;
  const auto seen = look();
  if (!seen) return out;
  const auto number = [](const auto& value, double unit) {
    return value ? std::optional(static_cast<double>(*value) * unit) : std::nullopt;
  };
  out.watts = number(seen->power_mw, 1e-3), out.limit_watts = number(seen->power_limit_mw, 1e-3);
  out.clock_mhz = number(seen->sm_mhz, 1), out.temperature_c = number(seen->temperature_c, 1);
  out.throttle_power_ns = seen->throttle_power_ns,
  out.throttle_thermal_ns = seen->throttle_thermal_ns,
  out.throttle_reasons = seen->throttle_reasons;
  out.throttle_hardware_ns =
      seen->throttle_board_ns;  // not the reliability counter: at its highest clock a good chip
                                // is held by its voltage
  out.ecc_corrected = seen->ecc_corrected_volatile,
  out.ecc_uncorrected = seen->ecc_uncorrected_volatile;
  return out;
}

}  // namespace muster::burn::cuda
