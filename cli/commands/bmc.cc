// SPDX-License-Identifier: Apache-2.0
// bmc trust reset, auth reset, forget-tpm, forget-key, approve-key, revoke-key.
#include "cli/commands/bmc.h"
#include "app/nodes/bmc_trust.h"
#include "app/site/site_records.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/print_done.h"

namespace muster::cli {
namespace {

int print(const app::Options& options, const Result<std::vector<NodeName>>& changed,
          const std::string& done) {
  if (!changed) return report(changed.error());
  std::string text;
  auto all = nlohmann::json::array();
  for (const auto& node : *changed) {
    text += fmt::format("{}: {}\n", node.str(), done);
    all.push_back({{"node", node.str()}, {"done", true}});
  }
  return printDone(options, all, text);
}

}  // namespace

int bmcTrustReset(const app::Options& options, const NodesArgs& args) {
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  return print(options, (*site)->records().resetBmcTrust(args.nodes),
               "the certificate and the SSH host key that its BMC presents next are pinned");
}

int bmcAuthReset(const app::Options& options, const NodesArgs& args) {
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  return print(options, (*site)->records().resetBmcAuth(args.nodes),
               "its BMC's password is tried once more");
}

int bmcForgetTpm(const app::Options& options, const NodesArgs& args) {
  return print(options, app::forgetTpm(options, args.nodes),
               "the TPM that proves itself next is the node's");
}

int bmcForgetKey(const app::Options& options, const NodesArgs& args) {
  return print(options, app::forgetAgentKey(options, args.nodes),
               "the key that its agent presents next is the node's");
}

int bmcRevokeKey(const app::Options& options, const NodesArgs& args) {
  return print(
      options, app::revokeAgentKeys(options, args.nodes),
      fmt::format("no agent of it is accepted any more; to image it again: muster wipe {0} "
                  "--reason …, muster apply --nodes {0}",
                  args.nodes));
}

int bmcApproveKey(const app::Options& options, const BmcApproveKeyArgs& args) {
  const auto approved = app::approveAgentKey(options, NodeName(args.node), args.fingerprint);
  if (!approved) return report(approved.error());
  return printDone(options, {{"node", args.node}, {"fingerprint", args.fingerprint}},
                   fmt::format("{}: the key {} may enroll while the node is armed\n", args.node,
                               args.fingerprint));
}

}  // namespace muster::cli
