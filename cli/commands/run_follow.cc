// SPDX-License-Identifier: Apache-2.0
// A run, shown as `apply` shows its own work.
#include "api/run_json.h"
#include "app/plans/apply.h"
#include "app/site/effective_cluster.h"
#include "base/json_output.h"
#include "cli/commands/run.h"
#include "cli/terminal.h"
#include "cli/view/run_view.h"
#include "cli/view/summary.h"
#include "inventory/model/cluster.h"

#include <nlohmann/json.hpp>

#include <csignal>
#include <iostream>
#include <type_traits>

#include <unistd.h>

namespace muster::cli {
namespace {

using lifecycle::Run;
using lifecycle::RunState;

constexpr std::chrono::milliseconds kPoll{300};
constexpr std::size_t kEventsAtOnce = 2'000;
constexpr std::chrono::seconds kNobodyBegins{30};
/// How long a server that has gone is waited for: a restart, or a host that takes over.
constexpr std::chrono::seconds kServerReturns{120};
constexpr std::chrono::seconds kServerAsked{1};

volatile std::sig_atomic_t interrupted = 0;

/// Ctrl-C also ends a question, as a no.
void hearInterrupt() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  ::sigaction(SIGINT, &action, nullptr);
}

class Follower {
 public:
  /// `asked_here`: the run was ordered by this command.
  Follower(app::SiteClient& site, std::string id, ApplyProgress& progress, bool asked_here)
      : site_(site), id_(std::move(id)), progress_(progress), asked_here_(asked_here) {}

  Result<Run> toItsEnd() {
    const auto began = std::chrono::steady_clock::now();
    for (;;) {
      TRY(part, looked([&] { return site_.followRun(id_, after_, kEventsAtOnce); }));
      TRY_OK(showPlan(part.run));
      for (const auto& event : part.events) progress_.onEvent(event);
      const bool is_behind = part.next != after_ && !part.events.empty();
      after_ = part.next;
      if (part.ended || interrupted != 0) return std::move(part.run);
      TRY_OK(answer(part.run));
      if (part.run.state == RunState::Queued && !said_ &&
          std::chrono::steady_clock::now() - began > kNobodyBegins) {
        said_ = true;
        progress_.onNotice("muster: run " + id_ +
                           " is queued: another run is under way (`muster run list --open`), or "
                           "nobody serves the site");
      }
      if (is_behind) continue;
      if (!waitWhileRead(kPoll)) return std::move(part.run);
    }
  }

 private:
  /// A look at the site; where nobody answers, again and again until somebody is back. Runs outlive
  /// who carries them out, so following one does, too.
  template <class Look>
  std::invoke_result_t<Look> looked(const Look& look) {
    const auto began = std::chrono::steady_clock::now();
    for (bool is_told = false;;) {
      auto seen = look();
      if (seen || !seen.error().canRetry() || interrupted != 0 ||
          std::chrono::steady_clock::now() - began > kServerReturns)
        return seen;
      if (!is_told)
        progress_.onNotice(
            fmt::format("muster: {}; run {} is kept, and the server is asked again for {} s",
                        seen.error().str(), id_, kServerReturns.count()));
      is_told = true;
      if (!waitWhileRead(kServerAsked)) return seen;
    }
  }

  Result<void> showPlan(const Run& run) {
    if (!run.impact || run.plan_hash == shown_) return {};
    shown_ = run.plan_hash;
    auto kept = looked([&] { return site_.planOfRun(id_); });
    if (!kept && kept.error().code() != ErrorCode::Corrupt) return std::unexpected(kept.error());
    const bool is_it = kept && *kept && (*kept)->hash() == run.plan_hash;
    progress_.onImpact(is_it ? **kept : lifecycle::Plan(), *run.impact);
    return {};
  }

