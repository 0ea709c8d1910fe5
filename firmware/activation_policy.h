// SPDX-License-Identifier: Apache-2.0
// What makes uploaded firmware run, and how it may be combined: data by component name. A new
// component is a row.
#pragma once

#include "inventory/model/firmware.h"

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {
struct SensorReading;
}

namespace muster::firmware {

/// Each takes more away than the one before; what a lesser one activates, a greater one does too.
enum class Activation { None, BmcReset, PowerCycle, AcCycle };
std::string_view toString(Activation activation);

struct ActivationRow {
  std::string_view component;  ///< glob, case does not matter; the first that fits counts
  Activation activation;
  std::string_view source;
  bool alone = false;  ///< never together with another: what it does must stand before the next
                       ///< loses its turn (PSU, BMC)
  std::chrono::minutes flash{4};  ///< usual time of its upload and flash
  bool background_copy =
      false;  ///< its second slot is filled behind its back; power must stay until that is done
  bool supply = false;  ///< a power supply: its fellows carry the machine while it restarts
  bool starts_at_restart =
      false;  ///< its update may wait for the host's restart to begin, and says Starting until then
};

std::span<const ActivationRow> activationRows();
const ActivationRow& rowOf(std::string_view component);
/// What the baseline says, else what the component's row says.
Activation activationOf(const inventory::FirmwareComponent& component);

/// Why none of the machine's power supplies may go now; "": the others carry it. Counts readings of
/// the kind "PowerSupply".
std::string whyNotRedundant(const std::vector<bmc::SensorReading>& readings);

/// How long the machine is away for it, until everything answers again.
std::chrono::minutes activationTime(Activation activation);

}  // namespace muster::firmware
