// SPDX-License-Identifier: Apache-2.0
// SiteClient: what commands ask of a site and order there. Two implementations with one contract
// (tests/api/remote_site_contract_test.cc): this process, which opens the store and the inventory
// (app/site/embedded_site.h), and a server that is asked over HTTP (api/remote_site.h).
// docs/adr/0324
#pragma once

#include "app/nodes/pool_holds.h"
#include "app/nodes/quarantine.h"
#include "app/nodes/status.h"
#include "app/plans/plan.h"
#include "app/plans/rollout_outcome.h"
#include "app/records/records.h"
#include "app/runs/runs.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::app {

class SiteRecords;

/// What a person may say to a run; but for Acknowledge, to one that is not over.
enum class RunWord { Cancel, Pause, Resume, Acknowledge };

/// Errors of every call: those of the use case; of a server also Denied (its role may not: which
/// would), Unavailable (it does not answer, or is older than what is asked of it), Corrupt (it
/// answers something else).
class SiteClient {
 public:
  virtual ~SiteClient() = default;

  /// Whether this process opens the store and the inventory: then it may look into them, too.
  virtual bool isEmbedded() const = 0;
  virtual Result<SiteStatus> status(const NodeFilter& filter) = 0;
  /// As explainSubjects.
  virtual Result<std::vector<lifecycle::Explanation>> explain(const NodeFilter& filter,
                                                              std::size_t max) = 0;
  /// A server plans from what it has observed and the file of its inventory as it is now, and
  /// MadePlan::live is then empty.
  virtual Result<MadePlan> plan(const PlanRequest& request, ProgressListener& progress) = 0;
  virtual Result<std::vector<lifecycle::Event>> lastEvents(const std::string& subject,
                                                           std::size_t limit) = 0;

  virtual Result<std::vector<lifecycle::Finding>> findings(const std::string& nodes) = 0;
  virtual Result<std::vector<lifecycle::Finding>> clearFindings(
      const ClearFindingsRequest& request) = 0;

  virtual Result<std::map<NodeName, lifecycle::QuarantineEntry>> quarantine() = 0;
  virtual Result<std::vector<QuarantinedNode>> addToQuarantine(const std::string& nodes,
                                                               const std::string& reason) = 0;
  virtual Result<void> removeFromQuarantine(const NodeName& node, const std::string& reason) = 0;

  virtual Result<PoolHolds> poolHolds() = 0;
  virtual Result<std::vector<PoolHold>> overridePoolHolds(const std::string& nodes,
                                                          const std::string& reason) = 0;

  /// Borrowed: lives as long as this.
  virtual SiteRecords& records() = 0;
  /// Whether somebody carries runs out now: a server that only answers the API does not.
  virtual Result<bool> isWatched() = 0;
  /// The name by which runs know who asks.
  virtual Result<std::string> principal() = 0;
  /// As submitRun; what a server cannot be told (RunRequest's inventory, the command as typed) it
  /// does without.
  virtual Result<lifecycle::Run> submitRun(const RunRequest& request) = 0;
  virtual Result<std::vector<lifecycle::Run>> runs(const lifecycle::RunFilter& filter) = 0;
  virtual Result<lifecycle::Run> run(const std::string& id) = 0;
  virtual Result<RunEvents> followRun(const std::string& id, std::int64_t after,
                                      std::size_t limit) = 0;
  virtual Result<std::optional<lifecycle::Plan>> planOfRun(const std::string& id) = 0;
  virtual Result<lifecycle::Run> say(const std::string& id, RunWord word) = 0;
  /// The author's own yes, or somebody else's.
  virtual Result<lifecycle::Run> confirmRun(const std::string& id,
                                            const std::string& plan_hash) = 0;
  virtual Result<lifecycle::Run> approveRun(const std::string& id,
                                            const std::string& plan_hash) = 0;
  /// How far a rollout is; no id: the one that is open, else the newest. Errors: NotFound
  virtual Result<RolloutStatus> rollout(const std::string& id) = 0;
  /// Of a halted rollout's run: it goes on although a gate failed. Errors: Conflict (none has)
  virtual Result<lifecycle::Run> resumeAccepting(const std::string& id,
                                                 const std::string& reason) = 0;
  virtual Result<lifecycle::Run> overrideRun(const std::string& id, const std::string& plan_hash,
                                             const std::string& reason) = 0;
};

}  // namespace muster::app
