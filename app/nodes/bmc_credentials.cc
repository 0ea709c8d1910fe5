// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/bmc_credentials.h"

#include "app/runs/bmc_changer.h"
#include "app/site/session.h"
#include "base/log.h"
#include "bmc/bulk_operation.h"
#include "inventory/model/access.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/profile.h"

#include <algorithm>

namespace muster::app {
namespace {

struct Change {
  LockedSession locked;
  std::vector<NodeName> nodes;
  const inventory::Cluster& cluster() const { return locked.session->cluster(); }
  Controller& controller() { return *locked.session->controller; }
};

Result<Change> open(const Options& options, const std::string& nodes) {
  TRY(live, effectiveCluster(options));
  TRY(selected, selectedNodes(live->cluster(), nodes));
  TRY(locked, LockedSession::open(options, std::move(live)));
  return Change{std::move(locked), std::move(selected)};
}

Result<void> refuseBusyNodes(Change& change) {
  TRY(open, change.controller().store().openIntents());
  for (const auto& node : change.nodes) TRY_OK(requireNoAction(open, node));
  return {};
}

Result<BmcChangeReport> changeAll(Change& change, const std::string& what,
                                  std::function<Async<void>(NodeName)> work,
                                  const BmcChanged& changed) {
  auto& controller = change.controller();
  auto ended = [&controller, &what, &changed](const NodeName& node, const Result<void>& result) {
    if (changed) changed(node, result);
    const auto noted = addNote(
        controller.store(), lifecycle::Subject(node),
        fmt::format("{}: {}: {}", actorText(), what, result ? "done" : result.error().str()));
    if (!noted) logWarning("bmc", "{}", noted.error().str());
  };
  auto report = controller.run(bmc::runBulkOperation(change.nodes, std::move(work), ended));
  (void)controller.run(controller.bmcs().close());
  if (!report) return fail(report.error());
  BmcChangeReport out{change.nodes.size(),
                      std::move(report->done),
                      std::move(report->not_started),
                      std::move(report->failed),
                      {}};
  for (const auto& node : change.nodes) {
    const auto memory = bmc::remembered(change.cluster(), controller.store(), node);
    if (memory && memory->inventory_is_behind) out.pins_to_declare.emplace(node, memory->pin);
  }
  return out;
}

bool hasNextPassword(const inventory::Cluster& cluster, const inventory::Node& node) {
  const auto credential = cluster.credentials.find(inventory::bmcCredentialOf(cluster, node));
  return credential != cluster.credentials.end() && credential->second.rotate_to.declared();
}

}  // namespace

Result<void> requireNoAction(const std::vector<lifecycle::Intent>& open, const NodeName& node) {
  for (const auto& intent : open)
    if (intent.action.facet.subject == lifecycle::Subject(node))
      return fail(
          ErrorCode::Conflict,
          fmt::format("{} is under way; let it end: muster apply --nodes {}. Nothing was done",
                      intent.action.id, node.str()));
  return {};
}

Result<void> requireNextPassword(const inventory::Cluster& cluster, const NodeName& node) {
  if (hasNextPassword(cluster, *cluster.findNode(node))) return {};
  return fail(noNextPassword(node));
}

Error noNextPassword(const NodeName& node) {
  return Error(ErrorCode::NotFound,
               fmt::format("no next password is declared for the BMC of {}; add rotate_to: "
                           "{{file: …}} to its credential. Nothing was done",
                           node.str()));
}

Result<std::vector<BmcIdentity>> bmcIdentities(const Options& options, const std::string& nodes) {
  TRY(live, effectiveCluster(options));
  const auto& cluster = live->cluster();
  TRY(selected, selectedNodes(cluster, nodes));
  TRY(store, openStoreForWriting(options));
  std::vector<BmcIdentity> out;
  for (const auto& node : cluster.nodes) {
    if (!selected.empty() &&
        std::find(selected.begin(), selected.end(), node.name) == selected.end())
      continue;
    TRY(identity, bmcIdentity(cluster, *store, node));
    out.push_back(std::move(identity));
  }
  return out;
}

Result<BmcIdentity> bmcIdentity(const inventory::Cluster& cluster, lifecycle::Store& store,
                                const inventory::Node& node) {
  TRY(memory, bmc::remembered(cluster, store, node.name));
  const auto& signer = cluster.profileOf(node).bmc_certificate;
  return BmcIdentity{node.name, node.bmc.url, std::move(memory), hasNextPassword(cluster, node),
                     signer ? signer->sign.front() : std::string()};
}

std::string_view wordOf(bmc::Rotation rotation) {
  return rotation == bmc::Rotation::Done          ? "done"
         : rotation == bmc::Rotation::Interrupted ? "interrupted"
                                                  : "none";
}

std::string_view wordOf(bmc::BmcTrustBy trust) {
  switch (trust) {
    case bmc::BmcTrustBy::Pin:
      return "bmc_pin";
    case bmc::BmcTrustBy::Ca:
      return "bmc_ca";
    case bmc::BmcTrustBy::FirstContact:
      return "first-contact";
    case bmc::BmcTrustBy::Nothing:
      return "nothing";
  }
  return "nothing";
}

nlohmann::json toJson(const BmcIdentity& identity) {
  const auto& memory = identity.memory;
  nlohmann::json out = {{"node", identity.node.str()},
                        {"bmc", identity.url},
                        {"pin", memory.pin},
                        {"trust", wordOf(memory.trust)},
                        {"inventory_is_behind", memory.inventory_is_behind},
                        {"password_refused", memory.password_refused},
                        {"signer", identity.signer}};
  if (identity.rotates) out["rotation"] = wordOf(memory.rotation);
  return out;
}

Result<BmcChangeReport> rotateBmcPasswords(const Options& options, const std::string& nodes,
                                           const BmcChanged& changed) {
  TRY(change, open(options, nodes));
  for (const auto& node : change.nodes) TRY_OK(requireNextPassword(change.cluster(), node));
  TRY_OK(refuseBusyNodes(change));
  const auto bmcs = makeBmcChanger(change.controller(), change.cluster());
  return changeAll(
      change, std::string(kBmcPasswordChange),
      [&bmcs](NodeName node) { return bmcs->rotatePassword(std::move(node)); }, changed);
}

Result<BmcChangeReport> issueBmcCertificates(const Options& options, const std::string& nodes,
                                             const BmcChanged& changed) {
  TRY(change, open(options, nodes));
  TRY_OK(refuseBusyNodes(change));
  const auto bmcs = makeBmcChanger(change.controller(), change.cluster());
  return changeAll(
      change, std::string(kBmcCertificateChange),
      [&bmcs](NodeName node) { return bmcs->issueCertificate(std::move(node)); }, changed);
}

}  // namespace muster::app
