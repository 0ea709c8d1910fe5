// SPDX-License-Identifier: Apache-2.0
// rollout start, status, pause, abort, resume, rollback.
#include "cli/commands/rollout.h"
#include "app/plans/rollouts.h"
#include "base/io/regular_file.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/run.h"
#include "cli/view/console_progress.h"
#include "cli/view/rollout_view.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

int codeOf(app::RolloutOutcome outcome) {
  switch (outcome) {
    case app::RolloutOutcome::Complete:
      return kOk;
    case app::RolloutOutcome::Halted:
      return kFailed;
    case app::RolloutOutcome::Incomplete:
      break;
  }
  return kWorkLeft;
}

ShowEvents eventsFor(const app::Options& options) {
  return options.json ? ShowEvents::No : ShowEvents::Yes;
}

/// Runs it in the foreground until it stops by itself, and shows how far it is then.
int carryOn(const app::Options& options, app::RolloutRun& run, ConsoleProgress& progress) {
  if (const auto ended = run.carryOn(); !ended) return report(ended.error());
  progress.finish();
  const auto status = app::statusOf(run.book());
  std::cout << (options.json ? rolloutJson(status) : rolloutText(status));
  return codeOf(app::outcomeOf(status));
}

/// What is asked for, with the text of its change.
Result<lifecycle::RolloutParams> paramsOf(const app::Options& options,
                                          const RolloutStartArgs& args) {
  auto out = args.asked;
  out.change_file = options.inventory.string();
  if (!args.change.empty()) {
    TRY(text, io::readRegularFile(args.change, lifecycle::kMaxRolloutChangeBytes));
    out.change = std::move(text);
    std::error_code ignored;
    out.change_file = std::filesystem::absolute(args.change, ignored).string();
  }
  out.on_failure = lifecycle::parseOnFailure(args.on_failure);
  out.on_inconclusive = lifecycle::parseOnInconclusive(args.on_inconclusive);
  return out;
}

/// Whoever serves the site carries it out, when the inventory lets it begin.
int followRollout(const app::Options& options, app::SiteClient& site,
                  const lifecycle::RolloutParams& asked, const std::string& nodes) {
  ApplyProgress progress(options.json, true, PlanDetail::Grouped);
  return followNewRun(options, site,
                      {.kind = lifecycle::RunKind::Rollout,
                       .apply = {nodes, false, options.command_line, ""},
                       .rollout = asked},
                      progress);
}

Result<std::optional<lifecycle::Run>> runOf(app::SiteClient& site, const std::string& rollout) {
  TRY(open, site.runs({.open_only = true,
                       .limit = lifecycle::kMaxOpenRuns,
                       .kind = lifecycle::RunKind::Rollout}));
  for (auto& run : open)
    if (run.unreadable.empty() && run.rollout.id == rollout) return std::optional(std::move(run));
  return std::optional<lifecycle::Run>();
}

int told(const app::Options& options, const std::string& rollout, const std::string& done) {
  std::cout << (options.json ? jsonText(nlohmann::json{{"rollout", rollout}, {"done", done}})
                             : done)
            << '\n';
  return kOk;
}

Error carriedByNobody(const std::string& rollout) {
  return Error(ErrorCode::Conflict,
               fmt::format("no run of the site carries rollout {} out: go on with it on the host "
                           "of the site, with --direct",
                           rollout));
}

/// The one that is open, by the run that carries it out; where this process has the store, also
/// without one.
int order(const app::Options& options, lifecycle::Order what) {
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  if ((*site)->isEmbedded()) {
    const auto ordered = app::orderRollout(options, what);
    return ordered ? told(options, ordered->id, ordered->done) : report(ordered.error());
  }
  const auto status = (*site)->rollout("");
  if (!status) return report(status.error());
  const auto& id = status->rollout.id;
  const auto run = runOf(**site, id);
  if (!run) return report(run.error());
  if (!*run) return report(carriedByNobody(id));
  const bool pauses = what == lifecycle::Order::Pause;
  const auto said = (*site)->say((*run)->id, pauses ? app::RunWord::Pause : app::RunWord::Cancel);
  if (!said) return report(said.error());
  return told(options, id,
              fmt::format("run {}, which carries rollout {} out, was ordered to {}: nodes under "
                          "way are finished, no others start",
                          (*run)->id, id, pauses ? "pause" : "end"));
}

