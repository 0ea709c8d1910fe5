// SPDX-License-Identifier: Apache-2.0
// The controller's end of the agent protocol: enrollment of the node that was just armed, mutual
// TLS polls, task bookkeeping.
#pragma once

#include "base/ids.h"
#include "base/io/crypto.h"
#include "base/io/http.h"
#include "base/result.h"
#include "gateway/agent_gateway.h"
#include "gateway/network_evidence.h"
#include "inventory/model/fwd.h"
#include "lifecycle/store/store.h"
#include "signer/authority.h"

#include <functional>
#include <memory>
#include <vector>

namespace muster::gateway {

inline constexpr std::chrono::minutes kEnrollmentWindow{15};
/// An agent in the RAM OS; it lives for minutes.
inline constexpr std::chrono::hours kAgentCertificateLifetime{24 * 30};
/// An installed agent can renew only while a plan or an apply happens to run: a cluster that nobody
/// touches for a year must still find its agents.
inline constexpr std::chrono::hours kInstalledCertificateLifetime{24 * 365 * 2};

class GatewayServer : public AgentGateway {
 public:
  /// Routes of /agent/v1/ for the HTTPS server (client certificate asked for, checked per route).
  virtual std::vector<io::Route> routes() = 0;
  /// Arms the node for one enrollment: a public id of this arming, bound to the node and its
  /// provisioning MAC. Earlier ids are worthless from now on.
  virtual Result<std::string> openEnrollment(const NodeName& node, const Mac& mac) = 0;
};

/// What symptoms mean on a node, as its agent is told (wire/health_rules.h); cheap: asked with
/// every poll.
struct HealthRulesText {
  std::string text, digest;
};
using HealthRulesFor = std::function<std::shared_ptr<const HealthRulesText>(const NodeName&)>;

/// `evidence`: what must show that a caller is the node. `controllers`: what agents are told of
/// where controllers answer (controllers.h); empty: nothing. `health_rules`; empty: none.
std::unique_ptr<GatewayServer> makeGatewayServer(const inventory::Cluster& cluster,
                                                 const signer::Authority& ca,
                                                 lifecycle::Store& store, Clock& clock,
                                                 const NetworkEvidence& evidence,
                                                 std::string controllers = {},
                                                 HealthRulesFor health_rules = {});

}  // namespace muster::gateway
