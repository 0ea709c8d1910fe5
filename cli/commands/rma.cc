// SPDX-License-Identifier: Apache-2.0
// rma: everything that is known of a node, in one archive.
#include "monitor/rma.h"

#include "app/controller.h"
#include "cli/commands/commands.h"

#include <iostream>

namespace muster::cli {
namespace {

Result<std::size_t> bundle(const app::Options& options, const NodeName& node,
                           const std::filesystem::path& out) {
  TRY_OK(monitor::checkRmaFile(out));
  TRY(cluster, app::loadCluster(options));
  TRY(found, lab::find(options.labFolder(cluster)));
  if (found) TRY_OK(lab::enter(*found));
  TRY(controller, app::Controller::look(options, cluster, found));
  const auto now = controller->clock().now();
  TRY(files, controller->run(monitor::gatherRma(cluster, controller->store(), controller->bmcs(),
                                                options.state, node, now)));
  (void)controller->run(controller->bmcs().close());  // BMCs have few sessions
  const auto count = files.size();
  TRY_OK(monitor::writeRma(std::move(files), node, now, out));
  return count;
}

}  // namespace

int rma(const app::Options& options, const std::string& node, const std::filesystem::path& out) {
  const auto count = bundle(options, NodeName(node), out);
  if (!count) return report(count.error());
  std::cout << fmt::format("{}: {} files about {}, manifest.json names each with its SHA-256\n",
                           out.string(), *count, node);
  return kOk;
}

}  // namespace muster::cli
