// SPDX-License-Identifier: Apache-2.0
// What the virtual twin of a cluster looks like.
#pragma once

#include <string>

namespace muster::inventory {

struct LabSpec {
  int memory_mib = 1536;
  int vcpus = 1;
  int disk_gib = 4;
  int gpus = 0;  ///< simulated GPUs a node
  std::string gpu_model = "NVIDIA H100 80GB HBM3";
  std::string bmc = "muster";  ///< whose BMC the virtual ones play: lab/vbmc/vendor_profile.cc
};

}  // namespace muster::inventory
