// SPDX-License-Identifier: Apache-2.0
// The last door before a pool: a node that is known to be unhealthy neither joins nor is given
// back, whatever certificate it has.
#pragma once

#include "lifecycle/model/certificate_gate.h"
#include "lifecycle/store/store.h"

namespace muster::monitor {

class HealthGate final : public lifecycle::CertificateGate {
 public:
  HealthGate(const lifecycle::CertificateGate& next, lifecycle::Store& store)
      : next_(next), store_(store) {}
  /// By the facts health.* as last stored. Errors: Denied naming the symptoms, those of the next
  /// gate
  Result<void> requireValid(const NodeName& node) const override;

 private:
  const lifecycle::CertificateGate& next_;
  lifecycle::Store& store_;
};

}  // namespace muster::monitor
