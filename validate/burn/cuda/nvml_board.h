// SPDX-License-Identifier: Apache-2.0
// What NVML says of one GPU, found by its PCI address.
#pragma once

#include "validate/burn/telemetry.h"
#include "validate/checks/nvml.h"

namespace muster::burn::cuda {

class NvmlBoard {
 public:
  explicit NvmlBoard(std::string pci) : pci_(std::move(pci)), nvml_(validate::Nvml::open()) {}

  /// Empty: not known.
  std::string serial();
  Telemetry sample();

 private:
  /// Found once among all GPUs, then asked alone.
  std::optional<validate::GpuHealth> look();

  const std::string pci_;
  const Result<validate::Nvml> nvml_;
  std::optional<unsigned> index_;
};

}  // namespace muster::burn::cuda
