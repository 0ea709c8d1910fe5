// SPDX-License-Identifier: Apache-2.0
// What the tests of pool/ share: a context, a certificate gate that can be told, a cluster of one
// pool.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/certificate_gate.h"
#include "lifecycle/model/phase.h"
#include "pool/pool.h"
#include "tests/fakes/plain_act_context.h"

#include <set>

namespace muster::pool::test {

using Context = muster::test::PlainActContext;

struct Certificates final : lifecycle::CertificateGate {
  std::set<NodeName> valid;
  Result<void> requireValid(const NodeName& node) const override {
    if (valid.count(node)) return {};
    return fail(ErrorCode::Denied, "no certificate of " + node.str() + "; run the gates");
  }
};

inline inventory::Cluster poolCluster() {
  inventory::Cluster cluster;
  cluster.pools["batch"] = {"batch", inventory::SlurmPool{"gpu", {}}};
  auto& profile = cluster.profiles["gpu-node"];
  profile.name = "gpu-node";
  profile.pool = "batch";
  cluster.profiles["login"].name = "login";
  for (const char* name : {"gpu001", "gpu002", "login1"}) {
    inventory::Node node;
    node.name = NodeName(name);
    node.profile = node.name.str() == "login1" ? "login" : "gpu-node";
    cluster.nodes.push_back(node);
  }
  return cluster;
}

inline lifecycle::Action poolAction(const char* node, std::string_view to) {
  lifecycle::Action action;
  action.facet = {lifecycle::Subject(NodeName(node)),
                  FacetName(std::string(lifecycle::kPoolFacet))};
  action.to = to;
  action.reason = "driver nvidia changes";
  return action;
}

}  // namespace muster::pool::test
