// SPDX-License-Identifier: Apache-2.0
// bmc forget-…, bmc revoke-key: what an operator says after having looked himself.
#include "bmc/bmc.h"

#include "app/state_folder.h"
#include "base/io/files.h"
#include "cli/commands/commands.h"
#include "cli/session.h"
#include "gateway/attestor.h"
#include "gateway/enrolment.h"
#include "gateway/node_keys.h"
#include "lifecycle/store/store.h"

#include <iostream>

namespace muster::cli {
namespace {

using Forget = Result<void> (*)(lifecycle::Store&, const NodeName&);

int forget(const app::Options& options, const std::string& nodes, Forget what,
           std::string_view done) {
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  const auto selected = selectedNodes(*cluster, nodes);
  if (!selected) return report(Error(selected.error()).within("nothing was changed"));
  if (const auto made = app::prepareStateFolder(options.state); !made) return report(made.error());
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  for (const auto& node : *selected) {
    if (const auto forgotten = what(**store, node); !forgotten) return report(forgotten.error());
    std::cout << node.str() << ": " << done << '\n';
  }
  return kOk;
}

}  // namespace

int bmcTrustReset(const app::Options& options, const std::string& node) {
  return forget(options, node, bmc::forgetPin,
                "the certificate and the SSH host key that its BMC shows next are trusted");
}

int bmcAuthReset(const app::Options& options, const std::string& node) {
  return forget(options, node, bmc::forgetRefusal, "its BMC's password is tried once more");
}

int bmcForgetTpm(const app::Options& options, const std::string& node) {
  return forget(options, node, gateway::forgetTpm, "the TPM that proves itself next is the node's");
}

int bmcForgetKey(const app::Options& options, const std::string& node) {
  return forget(options, node, gateway::forgetKeys,
                "the key that its agent shows next is the node's");
}

int bmcApproveKey(const app::Options& options, const std::string& node,
                  const std::string& fingerprint) {
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  const NodeName name(node);
  if (!cluster->findNode(name))
    return report(Error(ErrorCode::NotFound,
                        "node " + node + " is not in the inventory; nothing was changed"));
  if (const auto made = app::prepareStateFolder(options.state); !made) return report(made.error());
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  if (const auto approved = gateway::approveKey(**store, name, fingerprint); !approved)
    return report(approved.error());
  std::cout << node << ": the key " << fingerprint << " may enrol while the node is armed\n";
  return kOk;
}

/// Without its image as a fact it is planned to be imaged, instead of being restarted until its
/// agent answers.
Result<void> revoke(lifecycle::Store& store, const NodeName& node) {
  TRY_OK(gateway::revokeKeys(store, node));
  if (const auto forgotten = store.forgetFacts(lifecycle::Subject(node), {FacetName("image")});
      !forgotten)
    return fail(Error(forgotten.error())
                    .within(fmt::format(
                        "no agent of {} is listened to any more, but that it must be imaged again "
                        "could not be noted; say it once more when nobody works on it",
                        node.str())));
  return {};
}

int bmcRevokeKey(const app::Options& options, const std::string& node) {
  return forget(options, node, revoke,
                fmt::format("no agent of it is listened to any more; to image it again: muster "
                            "wipe {} --reason …, muster apply --nodes {}",
                            node, node));
}

}  // namespace muster::cli
