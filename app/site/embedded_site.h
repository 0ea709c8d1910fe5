// SPDX-License-Identifier: Apache-2.0
// A site as this process sees it: the store and the inventory are opened here.
#pragma once

#include "app/site/site_client.h"

#include <memory>

namespace muster::app {

class EmbeddedRecords;

/// Nothing is opened before it is asked.
class EmbeddedSite final : public SiteClient {
 public:
  explicit EmbeddedSite(Options options);
  ~EmbeddedSite() override;

  bool isEmbedded() const override { return true; }
  Result<SiteStatus> status(const NodeFilter& filter) override;
  Result<std::vector<lifecycle::Explanation>> explain(const NodeFilter& filter,
                                                      std::size_t max) override;
  Result<MadePlan> plan(const PlanRequest& request, ProgressListener& progress) override;
  Result<std::vector<lifecycle::Event>> lastEvents(const std::string& subject,
                                                   std::size_t limit) override;
  Result<std::vector<lifecycle::Finding>> findings(const std::string& nodes) override;
  Result<std::vector<lifecycle::Finding>> clearFindings(
      const ClearFindingsRequest& request) override;
  Result<std::map<NodeName, lifecycle::QuarantineEntry>> quarantine() override;
  Result<std::vector<QuarantinedNode>> addToQuarantine(const std::string& nodes,
                                                       const std::string& reason) override;
  Result<void> removeFromQuarantine(const NodeName& node, const std::string& reason) override;
  Result<PoolHolds> poolHolds() override;
  Result<std::vector<PoolHold>> overridePoolHolds(const std::string& nodes,
                                                  const std::string& reason) override;
  SiteRecords& records() override;
  Result<bool> isWatched() override;
  Result<std::string> principal() override;
  Result<lifecycle::Run> submitRun(const RunRequest& request) override;
  Result<std::vector<lifecycle::Run>> runs(const lifecycle::RunFilter& filter) override;
  Result<lifecycle::Run> run(const std::string& id) override;
  Result<RunEvents> followRun(const std::string& id, std::int64_t after,
                              std::size_t limit) override;
  Result<std::optional<lifecycle::Plan>> planOfRun(const std::string& id) override;
  Result<lifecycle::Run> say(const std::string& id, RunWord word) override;
  Result<lifecycle::Run> confirmRun(const std::string& id, const std::string& plan_hash) override;
  Result<lifecycle::Run> approveRun(const std::string& id, const std::string& plan_hash) override;
  Result<RolloutStatus> rollout(const std::string& id) override;
  Result<lifecycle::Run> resumeAccepting(const std::string& id, const std::string& reason) override;
  Result<lifecycle::Run> overrideRun(const std::string& id, const std::string& plan_hash,
                                     const std::string& reason) override;

 private:
  Result<lifecycle::RunStore*> runStore();
  Result<lifecycle::Store*> readStore();

  const Options options_;
  std::unique_ptr<EmbeddedRecords> records_;
  std::optional<StatusReader> status_;
  std::unique_ptr<lifecycle::RunStore> runs_;
  std::unique_ptr<lifecycle::Store> store_;  ///< of readStore
};

}  // namespace muster::app
