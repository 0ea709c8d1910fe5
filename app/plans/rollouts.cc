// SPDX-License-Identifier: Apache-2.0
#include "app/plans/rollouts.h"

#include "app/plans/rollout_change.h"
#include "app/plans/rollout_guard.h"
#include "app/runs/runs.h"
#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "app/site/leadership.h"
#include "app/site/session.h"
#include "app/site/state_folder.h"
#include "app/site/state_lock.h"
#include "fabric/topology/leaves.h"
#include "inventory/model/cluster.h"
#include "lifecycle/rollout/freeze.h"
#include "lifecycle/rollout/overlay.h"
#include "lifecycle/rollout/runner.h"
#include "monitor/monitor_status.h"

#include <fmt/ranges.h>

namespace muster::app {
namespace {

using lifecycle::RolloutDirection;
using lifecycle::RolloutRecord;
using lifecycle::RolloutState;

/// Reads every node once, after their agents have had time to call the new process.
Result<lifecycle::FactSet> observe(Session& session, const std::vector<NodeName>& nodes) {
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

Result<RolloutRecord> chosen(lifecycle::Store& store, const std::string& id) {
  if (id.empty()) return RolloutRecord::current(store);
  auto book = RolloutRecord::open(store, id);
  if (book || book.error().code() != ErrorCode::NotFound) return book;
  TRY(ids, RolloutRecord::list(store));
  return fail(ErrorCode::NotFound,
              fmt::format("there is no rollout {}; those that lie over the inventory: {}", id,
                          ids.empty() ? "none" : fmt::format("{}", fmt::join(ids, ", "))));
}

/// The store without a controller. Errors: NotFound when nothing was done yet
Result<std::unique_ptr<lifecycle::Store>> openExistingStore(const Options& options) {
  if (!storeExists(options))
    return fail(ErrorCode::NotFound,
                fmt::format("nothing has been done yet in {}: there is no rollout",
                            options.state.string()));
  return lifecycle::openStore(options.storeUrl());
}

}  // namespace

RolloutRun::RolloutRun(const Options& options, std::unique_ptr<Session> session,
                       lifecycle::RolloutRecord book, lifecycle::RolloutDirection way)
    : options_(options), session_(std::move(session)), book_(std::move(book)), way_(way) {}
RolloutRun::RolloutRun(RolloutRun&&) noexcept = default;
RolloutRun::~RolloutRun() = default;

Result<RolloutRun> RolloutRun::draft(const Options& options, const lifecycle::RolloutParams& asked,
                                     const std::string& hostlist, bool dry_run,
                                     ProgressListener& progress) {
  const auto id = lifecycle::newRolloutId();
  TRY(live, effectiveCluster(options));
  TRY(nodes, selectedNodes(live->cluster(), hostlist));
  TRY(change, changeOf(asked, *live, hostlist));
  for (const auto& note : change.notes) progress.onNotice(note);
  const auto policy = policyOf(change.change.policy, asked);
  live->add(id, std::move(change.change));
  TRY(session,
      Session::open(options, std::move(live), dry_run ? Role::ReadOnly : Role::Active, progress));
  auto& controller = *session->controller;
  if (!dry_run) TRY_OK(lifecycle::dropMerged(*session->live, controller.store()));
  TRY(facts, observe(*session, nodes));
  TRY(drafted, lifecycle::draftWithPlan(
                   *session->live, controller.phases(), controller.store(), facts,
                   {id, controller.clock().now(), userName(), hostName(), options.command_line,
                    change.file, change.text, policy, asked.wipe_reason, nodes}));
  if (!dry_run) TRY_OK(requireNobodyAsked(*session, facts, drafted.plan));
  return RolloutRun(options, std::move(session), std::move(drafted.record),
                    RolloutDirection::Forward);
}

Result<RolloutRun> RolloutRun::resume(const Options& options, const std::string& accept_reason,
                                      ProgressListener& progress) {
  TRY(live, effectiveCluster(options));
  TRY(session, Session::open(options, std::move(live), Role::Active, progress));
  TRY(book, RolloutRecord::current(session->store()));
  const auto accepted =
      accept_reason.empty() ? "" : fmt::format("{}: {}", actorText(), accept_reason);
  TRY_OK(requireNobodyAskedForRest(*session, book));
  TRY(way, lifecycle::prepareResume(book, accepted));
  TRY_OK(observe(*session, nodesOf(book)));
  return RolloutRun(options, std::move(session), std::move(book), way);
}

Result<RolloutRun> RolloutRun::rollBack(const Options& options, const std::string& id,
                                        const std::string& wipe_reason,
                                        ProgressListener& progress) {
  TRY(declared, loadCluster(options));
  const auto may = [&](lifecycle::Store& store) -> Result<void> {
    TRY(asked, chosen(store, id));
    return lifecycle::mayRollBack(declared, store, asked);
  };
  {
    TRY(store, openExistingStore(options));
    TRY_OK(may(*store));  // refused before the monitor releases the state folder for it
  }
  TRY(live, effectiveCluster(options));
  TRY(session, Session::open(options, std::move(live), Role::Active, progress));
  TRY(book, chosen(session->store(), id));
  TRY_OK(may(session->store()));
  auto& controller = *session->controller;
  TRY(facts, observe(*session, nodesOf(book)));
  TRY(plan, lifecycle::planRollback(*session->live, controller.phases(), controller.store(), facts,
                                    book, !wipe_reason.empty()));
  TRY_OK(requireNobodyAsked(*session, facts, plan));
  if (!wipe_reason.empty()) {
    auto next = book.rollout();
    next.wipe_reason = wipe_reason;
    TRY_OK(book.save(std::move(next)));
  }
  return RolloutRun(options, std::move(session), std::move(book), RolloutDirection::Back);
}

Result<std::string> RolloutRun::whoWatches() const {
  auto& controller = *session_->controller;
  TRY(kept, monitor::monitorStatus(controller.store(), controller.clock().now()));
  TRY(holder, holderOf(options_.state, hostName()));
  return monitor::watchDuringRollout(
      {hasSeveralControllers(session_->cluster()), options_.store.empty(), holder}, kept);
}

Result<void> RolloutRun::carryOn() {
  auto& controller = *session_->controller;
  const lifecycle::EventSink show =
      [&progress = session_->progress](const lifecycle::Event& event) { progress.onEvent(event); };
  lifecycle::RolloutRunner runner({*session_->live, controller.engine(), controller.phases(),
                                   controller.store(), controller.clock(), show, fabric::leavesOf},
                                  book_);
  TRY_OK(controller.run(runner.run(way_)));
  return {};
}

Result<StoredRollout> storedRollout(const Options& options, const std::string& id) {
  TRY(store, openExistingStore(options));
  TRY(book, chosen(*store, id));
  TRY(order, book.order());
  TRY(ids, RolloutRecord::list(*store));
  std::erase(ids, book.rollout().id);
  return StoredRollout{std::move(store), std::move(book), std::move(order), std::move(ids)};
}

/// With a store of its own, whoever can request the state folder's lock is the only one who could
/// be running it: the monitor holds the lock all the time and runs no rollout.
Result<OrderedRollout> orderRollout(const Options& options, lifecycle::Order order) {
  TRY(store, openExistingStore(options));
  TRY(book, RolloutRecord::current(*store));
  TRY(run, runOfRollout(options, book.rollout().id));
  if (run && order != lifecycle::Order::None) {
    TRY(runs, openRunStore(options));
    const bool pauses = order == lifecycle::Order::Pause;
    TRY_OK((pauses ? pauseRun : cancelRun)(*runs, run->id, localActor(), SystemClock().now()));
    return OrderedRollout{book.rollout().id,
                          fmt::format("run {}, which carries rollout {} out, was ordered to {}: "
                                      "nodes under way are finished, no others start",
                                      run->id, book.rollout().id, pauses ? "pause" : "end")};
  }
  std::optional<io::FileLock> request;
  if (options.store.empty())
    if (auto taken = requestLock(options.state)) request.emplace(std::move(*taken));
  TRY(done, lifecycle::orderRollout(book, order, actorText(), request.has_value()));
  TRY_OK(addNote(*store, {}, fmt::format("{} ({})", done, actorText())));
  return OrderedRollout{book.rollout().id, std::move(done)};
}

}  // namespace muster::app
