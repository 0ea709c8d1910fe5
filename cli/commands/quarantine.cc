// SPDX-License-Identifier: Apache-2.0
// quarantine: who is held out of the pools, and letting go by a person's word.
#include "lifecycle/model/quarantine.h"
#include "app/controller.h"
#include "app/state_folder.h"
#include "base/json_output.h"
#include "cli/commands/commands.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/model/certificate_keys.h"
#include "validate/certificate_migration.h"
#include "validate/validate.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {

int quarantineList(const app::Options& options) {
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto entries = lifecycle::Quarantine(**store).entries();
  if (!entries) return report(entries.error());
  nlohmann::json out = nlohmann::json::array();
  for (const auto& [node, entry] : *entries) {
    if (!options.json)
      std::cout << fmt::format("{:<12} {}  by {}: {}\n", node.str(), muster::toString(entry.since),
                               entry.by, entry.reason);
    out.push_back({{"node", node.str()},
                   {"since", muster::toString(entry.since)},
                   {"by", entry.by},
                   {"reason", entry.reason},
                   {"evidence", entry.evidence}});
  }
  if (options.json) std::cout << jsonText(out, 2) << "\n";
  if (!options.json && entries->empty()) std::cout << "no node is in quarantine\n";
  return kOk;
}

int quarantineHold(const app::Options& options, const std::string& nodes,
                   const std::string& reason) {
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  const auto names = inventory::expandHostlist(nodes);
  if (!names) return report(names.error());
  for (const auto& name : *names)
    if (!cluster->findNode(NodeName(name)))
      return report(Error(ErrorCode::NotFound,
                          fmt::format("node {} is not in the inventory; nothing was done", name)));
  if (const auto made = app::prepareStateFolder(options.state); !made) return report(made.error());
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  lifecycle::Quarantine quarantine(**store);
  for (const auto& name : *names) {
    const auto held =
        quarantine.add(NodeName(name), {SystemClock().now(), app::actorText(), reason, ""});
    if (!held) return report(held.error());
    std::cout << fmt::format("{}: {}\n", name,
                             *held ? "in quarantine; `muster keep` or `muster apply` drains it"
                                   : "was in quarantine already");
  }
  return kOk;
}

namespace {

/// What was proven before the repair says nothing about the node as it is now.
Result<void> revokeProof(const app::Options& options, lifecycle::Store& store, const NodeName& node,
                         const std::string& by, const std::string& reason) {
  TRY(keys, app::Keys::loadOrCreate(options.state));
  const auto folder = options.state / "certificates";
  TRY_OK(validate::takeOverCertificates(store, keys.certificates, folder));
  TRY(text, store.getValue(lifecycle::certificateKey(node)));
  const auto certificate =
      text ? validate::Certificate::fromJson(*text)
           : Result<validate::Certificate>(fail(ErrorCode::NotFound, "it has none"));
  return validate::Revocations(store, folder, keys.certificates)
      .add({certificate ? certificate->id() : "", node, SystemClock().now(), by,
            "out of quarantine: " + reason});
}

}  // namespace

int quarantineLift(const app::Options& options, const std::string& node,
                   const std::string& reason) {
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  if (const auto held = lifecycle::Quarantine(**store).find(NodeName(node));
      held && *held && !reason.empty())
    if (const auto revoked =
            revokeProof(options, **store, NodeName(node), app::actorText(), reason);
        !revoked)
      return report(revoked.error());
  const auto lifted = lifecycle::Quarantine(**store).remove(NodeName(node), app::actorText(),
                                                            reason, SystemClock().now());
  if (!lifted) return report(lifted.error());
  std::cout << fmt::format(
      "{} is out of quarantine; `muster apply --nodes {}` validates it anew and joins it\n", node,
      node);
  return kOk;
}

}  // namespace muster::cli
