// rma: everything that is known of a node, in one archive.
#include "monitor/rma.h"

#include "cli/commands/commands.h"
#include "app/controller.h"

#include <iostream>

namespace muster::cli {
namespace {

Result<std::size_t> bundle(const Options& options, const NodeName& node, const std::filesystem::path& out) {
  TRY_OK(keep::checkRmaFile(out));
  TRY(cluster, loadCluster(options));
  TRY(found, lab::find(options.labFolder(cluster)));
  if (found) TRY_OK(lab::enter(*found));
  TRY(controller, Controller::look(options, cluster, found));
  const auto now = controller->clock().now();
  TRY(files, controller->run(keep::gatherRma(cluster, controller->store(), controller->bmcs(), options.state, node, now)));
  (void)controller->run(controller->bmcs().close());  // BMCs have few sessions
  const auto count = files.size();
  TRY_OK(keep::writeRma(std::move(files), node, now, out));
  return count;
}

}  // namespace

int rma(const Options& options, const std::string& node, const std::filesystem::path& out) {
  const auto count = bundle(options, NodeName(node), out);
  if (!count) return report(count.error());
  std::cout << fmt::format("{}: {} files about {}, manifest.json names each with its SHA-256\n", out.string(), *count, node);
  return kOk;
}

}  // namespace muster::cli
