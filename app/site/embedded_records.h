// SPDX-License-Identifier: Apache-2.0
// The records of a site as this process sees them. Nothing is opened before it is asked.
#pragma once

#include "app/site/options.h"
#include "app/site/site_records.h"

namespace muster::app {

class EmbeddedRecords final : public SiteRecords {
 public:
  explicit EmbeddedRecords(Options options) : options_(std::move(options)) {}

  Result<lifecycle::History> history(const std::string& what, std::size_t limit) override;
  Result<std::vector<NodeUpgrade>> firmwareUpgrades(const std::string& nodes) override;
  Result<ImageList> images() override;
  Result<FabricSummary> fabric(const std::string& name) override;
  Result<std::vector<FabricCable>> fabricCables(const FabricCableFilter& filter) override;
  Result<validate::Certificate> certificate(const std::string& node) override;
  Result<std::vector<CertificateVerdict>> verifyCertificates(const std::string& node) override;
  Result<Discovered> discovered() override;
  Result<std::vector<BmcIdentity>> bmcIdentities(const std::string& nodes) override;
  Result<std::string> erasureReport(const NodeName& node) override;
  Result<std::vector<bmc::KeptBoot>> recordedBoots(const NodeName& node) override;
  Result<RecordedBoot> recordedBoot(const NodeName& node, std::optional<int> number) override;
  Result<lifecycle::AuditHead> auditHead() override;
  Result<std::vector<NodeName>> wipeGrants() override;
  Result<std::vector<PoolBreaker>> breakers() override;
  Result<std::vector<ReceiverState>> receivers() override;
  Result<MeasuredFleet> measurements(const MeasurementsRequest& request,
                                     const std::vector<ReportFormat>& formats) override;
  Result<RevokedCertificate> revokeCertificate(const std::string& node,
                                               const std::string& reason) override;
  Result<WallTime> overrideCertificate(const CertificateOverride& request) override;
  Result<std::vector<std::string>> approveMachines(const ApproveRequest& request) override;
  Result<void> forgetMachines(const std::vector<std::string>& machines, bool all) override;
  Result<std::vector<NodeName>> resetBmcTrust(const std::string& nodes) override;
  Result<std::vector<NodeName>> resetBmcAuth(const std::string& nodes) override;
  Result<WipeGrant> grantWipe(const WipeRequest& request) override;
  Result<std::vector<PoolBreaker>> acknowledgeBreakers(const std::string& reason) override;
  Result<PowerResult> power(const PowerRequest& request,
                            const std::function<void(const std::string&)>& notice) override;
  Result<bool> locate(const NodeName& node, std::optional<bool> on) override;

 private:
  const Options options_;
};

}  // namespace muster::app
