// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/commands.h"

#include "app/controller.h"
#include "base/io/files.h"
#include "fabric/exports/exports.h"
#include "fabric/exports/plot.h"
#include "fabric/exports/render.h"
#include "fabric/health/link_health.h"
#include "fabric/rehearsal/rehearsal.h"
#include "fabric/roce/roce.h"
#include "fabric/roce/switch_config.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace muster::cli {

namespace {

/// The inventory, in the twin's network where there is one.
struct Site {
  inventory::Cluster cluster;
  std::optional<lab::LabHandle> lab;
};

Result<Site> siteOf(const app::Options& options) {
  TRY(cluster, app::loadCluster(options));
  TRY(lab, lab::find(options.labFolder(cluster)));
  if (lab) TRY_OK(lab::enter(*lab));
  return Site{std::move(cluster), std::move(lab)};
}

Result<const inventory::Fabric*> fabricOf(const inventory::Cluster& cluster) {
  if (cluster.fabrics.size() == 1) return &cluster.fabrics.begin()->second;
  return fail(ErrorCode::InvalidInput,
              fmt::format("the inventory declares {} fabrics; this needs exactly one",
                          cluster.fabrics.size()));
}

/// Runs one coroutine to its end on this thread.
template <class T>
Result<T> runHere(Async<T> work) {
  asio::io_context context;
  Result<T> out = fail(ErrorCode::Internal, "did not end");
  asio::co_spawn(context, std::move(work), [&](std::exception_ptr broken, Result<T> result) {
    if (broken) std::rethrow_exception(broken);
    out = std::move(result);
  });
  context.run();
  return out;
}

Result<fabric::DiffReport> look(const app::Options& options, const FabricFlags& flags) {
  if (!flags.found.empty()) {
    TRY(cluster, app::loadCluster(options));
    TRY(text, io::readFile(flags.found));
    return fabric::diff(cluster, text);
  }
  TRY(site, siteOf(options));
  const auto processes = io::makeProcessRunner();
  return runHere(fabric::diff(site.cluster, *processes, app::fabricOptions(options, site.lab)));
}

std::string shown(const app::Options& options, const fabric::DiffReport& found) {
  return options.json ? toJson(found) + "\n" : toText(found);
}

int write(const std::filesystem::path& file, const std::string& text) {
  if (file.empty()) {
    std::cout << text;
    return kOk;
  }
  const auto written = io::writeFileAtomic(file, text);
  return written ? int{kOk} : report(written.error());
}

bool stderrIsTerminal() { return ::isatty(STDERR_FILENO) == 1; }

int watchFabric(const app::Options& options, const FabricFlags& flags) {
  const auto site = siteOf(options);
  if (!site) return report(site.error());
  const auto processes = io::makeProcessRunner();
  SystemClock clock;
  const auto tell = [&](const fabric::DiffReport& found) {
    if (!options.json) std::cout << fmt::format("---- {}\n", toString(clock.now()));
    std::cout << shown(options, found) << std::flush;
    return true;
  };
  const auto ended = runHere(fabric::watch(site->cluster, *processes, clock,
                                           app::fabricOptions(options, site->lab),
                                           std::chrono::seconds(flags.watch_seconds), tell));
  return ended ? int{kOk} : report(ended.error());
}

}  // namespace

int fabricDiff(const app::Options& options, const FabricFlags& flags) {
  if (flags.watch_seconds > 0) return watchFabric(options, flags);
  const auto found = look(options, flags);
  if (!found) {
    report(found.error());
    return fabric::DiffReport::kNoAnswer;
  }
  std::cout << (flags.prometheus ? toPrometheus(*found) : shown(options, *found));
  return found->exitCode();
}

int fabricPlan(const app::Options& options, const FabricFlags& flags) {
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  const auto fabric = fabricOf(*cluster);
  if (!fabric) return report(fabric.error());
  const auto declared = fabric::declaredTopology(*cluster, **fabric);
  if (!declared) return report(declared.error());
  std::cerr << fabric::cablingSummary(*declared);
  return write(
      flags.out,
      fabric::cablingCsv(*declared, fabric::placesOf(*cluster, **fabric, *declared), flags.rack));
}

