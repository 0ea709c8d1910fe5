// SPDX-License-Identifier: Apache-2.0
// Discovery: complete or refused.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "fabric/compare/switch_firmware.h"
#include "fabric/opensm/subnet_manager.h"

namespace muster::fabric {

/// The managed fabric of this name; empty: the only one. Errors: InvalidInput (there is none, or
/// there are several and none is named), NotFound
Result<const inventory::Fabric*> chosenFabric(const inventory::Cluster& cluster,
                                              const std::string& name = {});

/// What switches told, by GUID: firmware changes rarely, and silent ones take seconds. Of one that
/// is as declared it is believed for long.
struct FirmwareMemory {
  struct Entry {
    ReportedFirmware told;
    std::chrono::steady_clock::time_point until;
  };
  std::map<std::string, Entry> entries;
};
/// Asks the declared switches that were found for their firmware, where the fabric declares any,
/// and adds what is not as declared. One that could not be asked is not as declared; those that are
/// excused and those without a LID yet are not asked. The caller holds the semaphore of the tools.
/// Errors: none
Async<void> addSwitchFirmware(Tools& tools, Clock& clock, const inventory::Fabric& fabric,
                              const Topology& declared, const Topology& found,
                              FirmwareMemory& memory, Comparison& comparison);

class Discovery {
 public:
  Discovery(Tools& tools, SubnetManager& manager, Clock& clock)
      : tools_(tools), manager_(manager), clock_(clock) {}

  /// The caller holds the semaphore of the tools. Errors: Unavailable (see fabric::discover)
  Async<Topology> topology();

 private:
  Tools& tools_;
  SubnetManager& manager_;
  Clock& clock_;
};

}  // namespace muster::fabric
