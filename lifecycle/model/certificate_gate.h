// SPDX-License-Identifier: Apache-2.0
// The seam between certificates and whoever must not act without one (pool); wired by cli.
#pragma once

#include "base/ids.h"
#include "base/result.h"

namespace muster::lifecycle {

class CertificateGate {
 public:
  virtual ~CertificateGate() = default;
  /// Errors: Denied with the reason (none, expired, signature, what changed since it was signed)
  virtual Result<void> requireValid(const NodeName& node) const = 0;
};

}  // namespace muster::lifecycle
