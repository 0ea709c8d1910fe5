// SPDX-License-Identifier: Apache-2.0
// The cluster of one node whose keys are looked at.
#pragma once
#include "inventory/model/cluster.h"
#include "tests/agent/site.h"

namespace muster::test {

inline const FakeNetworkEvidence kNetwork;  ///< nobody is seen

inline inventory::Cluster clusterOfOne() {
  inventory::Cluster cluster;
  cluster.nodes.emplace_back();
  cluster.nodes[0].name = kNode;
  cluster.nodes[0].mac = *Mac::parse(kMac1);
  return cluster;
}

}  // namespace muster::test
