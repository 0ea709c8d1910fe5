// SPDX-License-Identifier: Apache-2.0
#include "fabric/discovery/discovery.h"

#include "base/clock.h"
#include "fabric/compare/recognition.h"
#include "fabric/fabric_diff.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"

#include <algorithm>

namespace muster::fabric {

namespace {

// A cable that was pulled a moment ago is in one picture and not yet in the other: OpenSM sweeps on
// the switch's trap at once, or every 10 s when the trap is lost.
constexpr std::chrono::milliseconds kSettlePause{500};
constexpr int kSettleTries = 25;
constexpr std::size_t kNamedGuids = 4;
constexpr std::chrono::minutes kFirmwareKept{10}, kWrongFirmwareKept{1};

/// Counts against the subnet manager's own view, which is made with other MADs. The SA would answer
/// the same question, but its table queries need RMPP, which ibsim does not carry; the dump is the
/// same data.
std::string mismatch(const Topology& found, const std::set<std::string>& known) {
  std::set<std::string> seen(found.switch_parts.begin(), found.switch_parts.end());
  for (const auto& [name, device] : found.devices) seen.insert(device.guid);
  std::vector<std::string> unseen;
  std::set_difference(known.begin(), known.end(), seen.begin(), seen.end(),
                      std::back_inserter(unseen));
  if (unseen.empty() && seen.size() <= known.size()) return {};
  if (unseen.empty())
    return fmt::format("discovery saw {} devices, the subnet manager sees {}", seen.size(),
                       known.size());
  auto shown = std::min(unseen.size(), kNamedGuids);
  return fmt::format(
      "the subnet manager sees {} devices that discovery did not: {}{}", unseen.size(),
      fmt::join(unseen.begin(), unseen.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      unseen.size() > shown ? ", …" : "");
}

}  // namespace

Result<const inventory::Fabric*> chosenFabric(const inventory::Cluster& cluster,
                                              const std::string& name) {
  const auto managed = inventory::managedFabrics(cluster);
  std::vector<std::string> names;
  for (const auto* fabric : managed) {
    if (fabric->name == name || (name.empty() && managed.size() == 1)) return fabric;
    names.push_back(fabric->name);
  }
  if (cluster.fabrics.empty())
    return fail(ErrorCode::InvalidInput, "the inventory declares no fabric");
  if (names.empty())
    return fail(ErrorCode::InvalidInput,
                fmt::format("the inventory declares {} fabrics, and no node is on any of them",
                            cluster.fabrics.size()));
  if (name.empty())
    return fail(ErrorCode::InvalidInput, fmt::format("the inventory has the fabrics {}: name one "
                                                     "of them (--fabric {})",
                                                     fmt::join(names, ", "), names.front()));
  return fail(
      ErrorCode::NotFound,
      cluster.fabrics.contains(name)
          ? fmt::format("no node is on the fabric {}: nothing of it is checked", name)
          : fmt::format("the inventory has no fabric {}, but {}", name, fmt::join(names, ", ")));
}

Async<Topology> Discovery::topology() {
  std::string why;
  for (int i = 0; i < kSettleTries; ++i) {
    CO_TRY(found, co_await tools_.discover());
    auto known = manager_.nodeGuids();
    why = known ? mismatch(found, *known) : std::string();
    if (why.empty()) co_return std::move(found);
    co_await clock_.sleep(kSettlePause);
  }
  co_return fail(ErrorCode::Unavailable,
                 why + "; look for lost packets (ibqueryerrors) and run again");
}

Async<void> addSwitchFirmware(Tools& tools, Clock& clock, const inventory::Fabric& fabric,
                              const Topology& declared, const Topology& found,
                              FirmwareMemory& memory, Comparison& comparison) {
  const auto wanted = declaredFirmware(fabric, declared);
  const auto now = clock.steady();
  std::map<std::string, ReportedFirmware> told;
  std::vector<int> lids;
  for (const auto& [name, version] : wanted) {
    const auto device = found.devices.find(name);
    if (device == found.devices.end() || !device->second.is_switch ||
        excuses(fabric.exclude, {name, 0}))
      continue;
    const auto address = device->second.addresses.find(0);
    if (address == device->second.addresses.end() || address->second.lid == 0) continue;
    const auto known = memory.entries.find(device->second.guid);
    const bool is_known = known != memory.entries.end() && now < known->second.until;
    if (is_known)
      told[name] = known->second.told;
    else
      lids.push_back(address->second.lid);
    told[name].lid = address->second.lid;
  }
  Result<std::map<int, ReportedFirmware>> answer;
  if (!lids.empty()) {
    answer = co_await tools.switchFirmware(lids);
  }
  for (auto& [name, one] : told) {
    if (std::find(lids.begin(), lids.end(), one.lid) == lids.end()) continue;
    if (!answer) {
      one.why_not = answer.error().str();
    } else if (const auto said = answer->find(one.lid); said != answer->end()) {
      one = said->second;
      memory.entries[found.devices.at(name).guid] = {
          one,
          clock.steady() +
              (isSameFirmware(one.version, wanted.at(name)) ? kFirmwareKept : kWrongFirmwareKept)};
    }
  }
  compareFirmware(wanted, told, fabric.exclude, comparison);
  co_return Result<void>();
}

Async<Topology> discover(io::ProcessRunner& processes, FabricOptions options) {
  SystemClock clock;
  options.run_folder = std::filesystem::absolute(options.run_folder);
  Tools tools(processes, options);
  SubnetManager manager(processes, tools, options.run_folder, options.opensm_unit);
  Discovery discovery(tools, manager, clock);
  co_return co_await discovery.topology();
}

namespace {

Result<DiffReport> declaredReport(const inventory::Cluster& cluster, const std::string& name) {
  TRY(fabric, chosenFabric(cluster, name));
  TRY(declared, declaredTopology(cluster, *fabric));
  DiffReport report;
  report.fabric = fabric->name;
  report.declared = std::move(declared);
  return report;
}

}  // namespace

Result<Topology> withDeclaredNames(const inventory::Cluster& cluster, Topology found,
                                   const std::string& fabric) {
  TRY(report, declaredReport(cluster, fabric));
  return recognize(report.declared, std::move(found)).found;
}

namespace {

DiffReport withFound(const inventory::Cluster& cluster, Result<DiffReport> report,
                     Result<Topology> found) {
  DiffReport out;
  if (report) out = std::move(*report);
  if (!report || !found) {
    out.error = (report ? found.error() : report.error()).str();
    return out;
  }
  auto recognized = recognize(out.declared, std::move(*found));
  out.found = std::move(recognized.found);
  out.names = std::move(recognized.names);
  out.note = std::move(recognized.note);
  out.comparison = compare(out.declared, out.found, cluster.fabrics.at(out.fabric).exclude);
  return out;
}

bool sameAnswer(const DiffReport& a, const DiffReport& b) {
  auto said = [](const DiffReport& report) {
    std::string text = report.error;
    for (const auto& one : report.comparison.deviations)
      text += fmt::format("\n{} {} {}", toString(one.kind), toString(one.at), one.found);
    return text;
  };
  return said(a) == said(b);
}

}  // namespace

namespace {

Async<DiffReport> diffWith(const inventory::Cluster& cluster, io::ProcessRunner& processes,
                           Clock& clock, FabricOptions options, FirmwareMemory& memory,
                           std::string fabric) {
  auto report = declaredReport(cluster, fabric);
  if (!report) co_return withFound(cluster, std::move(report), Topology{});
  auto found = co_await discover(processes, options);
  auto out = withFound(cluster, std::move(report), std::move(found));
  if (!out.error.empty()) co_return std::move(out);
  options.run_folder = std::filesystem::absolute(options.run_folder);
  Tools tools(processes, options);
  CO_TRY_OK(co_await addSwitchFirmware(tools, clock, cluster.fabrics.at(out.fabric), out.declared,
                                       out.found, memory, out.comparison));
  co_return std::move(out);
}

}  // namespace

Async<DiffReport> diff(const inventory::Cluster& cluster, io::ProcessRunner& processes,
                       FabricOptions options, std::string fabric) {
  SystemClock clock;
  FirmwareMemory memory;
  co_return co_await diffWith(cluster, processes, clock, std::move(options), memory,
                              std::move(fabric));
}

DiffReport diff(const inventory::Cluster& cluster, std::string_view found_text,
                const std::string& fabric) {
  auto out = withFound(cluster, declaredReport(cluster, fabric), parseFound(found_text));
  if (out.error.empty() && !declaredFirmware(cluster.fabrics.at(out.fabric), out.declared).empty())
    out.note +=
        fmt::format("{}firmware of the switches was not compared: this input does not contain it",
                    out.note.empty() ? "" : "\n");
  return out;
}

Async<void> watch(const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
                  FabricOptions options, std::chrono::milliseconds pause,
                  std::function<bool(const DiffReport&)> tell, std::string fabric) {
  std::optional<DiffReport> last;
  FirmwareMemory memory;
  while (true) {
    CO_TRY(now, co_await diffWith(cluster, processes, clock, options, memory, fabric));
    if (!last || !sameAnswer(*last, now))
      if (!tell(now)) co_return Result<void>();
    last = std::move(now);
    co_await clock.sleep(pause);
  }
}

}  // namespace muster::fabric
