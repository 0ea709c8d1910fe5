// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/rma.h"

#include "cli/commands/monitor.h"
#include "cli/commands/print_done.h"

namespace muster::cli {

int rma(const app::Options& options, const RmaArgs& args) {
  const auto count = app::writeRmaArchive(options, NodeName(args.node), args.out);
  if (!count) return report(count.error());
  return printDone(options, {{"file", args.out.string()}, {"node", args.node}, {"files", *count}},
                   fmt::format("{}: {} files about {}, manifest.json names each with its SHA-256\n",
                               args.out.string(), *count, args.node));
}

}  // namespace muster::cli
