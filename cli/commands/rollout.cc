// SPDX-License-Identifier: Apache-2.0
// rollout start, status, pause, abort, resume, rollback. What they decide is in lifecycle/rollout/.
#include "base/json_output.h"
#include "cli/commands/commands.h"

#include "app/leadership.h"
#include "app/state_lock.h"
#include "cli/session.h"
#include "cli/view/rollout_view.h"
#include "fabric/topology/leaves.h"
#include "lifecycle/rollout/freeze.h"
#include "lifecycle/rollout/overlay.h"
#include "lifecycle/rollout/runner.h"
#include "monitor/monitor.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

using lifecycle::RolloutDirection;
using lifecycle::RolloutRecord;
using lifecycle::RolloutState;

constexpr std::size_t kMaxChangeBytes = 1 << 20;

/// The text of the change, and the file that its places and paths refer to.
struct Source {
  std::string text;
  std::filesystem::path file;
};

Result<Source> sourceOf(const app::Options& options, const RolloutFlags& flags,
                        const lifecycle::EffectiveCluster& live,
                        const std::vector<NodeName>& nodes) {
  if (flags.change.empty() == flags.driver.empty())
    return fail(ErrorCode::InvalidInput,
                "say what changes, in one way: --change FILE or --driver NAME");
  if (!flags.change.empty()) {
    TRY(text, io::readFile(flags.change, kMaxChangeBytes));
    std::error_code ignored;
    return Source{std::move(text), std::filesystem::absolute(flags.change, ignored)};
  }
  std::vector<std::string> profiles;
  for (const auto& node : nodes)
    profiles.push_back(live.cluster().profileOf(*live.cluster().findNode(node)).name);
  TRY(text, inventory::changeToDriver(live.cluster(), flags.driver, profiles));
  return Source{std::move(text), options.inventory};
}

Result<inventory::Change> readChange(const Source& source,
                                     const lifecycle::EffectiveCluster& live) {
  auto loaded = inventory::loadChangeText(source.text, source.file, live.cluster());
  for (const auto& one : loaded.diagnostics.all()) std::cerr << one.str() << '\n';
  if (!loaded.change)
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} has {} problems; nothing was done", source.file.string(),
                            loaded.diagnostics.all().size()));
  return std::move(*loaded.change);
}

inventory::RolloutPolicy policyOf(inventory::RolloutPolicy policy, const RolloutFlags& flags) {
  if (flags.canaries) policy.canary = {*flags.canaries, std::nullopt};
  if (flags.on_failure == "halt") policy.on_failure = inventory::OnFailure::Halt;
  if (flags.on_failure == "roll-back") policy.on_failure = inventory::OnFailure::RollBack;
  if (flags.when_unclear == "halt") policy.regression.when_unclear = inventory::WhenUnclear::Halt;
  if (flags.when_unclear == "go-on") policy.regression.when_unclear = inventory::WhenUnclear::GoOn;
  return policy;
}

int codeOf(RolloutState state) {
  switch (state) {
    case RolloutState::Done:
    case RolloutState::RolledBack:
      return kOk;
    case RolloutState::Halted:
      return kFailed;
    case RolloutState::Running:
    case RolloutState::Paused:
    case RolloutState::Aborted:
      break;
  }
  return kWorkLeft;
}

/// Runs it in the foreground until it stops by itself, and shows where it stands then.
Result<int> carryOn(Session& session, const app::Options& options, RolloutRecord& book,
                    RolloutDirection direction) {
  auto& controller = *session.controller;
  const lifecycle::EventSink show = [&session](const lifecycle::Event& event) {
    session.view.show(event);
  };
  lifecycle::RolloutRunner runner(
      {*session.live, controller.engine(), controller.phases(), controller.store(),
       controller.clock(), options.json ? nullptr : show, fabric::leavesOf},
      book);
  TRY_OK(controller.run(runner.run(direction)));
  session.view.finish();
  const auto& rollout = book.rollout();
  std::cout << (options.json ? rolloutJson(book, {}) : rolloutText(book, {}));
  if (rollout.state == RolloutState::RolledBack &&
      book.count(lifecycle::RolloutNodeState::RollbackFailed) > 0)
    return int{kWorkLeft};
  if (rollout.state == RolloutState::Done && (book.count(lifecycle::RolloutNodeState::Failed) > 0 ||
                                              book.count(lifecycle::RolloutNodeState::Skipped) > 0))
    return int{kWorkLeft};
  return codeOf(rollout.state);
}