/// The run goes on with what it was allowed.
int resumeByRun(const app::Options& options, app::SiteClient& site, const lifecycle::Run& run,
                const std::string& accept_reason) {
  const auto resumed = accept_reason.empty() ? site.say(run.id, app::RunWord::Resume)
                                             : site.resumeAccepting(run.id, accept_reason);
  if (!resumed) return report(resumed.error());
  ApplyProgress progress(options.json, true, PlanDetail::Grouped);
  return followRun(options, site, run.id, progress, false);
}

}  // namespace

int rolloutStart(const app::Options& options, const RolloutStartArgs& args) {
  const auto asked = paramsOf(options, args);
  if (!asked) return report(asked.error());
  if (args.dry_run && options.server_given)
    return report(Error(ErrorCode::InvalidInput,
                        "--dry-run freezes the plan in this process: leave out --server, and run "
                        "it on the host of the site; nothing was done"));
  if (!args.dry_run) {
    const auto site = siteForRuns(options);
    if (!site) return report(site.error());
    if (*site) return followRollout(options, **site, *asked, args.nodes);
  }
  ConsoleProgress progress(options.json, eventsFor(options));
  auto run = app::RolloutRun::draft(options, *asked, args.nodes, args.dry_run, progress);
  if (!run) return report(run.error());
  const auto& book = run->book();
  if (args.dry_run) {
    std::cout << (options.json ? rolloutJson(app::statusOf(book))
                               : frozenText(book) + touchedText(book) +
                                     "dry run: nothing was written, nothing begun\n");
    return kOk;
  }
  if (const auto begun = run->begin(); !begun) return report(begun.error());
  if (!options.json) {
    const auto watches = run->whoWatches();
    if (!watches) return report(watches.error());
    std::cout << frozenText(book) << *watches << std::endl;
  }
  return carryOn(options, *run, progress);
}

int rolloutStatus(const app::Options& options, const RolloutStatusArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto status = (*site)->rollout(args.id);
  if (!status) return report(status.error());
  std::cout << (options.json ? rolloutJson(*status) : rolloutText(*status));
  if (!options.json && !status->others.empty())
    std::cout << fmt::format(
        "other rollouts that lie over the inventory, oldest first: {} (--id ID shows one)\n",
        fmt::join(status->others, ", "));
  return codeOf(app::outcomeOfState(status->rollout));
}

int rolloutPause(const app::Options& options) { return order(options, lifecycle::Order::Pause); }
int rolloutAbort(const app::Options& options) { return order(options, lifecycle::Order::Abort); }

int rolloutResume(const app::Options& options, const RolloutResumeArgs& args) {
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  const auto status = (*site)->rollout("");
  if (!status) return report(status.error());
  const auto open = runOf(**site, status->rollout.id);
  if (!open) return report(open.error());
  if (*open) return resumeByRun(options, **site, **open, args.accept_reason);
  if (!(*site)->isEmbedded()) return report(carriedByNobody(status->rollout.id));
  ConsoleProgress progress(options.json, eventsFor(options));
  auto run = app::RolloutRun::resume(options, args.accept_reason, progress);
  return run ? carryOn(options, *run, progress) : report(run.error());
}

int rolloutRollback(const app::Options& options, const RolloutRollbackArgs& args) {
  const auto site = siteForRuns(options);
  if (!site) return report(site.error());
  if (*site) {
    const auto status = (*site)->rollout(args.id);
    if (!status) return report(status.error());
    lifecycle::RolloutParams asked;
    asked.id = status->rollout.id;
    asked.back = true;
    asked.wipe_reason = args.wipe_reason;
    return followRollout(options, **site, asked, "");
  }
  ConsoleProgress progress(options.json, eventsFor(options));
  auto run = app::RolloutRun::rollBack(options, args.id, args.wipe_reason, progress);
  return run ? carryOn(options, *run, progress) : report(run.error());
}

}  // namespace muster::cli
