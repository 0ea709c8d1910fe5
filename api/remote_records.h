// SPDX-License-Identifier: Apache-2.0
// The records of a site that is asked over HTTP.
#pragma once

#include "app/site/site_records.h"

#include <nlohmann/json_fwd.hpp>

namespace muster::api {

class ServerConnection;

class RemoteRecords final : public app::SiteRecords {
 public:
  /// `server` is borrowed.
  explicit RemoteRecords(ServerConnection& server) : server_(server) {}

  Result<lifecycle::History> history(const std::string& what, std::size_t limit) override;
  Result<std::vector<app::NodeUpgrade>> firmwareUpgrades(const std::string& nodes) override;
  Result<app::ImageList> images() override;
  Result<app::FabricSummary> fabric(const std::string& name) override;
  Result<std::vector<app::FabricCable>> fabricCables(const app::FabricCableFilter& filter) override;
  Result<validate::Certificate> certificate(const std::string& node) override;
  Result<std::vector<app::CertificateVerdict>> verifyCertificates(const std::string& node) override;
  Result<app::Discovered> discovered() override;
  Result<std::vector<app::BmcIdentity>> bmcIdentities(const std::string& nodes) override;
  Result<std::string> erasureReport(const NodeName& node) override;
  Result<std::vector<bmc::KeptBoot>> recordedBoots(const NodeName& node) override;
  Result<app::RecordedBoot> recordedBoot(const NodeName& node, std::optional<int> number) override;
  Result<lifecycle::AuditHead> auditHead() override;
  Result<std::vector<NodeName>> wipeGrants() override;
  Result<std::vector<app::PoolBreaker>> breakers() override;
  Result<std::vector<app::ReceiverState>> receivers() override;
  Result<app::MeasuredFleet> measurements(const app::MeasurementsRequest& request,
                                          const std::vector<app::ReportFormat>& formats) override;
  Result<app::RevokedCertificate> revokeCertificate(const std::string& node,
                                                    const std::string& reason) override;
  Result<WallTime> overrideCertificate(const app::CertificateOverride& request) override;
  Result<std::vector<std::string>> approveMachines(const app::ApproveRequest& request) override;
  Result<void> forgetMachines(const std::vector<std::string>& machines, bool all) override;
  Result<std::vector<NodeName>> resetBmcTrust(const std::string& nodes) override;
  Result<std::vector<NodeName>> resetBmcAuth(const std::string& nodes) override;
  Result<app::WipeGrant> grantWipe(const app::WipeRequest& request) override;
  Result<std::vector<app::PoolBreaker>> acknowledgeBreakers(const std::string& reason) override;
  Result<app::PowerResult> power(const app::PowerRequest& request,
                                 const std::function<void(const std::string&)>& notice) override;
  Result<bool> locate(const NodeName& node, std::optional<bool> on) override;

 private:
  Result<std::vector<NodeName>> reset(const std::string& what, const std::string& nodes);
  /// What the resource says once the BMC that an order has asked has answered. Errors: Timeout
  Result<nlohmann::json> onceBmcAnswered(const std::string& resource, nlohmann::json answer);

  ServerConnection& server_;
};

}  // namespace muster::api
