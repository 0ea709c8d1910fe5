// SPDX-License-Identifier: Apache-2.0
// How long certificates are good for, and who may give one without a gate.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace muster::inventory {

struct CertificatePolicy {
  std::chrono::hours lifetime{24 * 30};
  std::vector<std::string>
      may_override;  ///< users who may let a node join by their word; none: nobody may
};

}  // namespace muster::inventory
