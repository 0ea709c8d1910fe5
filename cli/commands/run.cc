// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/run.h"

#include "api/run_json.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/view/run_view.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

using lifecycle::Run;

int show(const app::Options& options, const Result<Run>& run) {
  if (!run) return report(run.error());
  if (options.json)
    std::cout << jsonText(api::runJson(*run)) << '\n';
  else
    std::cout << runText(*run);
  return kOk;
}

int say(const app::Options& options, const std::string& id, app::RunWord word) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  return show(options, (*site)->say(id, word));
}

/// The newest plan of the run, where none is named.
std::string planMeant(const Run& run, const std::string& named) {
  return named.empty() ? run.plan_hash : named;
}

}  // namespace

int runList(const app::Options& options, const RunListArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto listed = (*site)->runs({.open_only = args.open, .limit = args.limit});
  if (!listed) return report(listed.error());
  if (!options.json) {
    std::cout << runTable(*listed);
    return kOk;
  }
  auto out = nlohmann::json::array();
  for (const auto& run : *listed) out.push_back(api::runJson(run));
  std::cout << jsonText(out) << '\n';
  return kOk;
}

int runShow(const app::Options& options, const RunArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  return show(options, (*site)->run(args.id));
}

int runFollow(const app::Options& options, const RunArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  ApplyProgress progress(options.json, false, PlanDetail::Grouped);
  return followRun(options, **site, args.id, progress, false);
}

int runCancel(const app::Options& options, const RunArgs& args) {
  return say(options, args.id, app::RunWord::Cancel);
}
int runPause(const app::Options& options, const RunArgs& args) {
  return say(options, args.id, app::RunWord::Pause);
}
int runResume(const app::Options& options, const RunArgs& args) {
  return say(options, args.id, app::RunWord::Resume);
}

int runApprove(const app::Options& options, const RunApproveArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto run = (*site)->run(args.id);
  if (!run) return report(run.error());
  const auto hash = planMeant(*run, args.plan);
  const auto who = (*site)->principal();
  if (!who) return report(who.error());
  const bool confirms = run->apply.confirm && *who == run->asked_by.principal;
  return show(options,
              confirms ? (*site)->confirmRun(args.id, hash) : (*site)->approveRun(args.id, hash));
}

int runOverride(const app::Options& options, const RunOverrideArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto run = (*site)->run(args.id);
  if (!run) return report(run.error());
  return show(options, (*site)->overrideRun(args.id, planMeant(*run, args.plan), args.reason));
}

int runAcknowledge(const app::Options& options, const RunArgs& args) {
  return say(options, args.id, app::RunWord::Acknowledge);
}

}  // namespace muster::cli
