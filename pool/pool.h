// SPDX-License-Identifier: Apache-2.0
// Facade of pool/: Slurm and Kubernetes. A node joins only with a valid certificate; drain is the
// inverse.
#pragma once

#include "base/io/http.h"
#include "base/io/process.h"
#include "gateway/agent_gateway.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/certificate_gate.h"
#include "lifecycle/model/phase.h"

#include <filesystem>
#include <functional>
#include <memory>

namespace muster::pool {

/// How the phase marks the drains that are its own: only those does it undo.
inline constexpr std::string_view kDrainReasonPrefix = "muster: ";

struct PoolOptions {
  std::filesystem::path
      slurm_conf;  ///< for scontrol here; a pool of the inventory may name another
  std::filesystem::path slurm_node_conf;  ///< for slurmd on the nodes; empty: the same
  std::filesystem::path munge_key;
  std::map<std::string, std::string> tool_env;  ///< SLURM_CONF, munge socket
  std::function<std::unique_ptr<io::HttpClient>(io::TlsTrust)> http =
      io::makeHttpClient;  ///< to API servers of Kubernetes
};
std::unique_ptr<lifecycle::Phase> makePoolPhase(const inventory::Cluster& cluster,
                                                gateway::AgentGateway& agents,
                                                const lifecycle::CertificateGate& certificates,
                                                io::ProcessRunner& processes, Clock& clock,
                                                PoolOptions options);

}  // namespace muster::pool
