#include "cli/consoles.h"

#include "base/io/crypto.h"
#include "bmc/console/shared.h"

namespace muster::cli {

bmc::ConsoleFinder consoleFinder(const std::filesystem::path& state, const inventory::Cluster& cluster, const std::optional<lab::LabHandle>& lab, lifecycle::Store& store,
                                 Clock& clock, Workers& workers) {
  // Not in the state folder: the name of a Unix socket has 107 bytes at most.
  const auto run = std::filesystem::path("/run/muster") / ("console-" + io::sha256Hex(std::filesystem::absolute(state).string()).substr(0, 12));
  if (!lab) return bmc::inventoryConsoles(cluster, store, clock, workers, run);
  return [lab = *lab, run](const NodeName& node) { return bmc::shareConsole(bmc::makeSocketConsole(lab::consoleSocket(lab, node.str())), run, node); };
}

}  // namespace muster::cli
