// SPDX-License-Identifier: Apache-2.0
#include "monitor/symptoms.h"

#include "inventory/model/monitor.h"
#include "wire/health_rules.h"
#include "wire/xid.h"

#include <algorithm>
#include <array>

namespace muster::monitor {
namespace {

using enum HealthAction;

constexpr std::string_view kXid = "NVIDIA XID catalogue; OCI and AWS tables";
constexpr std::string_view kDcgm = "DCGM policy and diagnostic limits";
constexpr std::string_view kOurs = "operators' practice; set another limit in monitor.symptoms";

constexpr std::string_view kResetAdvice = "reset the GPU (a reboot does), then run the gates again";
constexpr std::string_view kReturn =
    "it came back after a reset: contact the vendor, `muster rma` gathers the evidence";
constexpr std::string_view kJob = "look at the job that ran there; the hardware is not to blame";
constexpr std::string_view kLinks =
    "check NVLink and NVSwitch: `nvidia-smi nvlink -s`, Fabric Manager's log; reset all GPUs of "
    "the node together";

/// What the number of an XID asks for.
constexpr SymptomRow rowOf(const wire::XidRow& xid) {
  const auto again = xid.vendor_if_again ? Rma : Watch;
  switch (xid.needs) {
    case wire::XidNeeds::Nothing:
      return {xid.id, Watch, "for information", kXid};
    case wire::XidNeeds::NewJob:
      return {xid.id, Watch, kJob, kXid};
    case wire::XidNeeds::Reset:
      return {xid.id, Reset, kResetAdvice, kXid, 1, again};
    case wire::XidNeeds::Reboot:
      return {xid.id, Reboot, "reboot the node", kXid, 1, again};
    case wire::XidNeeds::Seating:
      return {xid.id, Reboot, "the GPU has fallen off the bus: check seating and power, reboot",
              kXid,   1,      again};
    case wire::XidNeeds::Power:
      return {xid.id, Drain, "check the GPU's auxiliary power leads", kXid};
    case wire::XidNeeds::Links:
      return {xid.id, Drain, kLinks, kXid};
  }
  return {xid.id, Watch, "", kXid};
}

constexpr std::array kOwnRows = {
    // The driver itself says what a GPU needs, in the words of XID 154: the number alone says
    // nothing.
    SymptomRow{"xid.154", Reboot, "the driver asks for a reboot of the node", kXid, 1, Rma,
               "Node Reboot"},
    SymptomRow{"xid.154", Reset, "the driver asks for a reset of the GPU", kXid, 1, Rma, "Reset"},
    SymptomRow{"xid.154", Drain, "the driver asks to drain the GPU's peers", kXid, 1, Watch,
               "Drain"},
    SymptomRow{"gpu.ecc-uncorrected", Reset, kResetAdvice, kDcgm, 1, Rma},
    SymptomRow{"gpu.remap-failure", Rma,
               "a row could not be remapped: the GPU's spare rows are used up", kXid},
    SymptomRow{"gpu.remap-pending", Reset, "a row is remapped at the next reset of the GPU", kXid},
    SymptomRow{"gpu.rows-remapped", Rma, "so many remapped rows are beyond what the vendor accepts",
               kDcgm, 512},
    SymptomRow{"gpu.ecc-off", Drain, "switch ECC on: `nvidia-smi -e 1`, then reset the GPU", kDcgm},
    SymptomRow{"gpu.lost", Reboot, "fewer GPUs than before: check seating and power, reboot", kXid,
               1, Rma},
    SymptomRow{"gpu.nvlink-down", Drain, kLinks, kDcgm},
    SymptomRow{"gpu.pcie-replays", Watch, "reseat the GPU if it is also slow", kDcgm, 80},
    SymptomRow{"gpu.throttled", Watch, "check cooling and power of the node", kDcgm},

    SymptomRow{"disk.read-only", Drain,
               "the file system went read-only after an error: look at the disk, then reboot or "
               "image it again",
               kOurs},
    SymptomRow{"disk.io-error", Drain, "look at the disk and its cable: `smartctl -x`", kOurs, 10},
    SymptomRow{"disk.failing", Rma, "the disk itself says that it fails: replace it",
               "SMART overall health, NVMe critical warning"},
    SymptomRow{"disk.worn", Watch, "plan the disk's replacement", "NVMe percentage used"},

    SymptomRow{"network.link-flaps",
               Drain,
               "clean or replace the cable or transceiver, then look at the switch's port",
               kOurs,
               10,
               Watch,
               {},
               5},
    SymptomRow{"network.link-down", Drain,
               "plug in or replace the cable; look at the switch's port", kOurs},
    SymptomRow{"network.bit-errors", Drain,
               "clean and reseat both ends of the cable, then replace it; `muster fabric health` "
               "names its other end",
               "InfiniBand Architecture Specification: BER 1e-12"},
    SymptomRow{"network.recoveries",
               Drain,
               "clean and reseat both ends of the cable, then replace it",
               kOurs,
               10,
               Watch,
               {},
               5},
    SymptomRow{"network.errors",
               Watch,
               "look at the port's counters: `perfquery -x`",
               kOurs,
               1000,
               Watch,
               {},
               1000},

    SymptomRow{"bmc.leak", Quarantine,
               "coolant leak detected: shut the tray's valves, power the machine off, inspect it",
               "Redfish LeakDetector"},
    SymptomRow{"bmc.sensor-critical", Drain,
               "look at the cooling and power of the machine and of its rack",
               "the BMC's own limits"},
    SymptomRow{"bmc.sensor-warning", Watch, "check it at the next visit", "the BMC's own limits"},
    SymptomRow{"bmc.log-critical", Drain,
               "an uncorrectable memory error: run the gates again, or replace the DIMM that the "
               "log names",
               kOurs, 1, Watch, "ncorrectable"},
    SymptomRow{"bmc.log-critical", Watch, "read the BMC's event log: muster rma gathers it", kOurs},
    SymptomRow{"bmc.log-warning", Watch, "read the BMC's event log: muster rma gathers it", kOurs},

    SymptomRow{"system.fabric-manager", Drain,
               "start it and look at its log: `journalctl -u nvidia-fabricmanager`",
               "Fabric Manager user guide"},
    SymptomRow{"system.unit-failed", Watch, "`systemctl status` of the unit says why", kOurs},
    SymptomRow{"system.mce", Drain, "an uncorrected hardware error: look at the BMC's event log",
               "Linux EDAC"},
    SymptomRow{"system.blind.gpu", Drain, "its GPUs cannot be monitored: see the text", kOurs},
    SymptomRow{"system.blind.*", Watch, "install what is missing, or look at the agent's log",
               kOurs},
    SymptomRow{"system.agent-silent", Watch,
               "start muster-agent on the node, or look at its network", kOurs},
};

/// Those with words of their own come first: the first row that fits counts.
constexpr auto kRows = [] {
  std::array<SymptomRow, kOwnRows.size() + wire::kXids.size()> rows{};
  std::copy(kOwnRows.begin(), kOwnRows.end(), rows.begin());
  std::transform(wire::kXids.begin(), wire::kXids.end(), rows.begin() + kOwnRows.size(), rowOf);
  return rows;
}();

}  // namespace

std::span<const SymptomRow> symptomRows() { return kRows; }

std::string_view groupOf(std::string_view id) {
  const auto first = id.substr(0, id.find('.'));
  if (first == "xid" || first == "gpu") return "gpu";
  if (first == "disk" || first == "network") return first;
  return "system";
}

SymptomAssessment assess(const wire::Symptom& symptom, int boots_before,
                         const std::vector<inventory::SymptomRule>& rules) {
  for (const bool exact : {true, false})
    for (const auto& rule : rules) {
      if (rule.name.ends_with('*') == exact || !wire::fitsSymptom(rule.name, symptom.id)) continue;
      const bool enough = wire::isEnough(symptom, static_cast<std::uint64_t>(rule.min_count),
                                         static_cast<std::uint64_t>(rule.per_hour.value_or(0)));
      return {enough ? rule.action : Watch, rule.advice};
    }
  for (const auto& row : kRows) {
    if (!wire::fitsSymptom(row.symptom, symptom.id) ||
        wire::outcomeOf(symptom.text).find(row.text) == std::string_view::npos)
      continue;
    if (!wire::isEnough(symptom, row.at_least, row.per_hour))
      return {Watch, std::string(row.advice)};
    if (boots_before > 0 && row.again != Watch) return {row.again, std::string(kReturn)};
    return {row.action, std::string(row.advice)};
  }
  return {
      Watch,
      "muster's table does not know it; look it up, and say in monitor.symptoms what it means here",
      false};
}

std::string_view toString(HealthAction action) {
  constexpr std::array<std::string_view, inventory::kHealthActions> kWords = {
      "watch", "drain", "reset", "reboot", "quarantine", "rma"};
  return kWords.at(static_cast<std::size_t>(action));
}

}  // namespace muster::monitor
