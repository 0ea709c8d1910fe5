// SPDX-License-Identifier: Apache-2.0
// RemoteSite: a site that is asked over HTTP, by its server's Unix socket or by HTTPS with a token.
#pragma once

#include "app/site/site_client.h"
#include "base/io/http.h"

#include <nlohmann/json_fwd.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace muster::api {

struct RemoteSiteOptions {
  std::filesystem::path socket;  ///< empty: `url`
  std::vector<uid_t> owners;     ///< whose server on the socket is believed; empty: anybody's
  std::string url;               ///< "https://ctl1:9443"
  std::string ca_pem;            ///< of the site: ca/ca.crt in its state folder
  std::string token;             ///< empty: known by the socket, or the certificate
  std::optional<io::TlsIdentity> identity = {};  ///< a client's certificate
  std::unique_ptr<io::HttpClient> client = {};   ///< empty: one of its own
};

/// Who answers: GET /server.
struct ServerFacts {
  std::string version;  ///< empty: of a muster that is older than the question
  std::string host, state, inventory;
};

class RemoteSite final : public app::SiteClient {
 public:
  /// Asks who answers. Errors: Unavailable (nobody listens there: io::DialFailure; no answer),
  /// Denied (the socket's mode, no identity, a certificate or program that is not trusted), Corrupt
  /// (no muster answers)
  static Result<std::unique_ptr<RemoteSite>> connect(RemoteSiteOptions options);
  const ServerFacts& server() const { return server_; }

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
  using Query = std::vector<std::pair<std::string, std::string>>;
  explicit RemoteSite(RemoteSiteOptions options);

  /// "the server at /run/muster/api.sock"
  std::string where() const;
  Result<nlohmann::json> ask(io::HttpRequest request, const std::string& resource);
  Result<nlohmann::json> get(const std::string& resource, const Query& query = {},
                             std::chrono::milliseconds timeout = std::chrono::seconds(60));
  /// An order; null where the answer has no body.
  Result<nlohmann::json> post(const std::string& resource, const nlohmann::json& body,
                              const std::string& idempotency_key = {});
  /// All pages of a list.
  Result<std::vector<nlohmann::json>> list(const std::string& resource, Query query);
  template <class Make>
  auto listOf(const std::string& resource, Query query, Make make);

  RemoteSiteOptions options_;
  ServerFacts server_;
  bool is_older_ = false;  ///< than GET /server
  boost::asio::io_context io_;
  std::unique_ptr<io::HttpClient> client_;
};

}  // namespace muster::api
