// SPDX-License-Identifier: Apache-2.0
// Site: the numbers of an isolation as nodes, devices, switches and ports of an inventory, and a
// verdict in words.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "gateway/agent_gateway.h"
#include "inventory/model/fwd.h"
#include "inventory/model/node.h"
#include "validate/isolate/engine.h"
#include "validate/isolate/isolation.h"
#include "validate/isolate/routes.h"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::validate::isolate {

struct SiteNode {
  NodeName name;
  std::string address;               ///< where its test server listens
  std::vector<std::string> devices;  ///< RDMA devices by rail
  int leaf_port = 0;                 ///< of its leaf switches, as declared; 0: not known
  std::string hcas = {};  ///< NCCL_IB_HCA of a node on several fabrics: those of the compute fabric
};

struct Site {
  std::vector<SiteNode> nodes;  ///< in the order of the isolation's numbers
  Layout layout;
  std::vector<std::string> leaf_names;  ///< "leaf-su1": with the rail behind it a switch; or a
                                        ///< rack, where no fabric is declared or tested
  bool over_host_network = false;       ///< TCP: the fabric takes no part, and is not accused
  bool leaves_are_switches = false;     ///< leaf_names + "-rN" are declared switches
  bool rails_are_nics =
      true;            ///< of NCCL: each GPU has one of its own; not kept, asked at the beginning
  std::string link;    ///< of the fabric, "4xNDR"
  std::string fabric;  ///< its name; empty: none
  std::shared_ptr<const SiteRoutes> routes;  ///< null: not known; else `layout.cables` asks it
};

/// From here on single cables are in question, by these numbers.
void useRoutes(Site& site, SiteRoutes routes);

/// Rails are RDMA devices, as many as all nodes have; of NCCL the GPUs of a node; TCP has one.
/// Errors: InvalidInput (of different fabrics, fewer than two), Unavailable (agents that are silent
/// or report no RDMA device, named)
Result<Site> siteOf(const inventory::Cluster& cluster, const std::vector<NodeName>& nodes,
                    const gateway::AgentGateway& agents, const Engine& engine = {});
/// What a healthy pair reaches at least, by what is expected of its devices and link: the floor of
/// RDMA tests; of NCCL, whose tests include the way from NIC to GPU, three quarters of it. Nullopt:
/// nothing is expected (TCP, GPUs without a NIC of their own, a fabric without a link).
std::optional<double> leastGbitsOf(const Site& site, EngineKind engine);
/// For going on after a kill: the same numbers for the same nodes, whatever agents say now.
nlohmann::json siteToJson(const Site& site);
/// Errors: Corrupt
Result<Site> siteFromJson(const nlohmann::json& json);

/// A culprit in the words of the site: what it is, what was seen, what to do next.
struct Told {
  std::string subject, what, next;
};
Told tell(const Site& site, const Culprit& culprit);
std::string toText(const Site& site, const Verdict& verdict);
nlohmann::json toJson(const Site& site, const Verdict& verdict);

}  // namespace muster::validate::isolate
