// SPDX-License-Identifier: Apache-2.0
// rollout start, status, pause, abort, resume, rollback.
#include "app/plans/rollout_guard.h"
#include "app/plans/rollouts.h"
#include "app/site/embedded_site.h"
#include "app/site/state_lock.h"

#include "base/io/regular_file.h"
#include "base/json_output.h"
#include "cli/commands/rollout.h"
#include "cli/commands/run.h"
#include "cli/view/console_progress.h"
#include "cli/view/rollout_view.h"
#include "inventory/model/rollout_policy.h"

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
  const auto& book = run.book();
  std::cout << (options.json ? rolloutJson(book, {}) : rolloutText(book, {}));
  return codeOf(app::outcomeOf(book));
}

app::RolloutRequest requestOf(const RolloutStartArgs& args) {
  auto out = args.request;
  if (args.on_failure == "halt") out.on_failure = inventory::OnFailure::Halt;
  if (args.on_failure == "roll-back") out.on_failure = inventory::OnFailure::RollBack;
  if (args.on_inconclusive == "halt") out.on_inconclusive = inventory::OnInconclusive::Halt;
  if (args.on_inconclusive == "continue") out.on_inconclusive = inventory::OnInconclusive::Continue;
  return out;
}

int order(const app::Options& options, lifecycle::Order what) {
  const auto ordered = app::orderRollout(options, what);
  if (!ordered) return report(ordered.error());
  std::cout << (options.json
                    ? jsonText(nlohmann::json{{"rollout", ordered->id}, {"done", ordered->done}})
                    : ordered->done)
            << '\n';
  return kOk;
}

bool isServed(const app::Options& options) {
  return !options.direct && app::isMonitorAlive(options.state);
}

/// Whoever serves the site carries it out, when the inventory lets it begin.
int followRollout(const app::Options& options, const app::RunRequest& request) {
  app::EmbeddedSite site(options);
  ApplyProgress progress(options.json, true, PlanDetail::Grouped);
  return followNewRun(options, site, request, progress);
}

constexpr std::size_t kMaxChangeBytes = 1 << 20;

int startByRun(const app::Options& options, const RolloutStartArgs& args) {
  app::RunRequest request{.kind = lifecycle::RunKind::Rollout,
                          .apply = {args.request.nodes, false, options.command_line, ""}};
  auto& rollout = request.rollout;
  rollout.driver = args.request.driver;
  rollout.change_file = options.inventory.string();
  if (!args.request.change.empty()) {
    auto text = io::readRegularFile(args.request.change, kMaxChangeBytes);
    if (!text) return report(text.error());
    rollout.change = std::move(*text);
    std::error_code ignored;
    rollout.change_file = std::filesystem::absolute(args.request.change, ignored).string();
  }
  rollout.canaries = static_cast<std::size_t>(args.request.canaries.value_or(0));
  rollout.on_failure = args.on_failure;
  rollout.on_inconclusive = args.on_inconclusive;
  rollout.wipe_reason = args.request.wipe_reason;
  return followRollout(options, request);
}

int rollBackByRun(const app::Options& options, const RolloutRollbackArgs& args) {
  const auto stored = app::storedRollout(options, args.id);
  if (!stored) return report(stored.error());
  if (const auto may = app::mayRollBack(options, *stored->store, stored->book); !may)
    return report(may.error());
  app::RunRequest request{.kind = lifecycle::RunKind::Rollout,
                          .apply = {"", false, options.command_line, ""}};
  request.rollout.id = stored->book.rollout().id;
  request.rollout.back = true;
  request.rollout.wipe_reason = args.wipe_reason;
  return followRollout(options, request);
}

/// The run goes on with what it was allowed.
int resumeByRun(const app::Options& options, const lifecycle::Run& run,
                const std::string& accept_reason) {
  if (!accept_reason.empty())
    if (const auto accepted = app::acceptGate(options, run.rollout.id, accept_reason); !accepted)
      return report(accepted.error());
  app::EmbeddedSite site(options);
  if (const auto resumed = site.say(run.id, app::RunWord::Resume); !resumed)
    return report(resumed.error());
  ApplyProgress progress(options.json, true, PlanDetail::Grouped);
  return followRun(options, site, run.id, progress, false);
}

}  // namespace

int rolloutStart(const app::Options& options, const RolloutStartArgs& args) {
  if (!args.dry_run && isServed(options)) return startByRun(options, args);
  ConsoleProgress progress(options.json, eventsFor(options));
  auto run = app::RolloutRun::draft(options, requestOf(args), args.dry_run, progress);
  if (!run) return report(run.error());
  const auto& book = run->book();
  if (args.dry_run) {
    std::cout << (options.json ? rolloutJson(book, {})
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
  const auto stored = app::storedRollout(options, args.id);
  if (!stored) return report(stored.error());
  std::cout << (options.json ? rolloutJson(stored->book, stored->order)
                             : rolloutText(stored->book, stored->order));
  if (!options.json && !stored->others.empty())
    std::cout << fmt::format(
        "other rollouts that lie over the inventory, oldest first: {} (--id ID shows one)\n",
        fmt::join(stored->others, ", "));
  return codeOf(app::outcomeOfState(stored->book));
}

int rolloutPause(const app::Options& options) { return order(options, lifecycle::Order::Pause); }
int rolloutAbort(const app::Options& options) { return order(options, lifecycle::Order::Abort); }

int rolloutResume(const app::Options& options, const RolloutResumeArgs& args) {
  const auto stored = app::storedRollout(options, "");
  if (!stored) return report(stored.error());
  const auto open = app::runOfRollout(options, stored->book.rollout().id);
  if (!open) return report(open.error());
  if (*open) return resumeByRun(options, **open, args.accept_reason);
  ConsoleProgress progress(options.json, eventsFor(options));
  auto run = app::RolloutRun::resume(options, args.accept_reason, progress);
  return run ? carryOn(options, *run, progress) : report(run.error());
}

int rolloutRollback(const app::Options& options, const RolloutRollbackArgs& args) {
  if (isServed(options)) return rollBackByRun(options, args);
  ConsoleProgress progress(options.json, eventsFor(options));
  auto run = app::RolloutRun::rollBack(options, args.id, args.wipe_reason, progress);
  return run ? carryOn(options, *run, progress) : report(run.error());
}

}  // namespace muster::cli
