// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/rma.h"

#include "app/controller/controller.h"
#include "monitor/rma.h"

namespace muster::app {

Result<std::size_t> writeRmaArchive(const Options& options, const NodeName& node,
                                    const std::filesystem::path& out) {
  TRY_OK(monitor::checkRmaFile(out));
  TRY(cluster, loadCluster(options));
  TRY(found, lab::find(options.labFolder(cluster)));
  if (found) TRY_OK(lab::enter(*found));
  TRY(controller, Controller::openStored(options, cluster, found));
  const auto now = controller->clock().now();
  TRY(files, controller->run(monitor::gatherRma(cluster, controller->store(), controller->bmcs(),
                                                options.state, node, now)));
  (void)controller->run(controller->bmcs().close());  // BMCs have few sessions
  const auto count = files.size();
  TRY_OK(monitor::writeRma(std::move(files), node, now, out));
  return count;
}

}  // namespace muster::app
