// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/bmc_credentials.h"

#include "app/site/session.h"
#include "base/log.h"
#include "bmc/bulk_operation.h"
#include "bmc/ipmi/ipmi_bmc.h"
#include "bmc/ipmi/pdu.h"
#include "inventory/model/access.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/profile.h"

#include <algorithm>

namespace muster::app {
namespace {

constexpr std::chrono::hours kBmcCertificateLifetime{24 * 365 * 2};

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

/// Nobody's firmware update loses its login half-way.
Result<void> refuseBusyNodes(Change& change) {
  TRY(intents, change.controller().store().openIntents());
  for (const auto& intent : intents)
    for (const auto& node : change.nodes)
      if (intent.action.facet.subject == lifecycle::Subject(node))
        return fail(
            ErrorCode::Conflict,
            fmt::format("{} is under way; let it end: muster apply --nodes {}. Nothing was done",
                        intent.action.id, node.str()));
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

Result<std::vector<BmcRotation>> rotationsOf(const inventory::Cluster& cluster,
                                             lifecycle::Store& store,
                                             const std::vector<NodeName>& nodes) {
  std::vector<BmcRotation> out;
  for (const auto& node : nodes) {
    if (!hasNextPassword(cluster, *cluster.findNode(node)))
      return fail(ErrorCode::NotFound,
                  fmt::format("no next password is declared for the BMC of {}; add rotate_to: "
                              "{{file: …}} to its credential. Nothing was done",
                              node.str()));
    TRY(memory, bmc::remembered(cluster, store, node));
    out.push_back({node, memory.rotation});
  }
  return out;
}

}  // namespace

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
  return BmcIdentity{node.name, node.bmc.url, std::move(memory), hasNextPassword(cluster, node)};
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
                        {"password_refused", memory.password_refused}};
  if (identity.rotates) out["rotation"] = wordOf(memory.rotation);
  return out;
}

Result<std::vector<BmcRotation>> bmcRotations(const Options& options, const std::string& nodes) {
  // It is only looked: no lock, which a run would have to make room for.
  TRY(live, effectiveCluster(options));
  TRY(selected, selectedNodes(live->cluster(), nodes));
  TRY(store, openStoreForWriting(options));
  return rotationsOf(live->cluster(), *store, selected);
}

Result<BmcChangeReport> rotateBmcPasswords(const Options& options, const std::string& nodes,
                                           const BmcChanged& changed) {
  TRY(change, open(options, nodes));
  TRY_OK(rotationsOf(change.cluster(), change.controller().store(), change.nodes));
  TRY_OK(refuseBusyNodes(change));
  auto& bmcs = change.controller().bmcs();
  return changeAll(
      change, "change of the BMC's password",
      [&bmcs](NodeName node) { return bmcs.at(node).rotatePassword(); }, changed);
}

Result<std::vector<BmcCertificateSigner>> bmcCertificateSigners(const Options& options,
                                                                const std::string& nodes) {
  TRY(live, effectiveCluster(options));
  const auto& cluster = live->cluster();
  TRY(selected, selectedNodes(cluster, nodes));
  std::vector<BmcCertificateSigner> out;
  for (const auto& name : selected) {
    const auto& node = *cluster.findNode(name);
    const auto& signer = cluster.profileOf(node).bmc_certificate;
    out.push_back({name, node.bmc.url, signer ? signer->sign.front() : std::string()});
  }
  return out;
}

Result<BmcChangeReport> issueBmcCertificates(const Options& options, const std::string& nodes,
                                             const BmcChanged& changed) {
  TRY(change, open(options, nodes));
  TRY_OK(refuseBusyNodes(change));
  const auto& cluster = change.cluster();
  auto& controller = change.controller();
  auto work = [&cluster, &controller](NodeName name) {
    const auto& node = *cluster.findNode(name);
    const auto host = bmc::hostOf(node.bmc.url);
    const auto& signer = cluster.profileOf(node).bmc_certificate;
    const bmc::CertificateSubject subject{host, {host, name.str() + "-bmc"}};
    auto ours = [&controller, subject](std::string request) -> Async<std::string> {
      co_return controller.ca().signBmc(request, subject.common_name, subject.names,
                                        kBmcCertificateLifetime);
    };
    return bmc::certify(
        controller.bmcs().at(name), subject,
        signer ? bmc::signBy(bmc::argumentsFor(node, signer->sign), controller.processes())
               : bmc::CertificateSigner(ours));
  };
  return changeAll(change, "certificate of the BMC", work, changed);
}

}  // namespace muster::app
