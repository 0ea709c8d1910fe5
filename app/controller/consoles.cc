// SPDX-License-Identifier: Apache-2.0
#include "app/controller/consoles.h"

#include "bmc/console/shared.h"

namespace muster::app {

bmc::ConsoleFactory consoleFinder(const Options& options, const std::optional<lab::LabHandle>& lab,
                                  const bmc::ConsoleServices& services) {
  const auto run = options.runFolder("console");
  if (!lab) return bmc::makeConsoleFactory(services, run);
  return [lab = *lab, run](const NodeName& node) {
    return bmc::shareConsole(bmc::makeSocketConsole(lab::consoleSocket(lab, node.str())), run,
                             node);
  };
}

}  // namespace muster::app
