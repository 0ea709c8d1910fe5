// SPDX-License-Identifier: Apache-2.0
// Checks: run on the node, by the agent. Pure of controller concerns; a check that cannot run has
// not passed.
#pragma once

#include "wire/messages.h"

#include <string>
#include <vector>

namespace muster::validate {

struct CheckRequest {
  std::string id;      ///< catalogue id, "host.gemm"
  std::string params;  ///< JSON object: expected values and limits with their units
  std::chrono::seconds deadline{60};
};
/// Runs them one after the other. Never throws; an unknown id answers Error.
std::vector<wire::CheckResult> runChecks(const std::vector<CheckRequest>& requests);

/// NVML as found on this machine by dlopen (libnvidia-ml.so.1, MUSTER_NVML overrides). Errors:
/// NotFound
Result<std::vector<wire::Gpu>> listGpus();
Result<std::string> nvmlDriverVersion();

struct Host;
/// One side of a perftest pair: bandwidth, and the latency after it where it is asked for.
wire::CheckResult runRdmaPair(const std::string& params);
wire::CheckResult runRdmaPair(const std::string& params, const Host& host);

}  // namespace muster::validate