/// Reads every node once, after their agents have had time to call the new process.
Result<lifecycle::FactSet> lookAt(Session& session, const std::vector<NodeName>& nodes) {
  lifecycle::Policy policy;
  for (const auto& node : nodes)
    if (session.cluster().findNode(node)) policy.only.insert(lifecycle::Subject(node));
  return session.controller->run(session.controller->observe(std::move(policy)));
}

std::vector<NodeName> nodesOf(const RolloutRecord& book) {
  std::vector<NodeName> out;
  for (const auto& [node, progress] : book.progress()) out.push_back(node);
  return out;
}

Result<int> start(const app::Options& options, const RolloutFlags& flags) {
  const auto id = lifecycle::newRolloutId();
  TRY(live, liveCluster(options));
  TRY(nodes, selectedNodes(live->cluster(), flags.nodes));
  TRY(source, sourceOf(options, flags, *live, nodes));
  TRY(change, readChange(source, *live));
  const auto policy = policyOf(change.policy, flags);
  live->add(id, std::move(change));
  TRY(session, Session::open(options, std::move(live),
                             flags.dry_run ? app::Role::Looks : app::Role::Acts, options.json));
  auto& controller = *session->controller;
  if (!flags.dry_run) TRY_OK(lifecycle::dropMerged(*session->live, controller.store()));
  TRY(facts, lookAt(*session, nodes));
  TRY(book, lifecycle::draftRollout(*session->live, controller.phases(), controller.store(), facts,
                                    {id, controller.clock().now(), app::userName(), app::hostName(),
                                     options.command_line, source.file.string(), source.text,
                                     policy, flags.wipe_reason, nodes}));
  if (flags.dry_run) {
    std::cout << (options.json ? rolloutJson(book, {})
                               : frozenText(book) + touchedText(book) +
                                     "a rehearsal: nothing was written, nothing begun\n");
    return int{kOk};
  }
  TRY_OK(book.begin());
  if (!options.json) {
    TRY(kept, monitor::monitorStatus(controller.store(), controller.clock().now()));
    TRY(holder, app::holderOf(options.state, app::hostName()));
    std::cout << frozenText(book)
              << monitor::watchDuringRollout({app::hasSeveralControllers(session->cluster()),
                                              options.store.empty(), holder},
                                             kept)
              << std::endl;
  }
  return carryOn(*session, options, book, RolloutDirection::Forward);
}

Result<RolloutRecord> chosen(lifecycle::Store& store, const RolloutFlags& flags) {
  if (flags.id.empty()) return RolloutRecord::current(store);
  auto book = RolloutRecord::open(store, flags.id);
  if (book || book.error().code() != ErrorCode::NotFound) return book;
  TRY(ids, RolloutRecord::list(store));
  return fail(ErrorCode::NotFound,
              fmt::format("there is no rollout {}; those that lie over the inventory: {}", flags.id,
                          ids.empty() ? "none" : fmt::format("{}", fmt::join(ids, ", "))));
}

Result<int> resume(const app::Options& options, const RolloutFlags& flags) {
  TRY(live, liveCluster(options));
  TRY(session, Session::open(options, std::move(live), app::Role::Acts, options.json));
  auto& controller = *session->controller;
  TRY(book, RolloutRecord::current(controller.store()));
  const auto accepted = flags.accept_reason.empty()
                            ? ""
                            : fmt::format("{}: {}", app::actorText(), flags.accept_reason);
  TRY(direction, lifecycle::prepareResume(book, accepted));
  TRY_OK(lookAt(*session, nodesOf(book)));
  return carryOn(*session, options, book, direction);
}

