// SPDX-License-Identifier: Apache-2.0
// `muster-agent tool NAME`: what may crash, hang or hold a stale library runs in a process of its
// own, started by the agent.
#pragma once

#include <string>

namespace muster::agent {

/// nvml-driver, gpus: to stdout. checks, rdma-pair: parameters from stdin, a list of results to
/// stdout. Answers the exit status; what went wrong goes to stderr.
int runToolCommand(const std::string& name);

}  // namespace muster::agent
