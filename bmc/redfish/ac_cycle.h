// SPDX-License-Identifier: Apache-2.0
// Cutting the standby power by a vendor's own means: one strategy a way, chosen by the quirk row.
#pragma once

#include "bmc/redfish/bios.h"
#include "bmc/redfish/bmc_reset.h"
#include "bmc/redfish/resources.h"

#include <functional>
#include <memory>

namespace muster::bmc {

class AcCycleStrategy {
 public:
  virtual ~AcCycleStrategy() = default;
  /// Cuts it; returns when the BMC is back and stable. Errors: NotFound (not offered)
  virtual Async<void> cut() = 0;
};

struct AcCycleServices {
  RedfishResources& resources;
  RedfishBios& bios;
  BmcReset& reset;
  std::function<Async<void>()> restart_host;  ///< verified, as Power::power is
};

/// Redfish ResetType, "as if utility power had been removed and restored".
inline constexpr std::string_view kFullPowerCycle = "FullPowerCycle";

/// Null: this method is none. What is referred to outlives it.
std::unique_ptr<AcCycleStrategy> makeAcCycleStrategy(AcCycleMethod method,
                                                     AcCycleServices services);

}  // namespace muster::bmc