/// The store without a controller. Errors: NotFound when nothing was done yet
Result<std::unique_ptr<lifecycle::Store>> openStored(const app::Options& options) {
  if (std::error_code ignored;
      options.store.empty() && !std::filesystem::exists(options.state / "muster.db", ignored))
    return fail(ErrorCode::NotFound,
                fmt::format("nothing has been done yet in {}: there is no rollout",
                            options.state.string()));
  return lifecycle::openStore(options.storeUrl());
}

Result<int> rollback(const app::Options& options, const RolloutFlags& flags) {
  TRY(declared, app::loadCluster(options));
  const auto may = [&](lifecycle::Store& store) -> Result<void> {
    TRY(asked, chosen(store, flags));
    return lifecycle::mayRollBack(declared, store, asked);
  };
  {
    TRY(store, openStored(options));
    TRY_OK(may(*store));  // refused before anybody stands aside for it
  }
  TRY(live, liveCluster(options));
  TRY(session, Session::open(options, std::move(live), app::Role::Acts, options.json));
  TRY(book, chosen(session->controller->store(), flags));
  TRY_OK(may(session->controller->store()));
  if (!flags.wipe_reason.empty()) {
    auto next = book.rollout();
    next.wipe_reason = flags.wipe_reason;
    TRY_OK(book.save(std::move(next)));
  }
  TRY_OK(lookAt(*session, nodesOf(book)));
  return carryOn(*session, options, book, RolloutDirection::Back);
}

Result<int> status(const app::Options& options, const RolloutFlags& flags) {
  TRY(store, openStored(options));
  TRY(book, chosen(*store, flags));
  TRY(order, book.order());
  std::cout << (options.json ? rolloutJson(book, order) : rolloutText(book, order));
  TRY(ids, RolloutRecord::list(*store));
  std::erase(ids, book.rollout().id);
  if (!options.json && !ids.empty())
    std::cout << fmt::format(
        "other rollouts that lie over the inventory, oldest first: {} (--id ID shows one)\n",
        fmt::join(ids, ", "));
  return codeOf(book.rollout().state);
}

/// With a store of its own, whoever has the turn with the state folder is the only one who could be
/// running it; keep has the lock all the time and runs no rollout.
Result<int> order(const app::Options& options, lifecycle::Order what) {
  TRY(store, openStored(options));
  TRY(book, RolloutRecord::current(*store));
  std::optional<io::FileLock> lock;
  if (options.store.empty())
    if (auto taken = app::askForTurn(options.state)) lock.emplace(std::move(*taken));
  TRY(done, lifecycle::orderRollout(book, what, app::actorText(), lock.has_value()));
  const lifecycle::Event event{0,
                               SystemClock().now(),
                               lifecycle::EventKind::Note,
                               {},
                               "",
                               fmt::format("{} ({})", done, app::actorText())};
  TRY(noted, store->addEvent(event));
  (void)noted;
  std::cout << (options.json
                    ? jsonText(nlohmann::json{{"rollout", book.rollout().id}, {"done", done}})
                    : done)
            << '\n';
  return int{kOk};
}

int answer(const Result<int>& code) { return code ? *code : report(code.error()); }

}  // namespace

int rolloutStart(const app::Options& options, const RolloutFlags& flags) {
  return answer(start(options, flags));
}
int rolloutStatus(const app::Options& options, const RolloutFlags& flags) {
  return answer(status(options, flags));
}
int rolloutPause(const app::Options& options) {
  return answer(order(options, lifecycle::Order::Pause));
}
int rolloutAbort(const app::Options& options) {
  return answer(order(options, lifecycle::Order::Abort));
}
int rolloutResume(const app::Options& options, const RolloutFlags& flags) {
  return answer(resume(options, flags));
}
int rolloutRollback(const app::Options& options, const RolloutFlags& flags) {
  return answer(rollback(options, flags));
}

}  // namespace muster::cli