  /// Its author is asked; others are told who is.
  Result<void> answer(const Run& run) {
    if (run.state == RunState::Waiting && run.waits_until != told_until_) {
      told_until_ = run.waits_until;
      progress_.onNotice("muster: " + runWaitsText(run));
    }
    if (run.state != RunState::NeedsApproval || run.plan_hash == answered_) return {};
    answered_ = run.plan_hash;
    TRY(who, site_.principal());
    const bool is_mine = who == run.asked_by.principal;
    const bool is_terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
    const bool awaits_author = run.reason == lifecycle::RunReason::AwaitsConfirmation;
    if (!awaits_author || !is_mine || !is_terminal) {
      progress_.onNotice("muster: " + runWaitsText(run));
      return {};
    }
    const bool may = progress_.mayApply(*run.impact);
    if (!may && !std::cin && !(asked_here_ && interrupted != 0)) {  // nobody has said no
      interrupted = 1;
      return {};
    }
    auto said = may ? site_.confirmRun(id_, run.plan_hash) : site_.say(id_, app::RunWord::Cancel);
    if (!said) return std::unexpected(said.error());
    if (!may) interrupted = 0;
    if (said->state == RunState::NeedsApproval)
      progress_.onNotice("muster: " + runWaitsText(*said));
    return {};
  }

  app::SiteClient& site_;
  const std::string id_;
  ApplyProgress& progress_;
  const bool asked_here_;
  std::int64_t after_ = 0;
  std::string shown_, answered_;  ///< hashes of plans
  bool said_ = false;
  WallTime told_until_{};
};

void showStages(const app::Options& options, WallTime since) {
  const auto live = app::effectiveCluster(options);
  const auto store = app::openStoreForReading(options);
  if (!live || !store) return;
  const auto stages = app::stageTimes((*live)->cluster(), **store, since);
  if (!stages) return;
  if (const auto table = stageTable(*stages); !table.empty()) std::cout << "\n" << table;
}

}  // namespace

int followRun(const app::Options& options, app::SiteClient& site, const std::string& id,
              ApplyProgress& progress, bool asked_here) {
  hearInterrupt();
  Follower follower(site, id, progress, asked_here);
  const auto run = follower.toItsEnd();
  progress.finish();
  const auto how_to_go_on = [&](std::string_view what) {
    std::cerr << fmt::format(
        "\nmuster: run {0} {1}\n  follow it: muster run follow {0}\n  cancel it: muster run "
        "cancel {0}\n",
        id, what);
  };
  if (!run) {
    if (run.error().canRetry()) how_to_go_on("is kept, and goes on once somebody serves the site");
    return report(run.error());
  }
  if (!isEnd(run->state)) {
    how_to_go_on("goes on without this terminal");
    return kWorkLeft;
  }
  if (options.json)
    std::cout << jsonText(nlohmann::json{{"run", api::runJson(*run)}}) << '\n';
  else
    std::cout << runEndText(*run);
  if (!options.json && site.isEmbedded()) showStages(options, run->asked_at);
  return exitCodeOf(run->state);
}

int followNewRun(const app::Options& options, app::SiteClient& site, const app::RunRequest& request,
                 ApplyProgress& progress) {
  const auto run = site.submitRun(request);
  if (!run) return report(run.error());
  const auto watched = site.isWatched();
  std::cerr << fmt::format(
      "muster: run {}, {}\n", run->id,
      watched && *watched
          ? "carried out by who serves this site"
          : "kept until somebody carries runs out: who answers does not, and no `muster monitor` "
            "or `muster server` (without --api-only) works on this site now");
  return followRun(options, site, run->id, progress, true);
}

int applyByRun(const app::Options& options, app::SiteClient& site, const ApplyArgs& args) {
  const bool asks =
      !args.yes && !options.json && ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  app::RunRequest request;
  request.apply = {args.nodes, asks, options.command_line, ""};
  if (options.server.empty()) {  // it reads the same file; who may not read it means what it has
    if (const auto live = app::effectiveCluster(options))
      request.apply.inventory = (*live)->cluster().digest;
    else if (site.isEmbedded())
      return report(live.error());
  }
  request.after_restart =
      lifecycle::parseAfterRestart(args.after_restart).value_or(lifecycle::AfterRestart::Continue);
  ApplyProgress progress(options.json, args.yes,
                         args.expand ? PlanDetail::Nodes : PlanDetail::Grouped);
  return followNewRun(options, site, request, progress);
}

}  // namespace muster::cli