int fabricPlot(const app::Options& options, const FabricFlags& flags) {
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  const auto fabric = fabricOf(*cluster);
  if (!fabric) return report(fabric.error());
  const auto title = fmt::format("{} – {}", cluster->name, (*fabric)->name);
  if (flags.declared_only) {
    const auto declared = fabric::declaredTopology(*cluster, **fabric);
    if (!declared) return report(declared.error());
    return write(flags.out, fabric::plotSvg(title, *declared,
                                            fabric::placesOf(*cluster, **fabric, *declared)));
  }
  auto found = look(options, flags);
  if (found && !found->error.empty())
    found = fail(ErrorCode::Unavailable, found->error + "; --declared draws without looking");
  if (!found) return report(found.error());
  const fabric::FoundFabric now{found->found, found->comparison};
  return write(flags.out,
               fabric::plotSvg(title, found->declared,
                               fabric::placesOf(*cluster, **fabric, found->declared), &now));
}

int fabricRender(const app::Options& options, const FabricFlags& flags) {
  const auto rendered = [&]() -> Result<std::vector<fabric::RenderedFile>> {
    TRY(cluster, app::loadCluster(options));
    TRY(fabric, fabricOf(cluster));
    TRY(declared, fabric::declaredTopology(cluster, *fabric));
    TRY(files, fabric::renderExports(cluster, *fabric, declared));
    const auto run = app::fabricOptions(options, std::nullopt).run_folder;
    const auto known = fabric::KnownGuids::fromJson(io::readFile(run / "guids.json").value_or(""));
    for (const auto& manager : fabric->subnet_managers) {
      if (manager == "controller") continue;  // muster runs that one itself
      auto own = fabric::renderManager(cluster, *fabric, declared, known, manager,
                                       io::readFile(run / "guid2lid").value_or(""));
      if (own)
        files.insert(files.end(), own->begin(), own->end());
      else
        report(own.error());
    }
    return files;
  }();
  if (!rendered) return report(rendered.error());
  for (const auto& file : *rendered) {
    const auto path = flags.out / file.path;
    auto written = io::makeDirs(path.parent_path());
    if (written) written = io::writeFileAtomic(path, file.content);
    if (!written) return report(written.error());
    std::cout << path.string() << '\n';
  }
  return kOk;
}

namespace {

/// Ports of a declared switch that have a cable; none asked: none told. Errors: NotFound (no such
/// switch)
Result<std::vector<int>> cabledPorts(const inventory::Cluster& cluster,
                                     const inventory::Fabric& fabric, const std::string& name) {
  std::vector<int> ports;
  if (name.empty()) return ports;
  TRY(declared, fabric::declaredTopology(cluster, fabric));
  for (const auto& link : declared.links)
    for (const auto& end : {link.a, link.b})
      if (end.node == name && declared.devices.at(name).is_switch) ports.push_back(end.number);
  if (ports.empty())
    return fail(
        ErrorCode::NotFound,
        fmt::format("fabric {} has no switch {} with cables; `muster fabric plan` lists them",
                    fabric.name, name));
  std::sort(ports.begin(), ports.end());
  return ports;
}

}  // namespace

int fabricQosCheck(const app::Options& options, const FabricFlags& flags) {
  const auto differences = [&]() -> Result<std::vector<fabric::PortDifference>> {
    TRY(cluster, app::loadCluster(options));
    TRY(fabric, fabricOf(cluster));
    if (!fabric->roce)
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("fabric {} has no roce: there is nothing to compare with", fabric->name));
    if (!flags.sonic.empty()) {
      TRY(ports, cabledPorts(cluster, *fabric, flags.switch_name));
      TRY(config, io::readFile(flags.sonic));
      return fabric::checkSwitch(*fabric->roce, ports, config);
    }
    TRY(app, io::readFile(flags.dcb_app));
    TRY(pfc, io::readFile(flags.dcb_pfc));
    TRY(marking, fabric::hostMarking(app, pfc, flags.mtu));
    std::vector<fabric::PortDifference> out;
    for (auto& text : fabric::disagreements(*fabric->roce, marking))
      out.push_back({{}, std::move(text), {}});
    return out;
  }();
  if (!differences) {
    report(differences.error());
    return fabric::DiffReport::kNoAnswer;
  }
  std::cout << (options.json ? toJson(*differences) + "\n" : toText(*differences));
  return differences->empty() ? fabric::DiffReport::kEqual : fabric::DiffReport::kDeviates;
}

