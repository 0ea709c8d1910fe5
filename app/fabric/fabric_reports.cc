// SPDX-License-Identifier: Apache-2.0
#include "app/fabric/fabric_reports.h"

#include "app/controller/controller.h"
#include "app/controller/run_async.h"
#include "base/io/files.h"
#include "base/io/regular_file.h"
#include "base/log.h"
#include "fabric/discovery/discovery.h"
#include "fabric/exports/exports.h"
#include "fabric/exports/plot.h"
#include "fabric/exports/render.h"
#include "fabric/fabric_diff.h"
#include "fabric/health/link_health.h"
#include "fabric/kept_report.h"
#include "fabric/opensm/subnet_manager.h"
#include "fabric/options.h"
#include "fabric/rehearsal/rehearsal.h"
#include "fabric/roce/roce.h"
#include "fabric/roce/switch_config.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"

#include <algorithm>

namespace muster::app {
namespace {

constexpr std::size_t kMaxInputBytes = 256u << 20;  ///< of a file that the user names

/// The inventory, in the twin's network where there is one.
struct Site {
  inventory::Cluster cluster;
  std::optional<lab::LabHandle> lab;
};

Result<Site> siteOf(const Options& options) {
  TRY(cluster, loadCluster(options));
  TRY(lab, lab::find(options.labFolder(cluster)));
  if (lab) TRY_OK(lab::enter(*lab));
  return Site{std::move(cluster), std::move(lab)};
}

/// Two files that were written `window_seconds` apart: how long each reading took is not in them.
Result<fabric::LinkHealthReport> healthOfFiles(const LinkHealthRequest& request,
                                               const links::Limits& limits,
                                               const fabric::Transceivers& transceivers) {
  TRY(text, io::readRegularFile(request.found, kMaxInputBytes));
  TRY(topology, fabric::parseFound(text));
  const auto readingOf =
      [&topology](const std::filesystem::path& file) -> Result<links::ReadingsByGuid> {
    TRY(counters, io::readRegularFile(file, kMaxInputBytes));
    auto read = fabric::parseReadings(counters, topology);
    if (!read) return fail(std::move(read).error().within(file.string()));
    return read;
  };
  TRY(first, readingOf(request.before));
  TRY(second, readingOf(request.after));
  return fabric::evaluateLinks(topology, topology, {std::move(first), 0, 0},
                               {std::move(second), request.window_seconds, request.window_seconds},
                               limits, transceivers);
}

/// For the page and for who asks later. The answer does not hang on it.
void keep(const fabric::FabricOptions& where, fabric::KeptReportKind kind,
          const std::string& report_json) {
  if (const auto kept =
          fabric::keepReport(where.run_folder, kind, SystemClock().now(), report_json);
      !kept)
    logWarning("fabric", "what was seen cannot be kept: {}", kept.error().str());
}

/// The standbys of one fabric, below `folder`.
void addManagers(const Options& options, const inventory::Cluster& cluster,
                 const fabric::ExpandedFabric& one, const std::string& folder,
                 RenderedFabric& out) {
  const auto where = fabricOptions(options, std::nullopt, cluster, one.fabric->name);
  const auto known =
      fabric::KnownGuids::fromJson(io::readFile(where.run_folder / "guids.json").value_or(""));
  for (const auto& manager : one.fabric->subnet_managers) {
    if (manager == "controller") continue;  // muster runs that one itself
    auto own = fabric::renderManager(cluster, *one.fabric, *one.declared, known, manager,
                                     io::readFile(where.opensmFolder() / "guid2lid").value_or(""));
    if (!own) {
      out.missing.push_back(own.error());
      continue;
    }
    for (auto& file : *own) out.files.push_back({folder + file.path, std::move(file.content)});
  }
}

}  // namespace

Result<fabric::DiffReport> fabricDiff(const Options& options, const DiffRequest& request) {
  if (!request.found.empty()) {
    TRY(cluster, loadCluster(options));
    TRY(text, io::readRegularFile(request.found, kMaxInputBytes));
    return fabric::diff(cluster, text, request.fabric);
  }
  TRY(site, siteOf(options));
  TRY(fabric, fabric::chosenFabric(site.cluster, request.fabric));
  const auto processes = io::makeProcessRunner();
  const auto where = fabricOptions(options, site.lab, site.cluster, fabric->name);
  auto report = Loop().run(fabric::diff(site.cluster, *processes, where, fabric->name));
  if (report) keep(where, fabric::KeptReportKind::Diff, toJson(*report));
  return report;
}

Result<void> watchFabric(const Options& options, std::chrono::seconds interval,
                         const std::function<bool(const fabric::DiffReport&)>& changed,
                         const std::string& name) {
  TRY(site, siteOf(options));
  TRY(fabric, fabric::chosenFabric(site.cluster, name));
  const auto processes = io::makeProcessRunner();
  SystemClock clock;
  return Loop().run(fabric::watch(site.cluster, *processes, clock,
                                  fabricOptions(options, site.lab, site.cluster, fabric->name),
                                  interval, changed, fabric->name));
}

Result<CablingSheet> cablingSheet(const Options& options, const std::string& rack,
                                  const std::string& name) {
  TRY(cluster, loadCluster(options));
  TRY(fabric, fabric::chosenFabric(cluster, name));
  TRY(declared, fabric::declaredTopology(cluster, *fabric));
  return CablingSheet{
      fabric::cablingCsv(declared, fabric::placesOf(cluster, *fabric, declared), rack),
      fabric::cablingSummary(declared)};
}

Result<std::string> plotFabric(const Options& options, const PlotRequest& request) {
  TRY(cluster, loadCluster(options));
  TRY(fabric, fabric::chosenFabric(cluster, request.fabric));
  const auto title = fmt::format("{} – {}", cluster.name, fabric->name);
  if (request.declared_only) {
    TRY(declared, fabric::declaredTopology(cluster, *fabric));
    return fabric::plotSvg(title, declared, fabric::placesOf(cluster, *fabric, declared));
  }
  TRY(found, fabricDiff(options, {request.found, fabric->name}));
  if (!found.error.empty())
    return fail(ErrorCode::Unavailable,
                found.error + "; --declared draws without discovering the fabric");
  const fabric::FoundFabric now{found.found, found.comparison};
  return fabric::plotSvg(title, found.declared, fabric::placesOf(cluster, *fabric, found.declared),
                         &now);
}

Result<RenderedFabric> renderFabric(const Options& options, const std::string& name) {
  TRY(cluster, loadCluster(options));
  auto fabrics = inventory::managedFabrics(cluster);
  if (!name.empty() || fabrics.size() < 2) {
    TRY(fabric, fabric::chosenFabric(cluster, name));
    fabrics = {fabric};
  }
  std::vector<fabric::Topology> topologies(fabrics.size());
  std::vector<fabric::ExpandedFabric> expanded;
  for (std::size_t i = 0; i < fabrics.size(); ++i) {
    TRY(declared, fabric::declaredTopology(cluster, *fabrics[i]));
    topologies[i] = std::move(declared);
    expanded.push_back({fabrics[i], &topologies[i]});
  }
  RenderedFabric out;
  out.files = fabric::renderExports(cluster, expanded);
  for (const auto& one : expanded)
    addManagers(options, cluster, one, fabric::folderOf(*one.fabric, expanded.size()), out);
  return out;
}

Result<std::vector<fabric::PortDifference>> checkQos(const Options& options,
                                                     const QosCheckRequest& request) {
  TRY(cluster, loadCluster(options));
  TRY(fabric, fabric::chosenFabric(cluster, request.fabric));
  if (!fabric->roce)
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("fabric {} has no roce: there is nothing to compare with", fabric->name));
  if (!request.switch_config.empty()) {
    TRY(config, io::readRegularFile(request.switch_config, kMaxInputBytes));
    return fabric::checkSwitch(cluster, *fabric, request.switch_name, config);
  }
  TRY(app, io::readRegularFile(request.dcb_app, kMaxInputBytes));
  TRY(pfc, io::readRegularFile(request.dcb_pfc, kMaxInputBytes));
  TRY(marking, fabric::hostMarking(app, pfc, request.mtu));
  std::vector<fabric::PortDifference> out;
  for (auto& text : fabric::disagreements(*fabric->roce, marking))
    out.push_back({{}, std::move(text), {}});
  return out;
}

