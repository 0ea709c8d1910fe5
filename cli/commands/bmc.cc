// bmc forget-pin, bmc forget-refusal: what an operator says after having looked at a BMC himself.
#include "bmc/bmc.h"

#include "agent/protocol/attestor.h"
#include "base/io/files.h"
#include "cli/commands/commands.h"
#include "lifecycle/store.h"

#include <iostream>

namespace muster::cli {
namespace {

using Forget = Result<void> (*)(lifecycle::Store&, const NodeName&);

int forget(const Options& options, const std::string& node, Forget what, std::string_view done) {
  const auto cluster = loadCluster(options);
  if (!cluster) return report(cluster.error());
  if (!cluster->findNode(NodeName(node))) return report(Error(ErrorCode::NotFound, fmt::format("node {} is not in the inventory; nothing was changed", node)));
  if (const auto made = io::makeDirs(options.state); !made) return report(made.error());
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  if (const auto forgotten = what(**store, NodeName(node)); !forgotten) return report(forgotten.error());
  std::cout << node << ": " << done << '\n';
  return kOk;
}

}  // namespace

int bmcForgetPin(const Options& options, const std::string& node) {
  return forget(options, node, bmc::forgetPin, "the certificate that its BMC shows next is trusted");
}

int bmcForgetRefusal(const Options& options, const std::string& node) {
  return forget(options, node, bmc::forgetRefusal, "its BMC's password is tried once more");
}

int bmcForgetTpm(const Options& options, const std::string& node) {
  return forget(options, node, agent::forgetTpm, "the TPM that proves itself next is the node's");
}

}  // namespace muster::cli
