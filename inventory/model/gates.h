// SPDX-License-Identifier: Apache-2.0
// Gates: sets of checks that a node must pass.
#pragma once

#include "base/result.h"

#include <map>
#include <string>
#include <vector>

namespace muster::inventory {

enum class GateLevel { Quick, Medium, Long, Soak };
struct Gate {
  std::string name;
  GateLevel level = GateLevel::Quick;
  std::vector<std::string> groups;  ///< check groups: "host", "gpu", "rdma", "system", "disk"
  bool isolate = false;
  std::map<std::string, std::map<std::string, std::string>> checks =
      {};  ///< check → parameter → value, instead of the level's; the catalogue knows which there
           ///< are
  SourceRef where = {};
};

}  // namespace muster::inventory
