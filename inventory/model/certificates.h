// SPDX-License-Identifier: Apache-2.0
// How long certificates are good for, and who may give one without a gate.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace muster::inventory {

/// What it takes until a node is certified again after parts of a kind have changed.
enum class PartChange {
  AllGates,    ///< every gate of its profile anew
  QuickGates,  ///< only those of level quick; where the profile has none, every gate
  Nothing,     ///< a certificate is not bound to parts of this kind
};

/// By kind of part. Board and GPUs are not here: a change of those is always a change of the node.
struct PartPolicy {
  PartChange hca = PartChange::AllGates;
  PartChange dimm = PartChange::AllGates;
  PartChange nvswitch = PartChange::AllGates;
  PartChange nvme = PartChange::QuickGates;
  PartChange bmc = PartChange::QuickGates;
};

struct CertificatePolicy {
  std::chrono::hours lifetime{24 * 30};
  std::vector<std::string>
      may_override;  ///< users who may let a node join by their word; none: nobody may
  PartPolicy parts;
};

}  // namespace muster::inventory
