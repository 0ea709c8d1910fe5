// SPDX-License-Identifier: Apache-2.0
#include "app/site/embedded_site.h"

#include "app/nodes/bmc_credentials.h"
#include "app/plans/rollout_guard.h"
#include "app/plans/rollouts.h"
#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "app/site/embedded_records.h"
#include "app/site/state_lock.h"
#include "app/validation/gate_plan.h"
#include "monitor/monitor_status.h"

namespace muster::app {

using lifecycle::Run;

EmbeddedSite::EmbeddedSite(Options options)
    : options_(std::move(options)), records_(std::make_unique<EmbeddedRecords>(options_)) {}
EmbeddedSite::~EmbeddedSite() = default;

SiteRecords& EmbeddedSite::records() { return *records_; }

Result<bool> EmbeddedSite::isWatched() {
  if (isMonitorAlive(options_.state)) return true;
  TRY(store, readStore());  // of another host, where several share the store
  TRY(status, monitor::monitorStatus(*store, SystemClock().now()));
  return status.running;
}

Result<SiteStatus> EmbeddedSite::status(const NodeFilter& filter) {
  if (!status_) {
    TRY(opened, StatusReader::open(options_));
    status_.emplace(std::move(opened));
  }
  TRY(out, status_->read(filter));
  TRY(runs, runStore());
  TRY(loud, loudOverrides(*runs));
  out.overrides = std::move(loud);
  return std::move(out);
}

Result<std::vector<lifecycle::Explanation>> EmbeddedSite::explain(const NodeFilter& filter,
                                                                  std::size_t max) {
  return explainSubjects(options_, filter, max);
}

Result<MadePlan> EmbeddedSite::plan(const PlanRequest& request, ProgressListener& progress) {
  return makePlan(options_, request, progress);
}

Result<std::vector<lifecycle::Event>> EmbeddedSite::lastEvents(const std::string& subject,
                                                               std::size_t limit) {
  return app::lastEvents(options_, subject, limit);
}

Result<std::vector<lifecycle::Finding>> EmbeddedSite::findings(const std::string& nodes) {
  return openFindings(options_, nodes);
}

Result<std::vector<lifecycle::Finding>> EmbeddedSite::clearFindings(
    const ClearFindingsRequest& request) {
  return app::clearFindings(options_, request);
}

Result<std::map<NodeName, lifecycle::QuarantineEntry>> EmbeddedSite::quarantine() {
  return quarantinedNodes(options_);
}

Result<std::vector<QuarantinedNode>> EmbeddedSite::addToQuarantine(const std::string& nodes,
                                                                   const std::string& reason) {
  return app::addToQuarantine(options_, nodes, reason);
}

Result<void> EmbeddedSite::removeFromQuarantine(const NodeName& node, const std::string& reason) {
  return app::removeFromQuarantine(options_, node, reason);
}

Result<PoolHolds> EmbeddedSite::poolHolds() { return app::poolHolds(options_); }

Result<std::vector<PoolHold>> EmbeddedSite::overridePoolHolds(const std::string& nodes,
                                                              const std::string& reason) {
  return app::overridePoolHolds(options_, nodes, reason);
}

Result<std::string> EmbeddedSite::principal() { return localActor().principal; }

Result<lifecycle::RunStore*> EmbeddedSite::runStore() {
  if (!runs_) {
    TRY(opened, openRunStore(options_));
    runs_ = std::move(opened);
  }
  return runs_.get();
}

Result<Run> EmbeddedSite::submitRun(const RunRequest& request) {
  if (!request.apply.nodes.empty()) {
    TRY(live, effectiveCluster(options_));
    TRY(selected, selectedNodes(live->cluster(), request.apply.nodes));
    TRY_OK(requireGates(live->cluster(), selected, request.validate.gates));
    if (request.kind == lifecycle::RunKind::BmcPassword)
      for (const auto& node : selected) TRY_OK(requireNextPassword(live->cluster(), node));
  }
  if (request.kind == lifecycle::RunKind::Rollout && request.rollout.back) {
    TRY(store, openStoreForReading(options_));
    TRY(record, lifecycle::RolloutRecord::open(*store, request.rollout.id));
    TRY_OK(mayRollBack(options_, *store, record));
  }
  TRY(runs, runStore());
  return app::submitRun(*runs, request, localActor(), SystemClock().now());
}

Result<lifecycle::Store*> EmbeddedSite::readStore() {
  if (!store_) {
    TRY(opened, openStoreForReading(options_));
    store_ = std::move(opened);
  }
  return store_.get();
}

Result<std::vector<Run>> EmbeddedSite::runs(const lifecycle::RunFilter& filter) {
  TRY(runs, runStore());
  TRY(found, listRuns(*runs, filter));
  TRY(store, readStore());
  TRY_OK(markVoidWords(*store, found));
  return std::move(found);
}

Result<Run> EmbeddedSite::run(const std::string& id) {
  TRY(runs, runStore());
  TRY(found, readRun(*runs, id));
  TRY(store, readStore());
  return withVoidWords(*store, std::move(found));
}

Result<RunEvents> EmbeddedSite::followRun(const std::string& id, std::int64_t after,
                                          std::size_t limit) {
  TRY(runs, runStore());
  TRY(store, readStore());
  return app::followRun(*runs, *store, id, after, limit);
}

Result<std::optional<lifecycle::Plan>> EmbeddedSite::planOfRun(const std::string& id) {
  TRY(runs, runStore());
  TRY(kept, runs->plan(id));
  if (!kept) return std::optional<lifecycle::Plan>();
  TRY(plan, lifecycle::Plan::fromJson(kept->json));
  return std::optional(std::move(plan));
}

Result<Run> EmbeddedSite::say(const std::string& id, RunWord word) {
  TRY(runs, runStore());
  const auto use_case = word == RunWord::Cancel   ? cancelRun
                        : word == RunWord::Pause  ? pauseRun
                        : word == RunWord::Resume ? resumeRun
                                                  : acknowledgeRun;
  return use_case(*runs, id, localActor(), SystemClock().now());
}

Result<Run> EmbeddedSite::confirmRun(const std::string& id, const std::string& plan_hash) {
  TRY(runs, runStore());
  return app::confirmRun(*runs, id, plan_hash, localActor(), SystemClock().now());
}

Result<Run> EmbeddedSite::approveRun(const std::string& id, const std::string& plan_hash) {
  TRY(runs, runStore());
  return app::approveRun(*runs, id, plan_hash, localActor(), SystemClock().now());
}

Result<RolloutStatus> EmbeddedSite::rollout(const std::string& id) {
  TRY(stored, storedRollout(options_, id));
  auto out = statusOf(stored.book);
  out.order = std::move(stored.order);
  out.others = std::move(stored.others);
  return out;
}

Result<Run> EmbeddedSite::resumeAccepting(const std::string& id, const std::string& reason) {
  TRY(runs, runStore());
  TRY(found, readRun(*runs, id));
  TRY_OK(acceptGate(options_, found, reason, actorText()));
  return say(id, RunWord::Resume);
}

Result<Run> EmbeddedSite::overrideRun(const std::string& id, const std::string& plan_hash,
                                      const std::string& reason) {
  TRY(runs, runStore());
  return app::overrideRun(*runs, id, plan_hash, reason, localActor(), SystemClock().now());
}

}  // namespace muster::app
