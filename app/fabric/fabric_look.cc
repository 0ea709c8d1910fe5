// SPDX-License-Identifier: Apache-2.0
#include "app/fabric/fabric_look.h"

#include "app/controller/controller.h"
#include "app/site/effective_cluster.h"
#include "fabric/discovery/discovery.h"
#include "fabric/options.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/parse/hostlist.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::app {
namespace {

constexpr std::size_t kMostRepairs = 100;

/// One of a fabric that the inventory called otherwise then says nothing of this one.
std::optional<fabric::KeptReport> reportOf(const std::filesystem::path& folder,
                                           fabric::KeptReportKind kind, const std::string& name) {
  auto kept = fabric::keptReport(folder, kind);
  if (kept && kept->report.contains("fabric") && kept->report["fabric"] != name &&
      kept->report["fabric"] != "")
    kept.reset();
  return kept;
}

FabricFound foundIn(const fabric::KeptReport& kept) {
  const auto& report = kept.report;
  FabricFound out{kept.at,
                  report.value("error", ""),
                  report.value("note", ""),
                  report.value("devices", std::size_t{0}),
                  report.value("links", std::size_t{0}),
                  report.value("deviations", nlohmann::json::array()).size(),
                  report.value("excluded", nlohmann::json::array()).size(),
                  {}};
  for (const auto& repair : report.value("repairs", nlohmann::json::array()))
    if (out.repairs.size() < kMostRepairs) out.repairs.push_back(repair.value("text", ""));
  return out;
}

FabricCounters countersIn(const fabric::KeptReport& kept) {
  const auto window = kept.report.value("window_seconds", nlohmann::json::object());
  FabricCounters out{kept.at, kept.report.value("error", ""), window.value("longest", 0.0), {}, {}};
  for (const auto& link : kept.report.value("links", nlohmann::json::array()))
    ++out.grades[link.value("grade", "unknown")];
  for (const auto& hint : kept.report.value("hints", nlohmann::json::array()))
    if (hint.is_string()) out.hints.push_back(hint.get<std::string>());
  return out;
}

nlohmann::json levelJson(const FabricLevel& level) {
  return {{"level", level.level},
          {"switches", inventory::foldHostlist(level.switches)},
          {"switches_count", level.switches.size()},
          {"cables", level.cables},
          {"deviating", level.deviating},
          {"bad", level.bad}};
}

nlohmann::json foundJson(const FabricFound& found) {
  return {{"looked_at", muster::toString(found.looked_at)},
          {"error", found.error},
          {"note", found.note},
          {"devices", found.devices},
          {"links", found.links},
          {"deviations", found.deviations},
          {"excluded", found.excluded},
          {"repairs", found.repairs}};
}

nlohmann::json healthJson(const FabricCounters& read) {
  return {{"looked_at", muster::toString(read.looked_at)},
          {"error", read.error},
          {"window_s", read.window_s},
          {"grades", read.grades},
          {"hints", read.hints}};
}

}  // namespace

/// "gpu001" chooses gpu001's HCAs and not those of gpu0010.
bool FabricCableFilter::has(const FabricCable& cable) const {
  const bool touches = device.empty() || cable.a.node == device || cable.b.node == device ||
                       fabric::hostOf(cable.a.node) == device ||
                       fabric::hostOf(cable.b.node) == device;
  return touches && (!faulty || cable.isFaulty());
}

Result<const inventory::Fabric*> fabricAskedFor(const inventory::Cluster& cluster,
                                                const std::string& name) {
  if (cluster.fabrics.empty())
    return fail(ErrorCode::NotFound, "the inventory declares no fabric: docs/fabric.md says how");
  const auto managed = inventory::managedFabrics(cluster);
  return fabric::chosenFabric(cluster,
                              name.empty() && !managed.empty() ? managed.front()->name : name);
}

Result<std::shared_ptr<const fabric::Topology>> declaredFabric(const inventory::Cluster& cluster,
                                                               const inventory::Fabric& fabric) {
  TRY(declared, fabric::declaredTopology(cluster, fabric));
  return std::make_shared<const fabric::Topology>(std::move(declared));
}

FabricLook fabricLook(const Options& options, const std::optional<lab::LabHandle>& lab,
                      const inventory::Cluster& cluster, const inventory::Fabric& fabric,
                      const fabric::Topology& declared) {
  const auto folder = fabricOptions(options, lab, cluster, fabric.name).run_folder;
  FabricLook out{fabric.name,
                 fabric.purpose == inventory::FabricPurpose::Compute,
                 {},
                 {},
                 reportOf(folder, fabric::KeptReportKind::Diff, fabric.name),
                 reportOf(folder, fabric::KeptReportKind::Health, fabric.name)};
  for (const auto* each : inventory::managedFabrics(cluster)) out.fabrics.push_back(each->name);
  out.view = fabricView(declared, out.diff, out.health);
  return out;
}

Result<FabricLook> fabricLook(const Options& options, const std::string& name) {
  TRY(live, effectiveCluster(options));
  const auto& cluster = live->cluster();
  TRY(fabric, fabricAskedFor(cluster, name));
  TRY(declared, declaredFabric(cluster, *fabric));
  TRY(lab, lab::find(options.labFolder(cluster)));
  return fabricLook(options, lab, cluster, *fabric, *declared);
}

FabricSummary summaryOf(const FabricLook& look) {
  FabricSummary out{
      look.name,
      look.fabrics,
      look.view.switches,
      look.view.hcas,
      look.view.cables.size(),
      static_cast<std::size_t>(std::ranges::count_if(look.view.cables, &FabricCable::isFaulty)),
      look.view.levels,
      std::nullopt,
      std::nullopt};
  if (look.diff) out.found = foundIn(*look.diff);
  if (look.health) out.health = countersIn(*look.health);
  return out;
}

nlohmann::json toJson(const FabricSummary& summary) {
  auto levels = nlohmann::json::array();
  for (const auto& level : summary.levels) levels.push_back(levelJson(level));
  nlohmann::json out = {{"name", summary.name},         {"fabrics", summary.fabrics},
                        {"switches", summary.switches}, {"hcas", summary.hcas},
                        {"cables", summary.cables},     {"faulty", summary.faulty},
                        {"levels", std::move(levels)}};
  if (summary.found) out["found"] = foundJson(*summary.found);
  if (summary.health) out["health"] = healthJson(*summary.health);
  return out;
}

nlohmann::json toJson(const FabricCable& cable) {
  auto faults = nlohmann::json::array();
  for (const auto& each : cable.faults)
    faults.push_back({{"kind", each.kind},
                      {"declared", each.declared},
                      {"found", each.found},
                      {"repair", each.repair}});
  nlohmann::json out = {{"a", cable.a.node},
                        {"a_port", cable.a.number},
                        {"b", cable.b.node},
                        {"b_port", cable.b.number},
                        {"width_speed", cable.width_speed},
                        {"level", cable.level},
                        {"state", wordOf(cable.state)},
                        {"faults", std::move(faults)}};
  if (cable.health)
    out["health"] = {{"grade", cable.health->grade},
                     {"complaints", cable.health->complaints},
                     {"advice", cable.health->advice},
                     {"transceiver", cable.health->transceiver}};
  return out;
}

}  // namespace muster::app
