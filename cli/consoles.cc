#include "cli/consoles.h"

#include "bmc/console/shared.h"

namespace muster::cli {

bmc::ConsoleFinder consoleFinder(const Options& options, const inventory::Cluster& cluster, const std::optional<lab::LabHandle>& lab, lifecycle::Store& store, Clock& clock,
                                 Workers& workers) {
  const auto run = options.runFolder("console");
  if (!lab) return bmc::inventoryConsoles(cluster, store, clock, workers, run);
  return [lab = *lab, run](const NodeName& node) { return bmc::shareConsole(bmc::makeSocketConsole(lab::consoleSocket(lab, node.str())), run, node); };
}

}  // namespace muster::cli