Result<fabric::LinkHealthReport> linkHealth(const Options& options,
                                            const LinkHealthRequest& request) {
  links::Limits limits;
  limits.min_load = request.min_load_percent / 100;
  fabric::Transceivers transceivers;
  if (!request.transceivers.empty()) {
    TRY(csv, io::readRegularFile(request.transceivers, kMaxInputBytes));
    TRY(read, fabric::parseTransceivers(csv));
    transceivers = std::move(read);
  }
  if (!request.before.empty()) return healthOfFiles(request, limits, transceivers);
  TRY(site, siteOf(options));
  const auto chosen = fabric::chosenFabric(site.cluster, request.fabric);
  if (!chosen && !site.cluster.fabrics.empty()) return fail(chosen.error());
  const auto name = chosen ? (*chosen)->name : std::string();  // counters need no declaration
  const auto processes = io::makeProcessRunner();
  const auto where = fabricOptions(options, site.lab, site.cluster, name);
  SystemClock clock;
  auto report = Loop().run(fabric::linkHealth(
      *processes, clock, where,
      std::chrono::milliseconds(static_cast<long>(request.window_seconds * 1000)), limits,
      std::move(transceivers)));
  if (!report) return report;
  report->fabric = name;
  keep(where, fabric::KeptReportKind::Health, toJson(*report));
  return report;
}

Result<fabric::RehearsalReport> rehearseFaults(
    const Options& options, const RehearseRequest& request,
    const std::function<void(const fabric::FaultOutcome&)>& each) {
  TRY(cluster, loadCluster(options));
  const auto processes = io::makeProcessRunner();
  SystemClock clock;
  fabric::RehearsalOptions how;
  how.fabric = request.fabric;
  how.folder = options.state / "run" / "fabric-rehearsal";
  if (request.one_at_a_time) how.together = 1;
  if (!request.faults.empty()) how.kinds = request.faults;
  if (each) how.tell = each;
  return Loop().run(fabric::rehearse(cluster, *processes, clock, std::move(how)));
}

}  // namespace muster::app
