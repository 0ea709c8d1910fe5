// SPDX-License-Identifier: Apache-2.0
#include "app/site/embedded_records.h"

#include "app/fabric/fabric_look.h"
#include "app/firmware/firmware_baselines.h"
#include "app/images.h"
#include "app/nodes/bmc_credentials.h"
#include "app/nodes/bmc_power.h"
#include "app/nodes/bmc_trust.h"
#include "app/nodes/console.h"
#include "app/nodes/discovery.h"
#include "app/nodes/erase.h"
#include "app/nodes/measurements.h"
#include "app/nodes/pool_holds.h"
#include "app/nodes/wipe.h"
#include "app/records/audit.h"
#include "app/records/notifications.h"
#include "app/records/records.h"
#include "app/site/effective_cluster.h"
#include "app/validation/certificates.h"
#include "inventory/model/cluster.h"
#include "monitor/breakers.h"
#include "monitor/eviction.h"

namespace muster::app {

Result<lifecycle::History> EmbeddedRecords::history(const std::string& what, std::size_t limit) {
  return app::history(options_, what, limit);
}

Result<std::vector<NodeUpgrade>> EmbeddedRecords::firmwareUpgrades(const std::string& nodes) {
  return app::firmwareUpgrades(options_, nodes);
}

Result<ImageList> EmbeddedRecords::images() { return listImages(options_); }

Result<FabricSummary> EmbeddedRecords::fabric(const std::string& name) {
  TRY(look, fabricLook(options_, name));
  return summaryOf(look);
}

Result<std::vector<FabricCable>> EmbeddedRecords::fabricCables(const FabricCableFilter& filter) {
  TRY(look, fabricLook(options_, filter.fabric));
  auto out = std::move(look.view.cables);
  std::erase_if(out, [&filter](const FabricCable& cable) { return !filter.has(cable); });
  return out;
}

Result<validate::Certificate> EmbeddedRecords::certificate(const std::string& node) {
  return certificateOf(options_, node);
}

Result<std::vector<CertificateVerdict>> EmbeddedRecords::verifyCertificates(
    const std::string& node) {
  return app::verifyCertificates(options_, node);
}

Result<Discovered> EmbeddedRecords::discovered() { return discoveredMachines(options_); }

Result<std::vector<BmcIdentity>> EmbeddedRecords::bmcIdentities(const std::string& nodes) {
  return app::bmcIdentities(options_, nodes);
}

Result<std::vector<NodeName>> EmbeddedRecords::resetBmcTrust(const std::string& nodes) {
  return app::resetBmcTrust(options_, nodes);
}

Result<std::vector<NodeName>> EmbeddedRecords::resetBmcAuth(const std::string& nodes) {
  return app::resetBmcAuth(options_, nodes);
}

Result<std::string> EmbeddedRecords::erasureReport(const NodeName& node) {
  return app::erasureReport(options_, node);
}

Result<std::vector<bmc::KeptBoot>> EmbeddedRecords::recordedBoots(const NodeName& node) {
  TRY(boots, app::recordedBoots(options_, node));
  if (!boots.empty()) return std::move(boots);
  const auto live = effectiveCluster(options_);  // a mistyped name has no boots, too
  if (live && !(*live)->cluster().findNode(node))
    return fail(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", node.str()));
  return std::move(boots);
}

Result<RecordedBoot> EmbeddedRecords::recordedBoot(const NodeName& node,
                                                   std::optional<int> number) {
  return app::recordedBoot(options_, node, number);
}

Result<MeasuredFleet> EmbeddedRecords::measurements(const MeasurementsRequest& request,
                                                    const std::vector<ReportFormat>& formats) {
  return measuredFleet(options_, request, formats);
}

Result<lifecycle::AuditHead> EmbeddedRecords::auditHead() { return signAuditHead(options_); }

Result<std::vector<NodeName>> EmbeddedRecords::wipeGrants() {
  TRY(store, openStoreForReading(options_));
  return store->wipeGrants();
}

Result<std::vector<PoolBreaker>> EmbeddedRecords::breakers() {
  TRY(store, openStoreForReading(options_));
  TRY(states, monitor::Breakers(*store).read());
  std::vector<PoolBreaker> out;
  for (const auto& [pool, state] : states)
    if (state.open) out.push_back({pool, {state.nodes.begin(), state.nodes.end()}});
  return out;
}

Result<std::vector<ReceiverState>> EmbeddedRecords::receivers() {
  return notificationReceivers(options_);
}

Result<RevokedCertificate> EmbeddedRecords::revokeCertificate(const std::string& node,
                                                              const std::string& reason) {
  TRY(had_certificate, app::revokeCertificate(options_, node, reason));
  return RevokedCertificate{revocationListOf(options_.state), had_certificate};
}

Result<WallTime> EmbeddedRecords::overrideCertificate(const CertificateOverride& request) {
  return app::overrideCertificate(options_, request);
}

Result<std::vector<std::string>> EmbeddedRecords::approveMachines(const ApproveRequest& request) {
  return app::approveMachines(options_, request);
}

Result<void> EmbeddedRecords::forgetMachines(const std::vector<std::string>& machines, bool all) {
  return all ? forgetAllMachines(options_) : app::forgetMachines(options_, machines);
}

Result<WipeGrant> EmbeddedRecords::grantWipe(const WipeRequest& request) {
  return app::grantWipe(options_, request);
}

Result<std::vector<PoolBreaker>> EmbeddedRecords::acknowledgeBreakers(const std::string& reason) {
  TRY(closed, app::acknowledgeBreakers(options_, reason));
  std::vector<PoolBreaker> out;
  for (const auto& [pool, state] : closed)
    out.push_back({pool, {state.nodes.begin(), state.nodes.end()}});
  return out;
}

Result<PowerResult> EmbeddedRecords::power(const PowerRequest& request,
                                           const std::function<void(const std::string&)>& notice) {
  return powerNode(options_, request, notice);
}

Result<bool> EmbeddedRecords::locate(const NodeName& node, std::optional<bool> on) {
  return locateNode(options_, node, on);
}

}  // namespace muster::app
