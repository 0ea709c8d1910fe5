// SPDX-License-Identifier: Apache-2.0
// PartRule: what a machine must hold, one row a kind of part. New demands are rows of an inventory,
// not code.
#pragma once

#include <optional>
#include <string>

namespace muster::inventory {

enum class PartKind { Dimm, Nvme, Nic, Gpu };

/// Of all parts of the kind whose model fits: there are exactly `count`, and each has the size and
/// the firmware.
struct PartRule {
  PartKind kind = PartKind::Dimm;
  std::string model;            ///< glob, upper and lower case alike; empty: any
  std::optional<int> count;     ///< exactly; absent: at least one
  std::optional<int> size_gib;  ///< DIMM, as labelled: exactly. NVMe: at least
  std::string firmware;         ///< glob; empty: any
};

}  // namespace muster::inventory
