// SPDX-License-Identifier: Apache-2.0
// RemoteSite: a site that is asked over HTTP, by its server's Unix socket or by HTTPS with a token.
#pragma once

#include "api/server_connection.h"
#include "app/site/site_client.h"

#include <memory>
#include <string>
#include <vector>

namespace muster::api {

class RemoteRecords;

class RemoteSite final : public app::SiteClient {
 public:
  /// Errors: as ServerConnection::open
  static Result<std::unique_ptr<RemoteSite>> connect(RemoteSiteOptions options);
  ~RemoteSite() override;
  const ServerFacts& server() const { return server_->facts(); }
  ServerConnection& connection() { return *server_; }

  bool isEmbedded() const override { return false; }
  Result<app::SiteStatus> status(const app::NodeFilter& filter) override;
  Result<std::vector<lifecycle::Explanation>> explain(const app::NodeFilter& filter,
                                                      std::size_t max) override;
  Result<app::MadePlan> plan(const app::PlanRequest& request,
                             app::ProgressListener& progress) override;
  Result<std::vector<lifecycle::Event>> lastEvents(const std::string& subject,
                                                   std::size_t limit) override;
  Result<std::vector<lifecycle::Finding>> findings(const std::string& nodes) override;
  Result<std::vector<lifecycle::Finding>> clearFindings(
      const app::ClearFindingsRequest& request) override;
  Result<std::map<NodeName, lifecycle::QuarantineEntry>> quarantine() override;
  Result<std::vector<app::QuarantinedNode>> addToQuarantine(const std::string& nodes,
                                                            const std::string& reason) override;
  Result<void> removeFromQuarantine(const NodeName& node, const std::string& reason) override;
  Result<app::PoolHolds> poolHolds() override;
  Result<std::vector<app::PoolHold>> overridePoolHolds(const std::string& nodes,
                                                       const std::string& reason) override;
  app::SiteRecords& records() override;
  Result<bool> isWatched() override;
  Result<std::string> principal() override;
  Result<lifecycle::Run> submitRun(const app::RunRequest& request) override;
  Result<std::vector<lifecycle::Run>> runs(const lifecycle::RunFilter& filter) override;
  Result<lifecycle::Run> run(const std::string& id) override;
  Result<app::RunEvents> followRun(const std::string& id, std::int64_t after,
                                   std::size_t limit) override;
  Result<std::optional<lifecycle::Plan>> planOfRun(const std::string& id) override;
  Result<lifecycle::Run> say(const std::string& id, app::RunWord word) override;
  Result<lifecycle::Run> confirmRun(const std::string& id, const std::string& plan_hash) override;
  Result<lifecycle::Run> approveRun(const std::string& id, const std::string& plan_hash) override;
  Result<app::RolloutStatus> rollout(const std::string& id) override;
  Result<lifecycle::Run> resumeAccepting(const std::string& id, const std::string& reason) override;
  Result<lifecycle::Run> overrideRun(const std::string& id, const std::string& plan_hash,
                                     const std::string& reason) override;

 private:
  explicit RemoteSite(std::unique_ptr<ServerConnection> server);
  template <class Make>
  auto listOf(const std::string& resource, ServerConnection::Query query, Make make);

  std::unique_ptr<ServerConnection> server_;
  std::unique_ptr<RemoteRecords> records_;
};

}  // namespace muster::api
