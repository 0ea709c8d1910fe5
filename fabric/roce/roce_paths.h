// SPDX-License-Identifier: Apache-2.0
// Whether packets of full size come through between nodes: every switch on the way may have an MTU
// of its own, and a smaller one shows in nothing but large messages that never end.
//
// The inventory does not know the addresses of RoCE interfaces; each node tells its own when it is
// asked how it marks. So ways are tried between nodes that have told, rail by rail: to the next
// node of the fabric, and to the one half of it away, which other switches serve.
#pragma once

#include "base/ids.h"
#include "inventory/model/fwd.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fabric {

class RocePaths {
 public:
  /// Takes the addresses out of a node's answer to the probe roce.marking. What cannot be read
  /// teaches nothing.
  void learn(const NodeName& node, std::string_view marking);
  /// Probes for this node: "roce.path.mlx5_0.10.1.0.7". Empty: nobody else has told yet.
  std::vector<std::string> probesOf(const inventory::Cluster& cluster,
                                    const inventory::Fabric& fabric, const NodeName& node) const;
  /// What the answers say is wrong. A peer that is silent may be off: that is no finding about this
  /// node.
  std::vector<std::string> problems(const std::map<std::string, std::string>& probes) const;

 private:
  std::map<std::string, std::map<std::string, std::string>> addresses_;  // node → device → address
};

}  // namespace muster::fabric
