// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/rma.h"

#include "cli/commands/monitor.h"

#include <iostream>

namespace muster::cli {

int rma(const app::Options& options, const RmaArgs& args) {
  const auto count = app::writeRmaArchive(options, NodeName(args.node), args.out);
  if (!count) return report(count.error());
  std::cout << fmt::format("{}: {} files about {}, manifest.json names each with its SHA-256\n",
                           args.out.string(), *count, args.node);
  return kOk;
}

}  // namespace muster::cli
