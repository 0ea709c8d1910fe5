// SPDX-License-Identifier: Apache-2.0
// Seam: what changes of BMCs' credentials are carried out with, by a command or by a run. The real
// one asks the controller's BMCs, of which each is asked by one at a time (bmc/arbiter.h).
#pragma once

#include "base/async/task.h"
#include "base/ids.h"

#include <memory>

namespace muster::inventory {
struct Cluster;
}

namespace muster::app {

class Controller;

class BmcChanger {
 public:
  BmcChanger() = default;
  virtual ~BmcChanger() = default;
  BmcChanger(const BmcChanger&) = delete;

  /// Errors and effect: as bmc::Accounts::rotatePassword
  virtual Async<void> rotatePassword(NodeName node) = 0;
  /// The BMC makes a key, the program that the profile names signs (else the site's authority), and
  /// the certificate is what is trusted from then on. Errors and effect: as bmc::certify
  virtual Async<void> issueCertificate(NodeName node) = 0;
};

/// Both are borrowed.
std::unique_ptr<BmcChanger> makeBmcChanger(Controller& controller,
                                           const inventory::Cluster& cluster);

}  // namespace muster::app