namespace {

/// Two files that were written `window_seconds` apart: how long each reading took is not in them.
Result<fabric::LinkHealthReport> healthOfFiles(const FabricFlags& flags,
                                               const links::Limits& limits,
                                               const fabric::Transceivers& transceivers) {
  TRY(text, io::readFile(flags.found));
  TRY(topology, fabric::parseFound(text));
  TRY(before, io::readFile(flags.before));
  TRY(after, io::readFile(flags.after));
  TRY(first, fabric::parseReadings(before, topology));
  TRY(second, fabric::parseReadings(after, topology));
  return fabric::judgeLinks(topology, topology, {std::move(first), 0, 0},
                            {std::move(second), flags.window_seconds, flags.window_seconds}, limits,
                            transceivers);
}

Result<fabric::LinkHealthReport> healthNow(const app::Options& options, const FabricFlags& flags,
                                           const links::Limits& limits,
                                           fabric::Transceivers transceivers) {
  TRY(site, siteOf(options));
  const auto processes = io::makeProcessRunner();
  SystemClock clock;
  return runHere(
      fabric::linkHealth(*processes, clock, app::fabricOptions(options, site.lab),
                         std::chrono::milliseconds(static_cast<long>(flags.window_seconds * 1000)),
                         limits, std::move(transceivers)));
}

}  // namespace

int fabricHealth(const app::Options& options, const FabricFlags& flags) {
  const auto health = [&]() -> Result<fabric::LinkHealthReport> {
    links::Limits limits;
    limits.min_load = flags.min_load_percent / 100;
    fabric::Transceivers transceivers;
    if (!flags.transceivers.empty()) {
      TRY(csv, io::readFile(flags.transceivers));
      TRY(read, fabric::parseTransceivers(csv));
      transceivers = std::move(read);
    }
    return flags.before.empty() ? healthNow(options, flags, limits, std::move(transceivers))
                                : healthOfFiles(flags, limits, transceivers);
  }();
  if (!health) {
    report(health.error());
    return fabric::LinkHealthReport::kNoAnswer;
  }
  std::cout << (flags.prometheus ? toPrometheus(*health)
                : options.json   ? toJson(*health) + "\n"
                                 : toText(*health, flags.all));
  return health->exitCode();
}

int fabricRehearse(const app::Options& options, const FabricFlags& flags) {
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  const auto processes = io::makeProcessRunner();
  SystemClock clock;
  fabric::RehearsalOptions how;
  how.folder = options.state / "run" / "fabric-rehearsal";
  if (flags.alone) how.together = 1;
  if (!flags.faults.empty()) how.kinds.clear();
  for (const auto kind : fabric::kAllFaults)
    if (std::find(flags.faults.begin(), flags.faults.end(), toString(kind)) != flags.faults.end())
      how.kinds.insert(kind);
  std::size_t count = 0;
  how.tell = [&](const fabric::FaultOutcome& one) {
    ++count;
    if (!one.problems.empty() || (stderrIsTerminal() && count % 10 == 0))
      std::cerr << fmt::format("{:>5}  {} {}: {}\n", count, toString(one.fault.kind),
                               one.fault.name,
                               one.problems.empty() ? one.effect : one.problems.front());
  };
  const auto done = runHere(fabric::rehearse(*cluster, *processes, clock, std::move(how)));
  if (!done) {
    report(done.error());
    return fabric::RehearsalReport::kNoAnswer;
  }
  std::cout << (options.json ? toJson(*done) + "\n" : toText(*done));
  return done->exitCode();
}

}  // namespace muster::cli
