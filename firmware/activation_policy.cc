// SPDX-License-Identifier: Apache-2.0
#include "firmware/activation_policy.h"

#include "bmc/bmc.h"
#include "inventory/model/firmware.h"
#include "lifecycle/model/facet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace muster::firmware {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kNicSource =
    "NICs: some begin an update only at the restart, their task says Starting until then (Ironic, "
    "firmware_update_nic_starting_wait)";

constexpr std::array kRows = {
    ActivationRow{"idrac*", Activation::None,
                  "iDRAC restarts by itself after its update (fwupd waits 120 s)", true, 10min},
    ActivationRow{"ilo*", Activation::None, "iLO restarts by itself after its update", true, 10min},
    ActivationRow{"*erot*", Activation::AcCycle,
                  "roots of trust: AC removal of 5 min (DGX H100 order, step 8)", false, 5min,
                  true},
    ActivationRow{"*cpld*", Activation::AcCycle,
                  "CPLDs load at standby power (DGX H100 order, step 8)", false, 5min},
    ActivationRow{"hgx_fw_bmc*", Activation::PowerCycle,
                  "the baseboard's own BMC restarts with the chassis (DGX H100 order, step 6)",
                  false, 10min},
    ActivationRow{"hgx_*", Activation::PowerCycle,
                  "HGX baseboard components: chassis power cycle (DGX H100 order, step 6)", false,
                  5min},
    ActivationRow{"hostbmc*", Activation::BmcReset,
                  "DGX H100 order, step 2: BMC reset after its own update", true, 14min},
    ActivationRow{
        "fw_bmc*", Activation::BmcReset,
        "the host's BMC of a Grace tray (capture of a GB200); bmcweb activates at its reset", true,
        14min},
    ActivationRow{"mgx_fw_bmc*", Activation::BmcReset, "the BMC of an NVLink switch tray (capture)",
                  true, 14min},
    ActivationRow{"bmc*", Activation::BmcReset, "Supermicro and the virtual BMC call theirs BMC",
                  true, 10min},
    ActivationRow{"*psu*", Activation::None,
                  "power supplies are updated live, one at a time and only if redundant", true,
                  5min, false, true},
    ActivationRow{"powersupply*", Activation::None,
                  "power supplies are updated live, one at a time and only if redundant", true,
                  5min, false, true},
    ActivationRow{"cx7_*", Activation::PowerCycle, kNicSource, false, 4min, false, false, true},
    ActivationRow{"nic*", Activation::PowerCycle, kNicSource, false, 4min, false, false, true},
    ActivationRow{"*.nic*", Activation::PowerCycle, kNicSource, false, 4min, false, false, true},
    ActivationRow{"*_nic*", Activation::PowerCycle, kNicSource, false, 4min, false, false, true},
    ActivationRow{"infiniband*", Activation::PowerCycle, kNicSource, false, 4min, false, false,
                  true},
    ActivationRow{"*connectx*", Activation::PowerCycle, kNicSource, false, 4min, false, false,
                  true},
    ActivationRow{"*", Activation::PowerCycle, "BIOS and whatever else belongs to the host", false,
                  4min},
};

constexpr int kFewestSupplies = 2;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

std::string_view toString(Activation activation) {
  switch (activation) {
    case Activation::None:
      return "none";
    case Activation::BmcReset:
      return "bmc-reset";
    case Activation::PowerCycle:
      return "power-cycle";
    case Activation::AcCycle:
      return "ac-cycle";
  }
  return "none";
}

std::span<const ActivationRow> activationRows() { return kRows; }

const ActivationRow& rowOf(std::string_view component) {
  const std::string name = lower(component);
  return *std::find_if(kRows.begin(), kRows.end() - 1, [&name](const ActivationRow& row) {
    return lifecycle::matches(row.component, name);
  });
}

Activation activationOf(const inventory::FirmwareComponent& component) {
  using inventory::FirmwareActivation;
  switch (component.activation) {
    case FirmwareActivation::Auto:
      break;
    case FirmwareActivation::None:
      return Activation::None;
    case FirmwareActivation::BmcReset:
      return Activation::BmcReset;
    case FirmwareActivation::PowerCycle:
      return Activation::PowerCycle;
    case FirmwareActivation::AcCycle:
      return Activation::AcCycle;
  }
  return rowOf(component.name).activation;
}

std::string whyNotRedundant(const std::vector<bmc::SensorReading>& readings) {
  int good = 0;
  std::string bad;
  for (const auto& reading : readings) {
    if (reading.kind != "PowerSupply") continue;
    if (reading.health == "OK" && !reading.stale) ++good;
    if (reading.health != "OK" && !reading.health.empty())
      bad += fmt::format("{}{} is {}", bad.empty() ? "" : ", ", reading.name, reading.health);
  }
  if (!bad.empty()) return "not redundant: " + bad;
  return good >= kFewestSupplies ? std::string()
                                 : fmt::format("not redundant: the BMC shows {} good power suppl{}",
                                               good, good == 1 ? "y" : "ies");
}

std::chrono::minutes activationTime(Activation activation) {
  switch (activation) {
    case Activation::None:
      return 0min;
    case Activation::BmcReset:
      return 4min;
    case Activation::PowerCycle:
      return 10min;
    case Activation::AcCycle:
      return 16min;
  }
  return 0min;
}

}  // namespace muster::firmware
