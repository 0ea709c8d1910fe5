// Discovery: complete or refused.
#pragma once

#include "fabric/opensm/subnet_manager.h"

namespace muster::fabric {

/// The only fabric of the cluster. Errors: InvalidInput (none, several)
Result<const inventory::Fabric*> onlyFabric(const inventory::Cluster& cluster);

/// Asks the declared switches that were found for their firmware, where the fabric declares any, and adds what is not as declared.
/// One that could not be asked is not as declared. The caller holds the turnstile of the tools. Errors: none
Async<void> addSwitchFirmware(Tools& tools, const inventory::Fabric& fabric, const Topology& declared, const Topology& found, Comparison& comparison);

class Discovery {
 public:
  Discovery(Tools& tools, SubnetManager& manager, Clock& clock) : tools_(tools), manager_(manager), clock_(clock) {}

  /// The caller holds the turnstile of the tools. Errors: Unavailable (see fabric::discover)
  Async<Topology> topology();

 private:
  Tools& tools_;
  SubnetManager& manager_;
  Clock& clock_;
};

}  // namespace muster::fabric
