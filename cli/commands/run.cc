// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/run.h"

#include "app/runs.h"
#include "base/json_output.h"
#include "cli/view/run_view.h"
#include "lifecycle/runs/run_json.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

using lifecycle::Run;
using RunStores = std::unique_ptr<lifecycle::RunStore>;

int show(const app::Options& options, const Result<Run>& run) {
  if (!run) return report(run.error());
  if (options.json)
    std::cout << jsonText(toJson(*run)) << '\n';
  else
    std::cout << runText(*run);
  return kOk;
}

/// What the others of this kind do, on the run of the arguments.
int change(const app::Options& options, const std::string& id,
           Result<Run> (*use_case)(lifecycle::RunStore&, const std::string&,
                                   const lifecycle::RunActor&, WallTime)) {
  const auto runs = app::openRunStore(options);
  if (!runs) return report(runs.error());
  return show(options, use_case(**runs, id, app::localActor(), SystemClock().now()));
}

/// The plan of the run, where it has that one or none is named.
std::string planMeant(const Run& run, const std::string& named) {
  const bool is_meant = !run.plan_hash.empty() && run.plan_hash.starts_with(named);
  return named.empty() || is_meant ? run.plan_hash : named;
}

}  // namespace

int runList(const app::Options& options, const RunListArgs& args) {
  const auto runs = app::openRunStore(options);
  if (!runs) return report(runs.error());
  const auto listed = app::listRuns(**runs, {.open_only = args.open, .limit = args.limit});
  if (!listed) return report(listed.error());
  if (!options.json) {
    std::cout << runTable(*listed);
    return kOk;
  }
  auto out = nlohmann::json::array();
  for (const auto& run : *listed) out.push_back(toJson(run));
  std::cout << jsonText(out) << '\n';
  return kOk;
}

int runShow(const app::Options& options, const RunArgs& args) {
  const auto runs = app::openRunStore(options);
  if (!runs) return report(runs.error());
  return show(options, app::readRun(**runs, args.id));
}

int runFollow(const app::Options& options, const RunArgs& args) {
  ApplyProgress progress(options.json, false, PlanDetail::Grouped);
  return followRun(options, args.id, progress);
}

int runCancel(const app::Options& options, const RunArgs& args) {
  return change(options, args.id, app::cancelRun);
}
int runPause(const app::Options& options, const RunArgs& args) {
  return change(options, args.id, app::pauseRun);
}
int runResume(const app::Options& options, const RunArgs& args) {
  return change(options, args.id, app::resumeRun);
}

int runApprove(const app::Options& options, const RunApproveArgs& args) {
  const auto runs = app::openRunStore(options);
  if (!runs) return report(runs.error());
  const auto run = app::readRun(**runs, args.id);
  if (!run) return report(run.error());
  const auto hash = planMeant(*run, args.plan);
  const auto actor = app::localActor();
  const auto now = SystemClock().now();
  const bool confirms = run->apply.confirm && actor.principal == run->asked_by.principal;
  return show(options, confirms ? app::confirmRun(**runs, args.id, hash, actor, now)
                                : app::approveRun(**runs, args.id, hash, actor, now));
}

int runOverride(const app::Options& options, const RunOverrideArgs& args) {
  const auto runs = app::openRunStore(options);
  if (!runs) return report(runs.error());
  const auto run = app::readRun(**runs, args.id);
  if (!run) return report(run.error());
  return show(options, app::overrideRun(**runs, args.id, planMeant(*run, args.plan), args.reason,
                                        app::localActor(), SystemClock().now()));
}

int runAcknowledge(const app::Options& options, const RunArgs& args) {
  return change(options, args.id, app::acknowledgeRun);
}

}  // namespace muster::cli
