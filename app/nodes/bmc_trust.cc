// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/bmc_trust.h"

#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "bmc/bmc.h"
#include "gateway/attestor.h"
#include "gateway/enrollment.h"
#include "gateway/node_keys.h"
#include "inventory/model/cluster.h"

namespace muster::app {
namespace {

using Change = Result<void> (*)(lifecycle::Store&, const NodeName&);

/// `what`: for the log, "has the certificate of its BMC pinned anew".
Result<std::vector<NodeName>> changeEach(const Options& options, const std::string& nodes,
                                         Change change, std::string_view what) {
  TRY(cluster, loadCluster(options));
  auto selected = selectedNodes(cluster, nodes);
  if (!selected) return fail(Error(selected.error()).within("nothing was changed"));
  TRY(store, openStoreForWriting(options));
  for (const auto& node : *selected) {
    TRY_OK(change(*store, node));
    TRY_OK(
        addNote(*store, lifecycle::Subject(node), fmt::format("{} {}", actorText(options), what)));
  }
  return std::move(*selected);
}

/// Without its image as a fact it is planned to be imaged, instead of being restarted until its
/// agent answers.
Result<void> revoke(lifecycle::Store& store, const NodeName& node) {
  TRY_OK(gateway::revokeKeys(store, node));
  if (const auto forgotten = store.forgetFacts(lifecycle::Subject(node), {FacetName("image")});
      !forgotten)
    return fail(Error(forgotten.error())
                    .within(fmt::format("no agent of {} is accepted any more, but it could not be "
                                        "recorded that it must be imaged again; repeat the command "
                                        "when nobody works on the node",
                                        node.str())));
  return {};
}

}  // namespace

Result<std::vector<NodeName>> resetBmcTrust(const Options& options, const std::string& nodes) {
  return changeEach(
      options, nodes, bmc::forgetPin,
      "lets the certificate and the SSH host key that its BMC presents next be pinned");
}

Result<std::vector<NodeName>> resetBmcAuth(const Options& options, const std::string& nodes) {
  return changeEach(options, nodes, bmc::forgetRefusal,
                    "lets its BMC's refused password be tried once more");
}

Result<std::vector<NodeName>> forgetTpm(const Options& options, const std::string& nodes) {
  return changeEach(options, nodes, gateway::forgetTpm,
                    "lets the TPM that proves itself next be its own");
}

Result<std::vector<NodeName>> forgetAgentKey(const Options& options, const std::string& nodes) {
  return changeEach(options, nodes, gateway::forgetKeys,
                    "lets the key that its agent presents next be its own");
}

Result<std::vector<NodeName>> revokeAgentKeys(const Options& options, const std::string& nodes) {
  return changeEach(options, nodes, revoke, "has the keys of its agent revoked");
}

Result<void> approveAgentKey(const Options& options, const NodeName& node,
                             const std::string& fingerprint) {
  TRY(cluster, loadCluster(options));
  if (!cluster.findNode(node))
    return fail(ErrorCode::NotFound,
                "node " + node.str() + " is not in the inventory; nothing was changed");
  TRY(store, openStoreForWriting(options));
  return gateway::approveKey(*store, node, fingerprint);
}

}  // namespace muster::app
