// SPDX-License-Identifier: Apache-2.0
#include "fabric/compare/switch_firmware.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace muster::fabric {
namespace {

constexpr std::string_view kAnyFirmware = "any";

/// "27.2012.0010" and "27.2012.10" are one version.
std::vector<int> numbersOf(std::string_view version) {
  std::vector<int> numbers;
  while (!version.empty()) {
    int number = -1;
    const auto [end, error] =
        std::from_chars(version.data(), version.data() + version.size(), number);
    numbers.push_back(error == std::errc() ? number : -1);
    version.remove_prefix(std::min(version.find('.'), version.size() - 1) + 1);
  }
  return numbers;
}

std::string foundOf(const ReportedFirmware& told) {
  if (!told.version.empty()) return told.version;
  return told.why_not.empty() ? "not told" : "not known: " + told.why_not;
}

std::string howTo(const std::string& name, const std::string& version,
                  const ReportedFirmware& told) {
  if (!told.why_not.empty())
    return "muster-switchfw must be in muster's folder and be allowed to open "
           "/dev/infiniband/umad*: run as root on the controller, or reinstall muster";
  if (told.version.empty())
    return fmt::format(
        "{} does not report its firmware version: query it by `flint -d lid-{} query` or at its "
        "own console; one that has no vendor MADs belongs into a group of `switches` with "
        "`firmware: any`",
        name, told.lid);
  return fmt::format(
      "install firmware {} on {}: `flint -d lid-{} -i IMAGE burn` for board {}, or by its own "
      "system where it is managed; then reset it while nothing runs over it",
      version, name, told.lid, told.psid.empty() ? "(not told)" : told.psid);
}

}  // namespace

std::map<std::string, std::string> declaredFirmware(const inventory::Fabric& fabric,
                                                    const Topology& declared) {
  std::map<std::string, std::string> wanted;
  if (!fabric.switch_firmware.empty())
    for (const auto& [name, device] : declared.devices)
      if (device.is_switch) wanted[name] = fabric.switch_firmware;
  for (const auto& group : fabric.switches)
    for (const auto& name : group.names)
      if (group.firmware == kAnyFirmware)
        wanted.erase(name);
      else if (!group.firmware.empty())
        wanted[name] = group.firmware;
  return wanted;
}

bool isSameFirmware(std::string_view one, std::string_view other) {
  return numbersOf(one) == numbersOf(other);
}

void compareFirmware(const std::map<std::string, std::string>& wanted,
                     const std::map<std::string, ReportedFirmware>& told,
                     const std::vector<inventory::FabricExclusion>& excused, Comparison& out) {
  for (const auto& [name, version] : wanted) {
    const auto known = told.find(name);
    if (known == told.end() || isSameFirmware(known->second.version, version)) continue;
    Deviation one{DeviationKind::WrongFirmware,
                  {name, 0},
                  version,
                  foundOf(known->second),
                  howTo(name, version, known->second)};
    if (excuses(excused, one.at)) {
      out.excluded.push_back(std::move(one));
      continue;
    }
    if (std::none_of(out.repairs.begin(), out.repairs.end(),
                     [&one](const Repair& repair) { return repair.text == one.repair; }))
      out.repairs.push_back({one.repair, {}});
    out.deviations.push_back(std::move(one));
  }
  for (auto* list : {&out.deviations, &out.excluded})
    std::stable_sort(list->begin(), list->end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
}

}  // namespace muster::fabric
