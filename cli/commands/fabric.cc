// SPDX-License-Identifier: Apache-2.0
// fabric show, diff, plan, plot, render, qos-check, health, rehearse.
#include "app/fabric/fabric_look.h"
#include "app/fabric/fabric_reports.h"
#include "app/site/output_file.h"

#include "app/site/site_records.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/fabric.h"
#include "cli/commands/print_done.h"
#include "cli/view/fabric_view.h"
#include "fabric/exports/exports.h"
#include "fabric/exports/render.h"
#include "fabric/fabric_diff.h"
#include "fabric/health/link_health.h"
#include "fabric/rehearsal/rehearsal.h"
#include "fabric/roce/switch_config.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

constexpr std::size_t kProgressInterval = 10;  ///< faults between two lines on a terminal

/// `what`: "csv", "svg".
int write(const app::Options& options, const std::filesystem::path& file, const char* what,
          const std::string& text) {
  if (file.empty()) return printDone(options, {{what, text}}, text);
  const auto written = app::writeOutputFile(options, file, text);
  return written ? printDone(options, {{"file", file.string()}}, "") : report(written.error());
}

/// Prints the error; commands that compare have an exit status of their own for "no answer".
int noAnswer(const Error& error, int code) {
  report(error);
  return code;
}

std::string shown(const app::Options& options, const fabric::DiffReport& found) {
  return options.json ? toJson(found) + "\n" : toText(found);
}

int watch(const app::Options& options, const FabricDiffArgs& args) {
  const SystemClock clock;
  const auto ended = app::watchFabric(
      options, std::chrono::seconds(args.watch_seconds),
      [&](const fabric::DiffReport& found) {
        if (!options.json) std::cout << fmt::format("---- {}\n", toString(clock.now()));
        std::cout << shown(options, found) << std::flush;
        return true;
      },
      args.request.fabric);
  return ended ? int{kOk} : report(ended.error());
}

}  // namespace

int fabricDiff(const app::Options& options, const FabricDiffArgs& args) {
  if (args.watch_seconds > 0) return watch(options, args);
  const auto found = app::fabricDiff(options, args.request);
  if (!found) return noAnswer(found.error(), fabric::DiffReport::kNoAnswer);
  std::cout << (args.prometheus ? toPrometheus(*found) : shown(options, *found));
  return found->exitCode();
}

int fabricShow(const app::Options& options, const FabricShowArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const app::FabricCableFilter filter{args.fabric, args.device, !args.all && args.device.empty()};
  const auto summary = (*site)->records().fabric(args.fabric);
  if (!summary) return report(summary.error());
  const auto cables = (*site)->records().fabricCables(filter);
  if (!cables) return report(cables.error());
  std::cout << (options.json ? jsonText(fabricJson(*summary, *cables), 2) + "\n"
                             : fabricText(*summary, *cables));
  return kOk;
}

int fabricPlan(const app::Options& options, const FabricPlanArgs& args) {
  const auto sheet = app::cablingSheet(options, args.rack, args.fabric);
  if (!sheet) return report(sheet.error());
  std::cerr << sheet->summary;
  return write(options, args.out, "csv", sheet->csv);
}

int fabricPlot(const app::Options& options, const FabricPlotArgs& args) {
  const auto svg = app::plotFabric(options, args.request);
  return svg ? write(options, args.out, "svg", *svg) : report(svg.error());
}

int fabricRender(const app::Options& options, const FabricRenderArgs& args) {
  const auto rendered = app::renderFabric(options, args.fabric);
  if (!rendered) return report(rendered.error());
  std::string text;
  auto files = nlohmann::json::array();
  auto missing = nlohmann::json::array();
  for (const auto& error : rendered->missing) {
    missing.push_back(error.str());
    if (!options.json) report(error);
  }
  for (const auto& file : rendered->files) {
    const auto below = std::filesystem::path(file.path).lexically_normal();
    if (below.is_absolute() || below.empty() || *below.begin() == "..")
      return report(Error(ErrorCode::InvalidInput,
                          fmt::format("'{}' is outside the folder that was named: correct the "
                                      "name in the inventory that it comes from",
                                      file.path)));
    const auto path = args.folder / below;
    auto written = io::makeDirs(path.parent_path());
    if (written) written = app::writeOutputFile(options, path, file.content);
    if (!written) return report(written.error());
    files.push_back(path.string());
    text += path.string() + "\n";
  }
  return printDone(options, {{"files", std::move(files)}, {"missing", std::move(missing)}}, text);
}

int fabricQosCheck(const app::Options& options, const app::QosCheckRequest& request) {
  const auto differences = app::checkQos(options, request);
  if (!differences) return noAnswer(differences.error(), fabric::DiffReport::kNoAnswer);
  std::cout << (options.json ? toJson(*differences) + "\n" : toText(*differences));
  return differences->empty() ? fabric::DiffReport::kEqual : fabric::DiffReport::kDeviates;
}

int fabricHealth(const app::Options& options, const FabricHealthArgs& args) {
  const auto health = app::linkHealth(options, args.request);
  if (!health) return noAnswer(health.error(), fabric::LinkHealthReport::kNoAnswer);
  std::cout << (args.prometheus ? toPrometheus(*health)
                : options.json  ? toJson(*health) + "\n"
                                : toText(*health, args.all));
  return health->exitCode();
}

int fabricRehearse(const app::Options& options, const FabricRehearseArgs& args) {
  app::RehearseRequest request{{}, args.alone, args.fabric};
  for (const auto kind : fabric::kAllFaults)
    if (std::find(args.faults.begin(), args.faults.end(), toString(kind)) != args.faults.end())
      request.faults.insert(kind);
  const bool on_terminal = ::isatty(STDERR_FILENO) == 1;
  std::size_t count = 0;
  const auto done = app::rehearseFaults(options, request, [&](const fabric::FaultOutcome& one) {
    ++count;
    if (!one.problems.empty() || (on_terminal && count % kProgressInterval == 0))
      std::cerr << fmt::format("{:>5}  {} {}: {}\n", count, toString(one.fault.kind),
                               one.fault.name,
                               one.problems.empty() ? one.effect : one.problems.front());
  });
  if (!done) return noAnswer(done.error(), fabric::RehearsalReport::kNoAnswer);
  std::cout << (options.json ? toJson(*done) + "\n" : toText(*done));
  return done->exitCode();
}

}  // namespace muster::cli
