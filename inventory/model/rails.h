// SPDX-License-Identifier: Apache-2.0
// The HCAs of a node that is on a fabric.
#pragma once

#include <optional>
#include <string>

namespace muster::inventory {

/// One HCA of a node that is on a fabric; the rails of a fabric are numbered by their order.
struct Rail {
  std::string hca = "mlx5_0";
  std::optional<int> gpu;  ///< NVML index of the GPU that it serves
  std::string pci;         ///< "0000:18:00.0"; empty: not declared
  std::string fabric;      ///< that it is cabled to; empty: the only one of its profile
};

}  // namespace muster::inventory
