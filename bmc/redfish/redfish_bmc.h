// SPDX-License-Identifier: Apache-2.0
// RedfishBmc: one BMC by Redfish, a driver for each role over the same session and resources.
// Outcomes are decided by re-reading state.
#pragma once

#include "bmc/composite_bmc.h"
#include "bmc/redfish/accounts.h"
#include "bmc/redfish/bios.h"
#include "bmc/redfish/bmc_reset.h"
#include "bmc/redfish/boot.h"
#include "bmc/redfish/console.h"
#include "bmc/redfish/events.h"
#include "bmc/redfish/firmware_inventory.h"
#include "bmc/redfish/inventory.h"
#include "bmc/redfish/power.h"
#include "bmc/redfish/raid.h"
#include "bmc/redfish/resources.h"
#include "bmc/redfish/sensors.h"
#include "bmc/redfish/updates.h"
#include "inventory/model/profile.h"

#include <memory>
#include <string>

namespace muster::bmc {

/// The drivers, before the Bmc that is put together from them.
struct RedfishDrivers {
  RedfishDrivers(std::unique_ptr<RedfishSession> session, inventory::BootMode boot_mode,
                 Clock& clock, FirmwareImages& images, std::string system_id)
      : resources_(std::move(session), clock, std::move(system_id)),
        boot_(resources_, boot_mode),
        updates_(resources_, firmware_, reset_, images) {}

  RedfishResources resources_;
  FirmwareInventory firmware_{resources_};
  RedfishInventory inventory_{resources_, firmware_};
  BmcReset reset_{resources_, inventory_};
  RedfishBios bios_{resources_};
  RedfishPower power_{resources_, bios_, reset_};
  RedfishBoot boot_;
  RedfishAccounts accounts_{resources_, reset_};
  RedfishUpdates updates_;
  RedfishSensors sensors_{resources_};
  RedfishEvents events_{resources_};
  RedfishConsole console_{resources_};
  RedfishRaid raid_{resources_};
};

class RedfishBmc final : private RedfishDrivers, public CompositeBmc {
 public:
  /// `clock` and `images` outlive it. `system_id`: RedfishResources.
  RedfishBmc(std::unique_ptr<RedfishSession> session, inventory::BootMode boot_mode, Clock& clock,
             FirmwareImages& images, std::string system_id = {})
      : RedfishDrivers(std::move(session), boot_mode, clock, images, std::move(system_id)),
        CompositeBmc({power_, boot_, bios_, accounts_, inventory_, updates_, sensors_, events_,
                      console_, raid_}) {}

  Async<void> newSession() override;
  Async<void> logout() { return resources_.session().close(); }
  EventSource& eventSource() { return events_; }
};

}  // namespace muster::bmc
