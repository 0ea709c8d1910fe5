// SPDX-License-Identifier: Apache-2.0
// Options that many commands have: which nodes, and why.
#pragma once

#include "cli/exit_code.h"

#include <string>

namespace muster::cli {

struct NodeArgs {
  std::string node;
};
struct NodesArgs {
  std::string nodes;  ///< hostlist; empty: all, where that is allowed
};
struct NodesReasonArgs {
  std::string nodes, reason;
};
struct NodeReasonArgs {
  std::string node, reason;
};

}  // namespace muster::cli
