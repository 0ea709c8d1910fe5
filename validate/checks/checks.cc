#include "validate/checks/checks.h"

#include "validate/checks/catalogue.h"

#include <algorithm>
#include <array>

namespace muster::validate {
namespace {

constexpr std::array kCatalogue{
    CatalogueRow{"gpu.count", "number of GPUs that NVML sees", "reseat the missing GPU or its power, look for XID 79 in the kernel log", checkGpuCount},
    CatalogueRow{"gpu.driver", "running driver version", "reinstall the pinned driver and reboot: another version is loaded", checkGpuDriver},
    CatalogueRow{"gpu.ecc", "ECC on, no uncorrected error", "reset the GPU; when errors come back, run long burn-in and open an RMA", checkGpuEcc},
    CatalogueRow{"gpu.model", "model of every GPU", "the machine has other GPUs than its profile says: correct the profile or the machine", checkGpuModel},
    CatalogueRow{"gpu.remap", "row remapping neither pending nor failed", "pending: reset the GPU; failed: RMA", checkGpuRemap},
    CatalogueRow{"gpu.throttle", "no hardware or thermal slowdown", "check power leads, fans and inlet temperature", checkGpuThrottle},
    CatalogueRow{"host.gemm", "verified matrix products on all cores", "take the node out; run memory and CPU vendor diagnostics with the seed", checkHostGemm},
    CatalogueRow{"host.memory", "memory patterns", "take the node out; swap the DIMM that the event log or EDAC names", checkHostMemory},
    CatalogueRow{"rdma.count", "number of RDMA devices", "reseat or replace the missing NIC; is its driver loaded?", checkRdmaCount},
};

agent::CheckResult runOne(const CheckRequest& request) {
  agent::CheckResult result;
  result.id = request.id;
  const auto start = std::chrono::steady_clock::now();
  const auto row = findCheck(request.id);
  const auto params = nlohmann::json::parse(request.params.empty() ? "{}" : request.params, nullptr, false);
  Verdict verdict;
  if (!row)
    verdict = brokenTest("this agent does not know the check; update the agent");
  else if (!params.is_object())
    verdict = brokenTest("the parameters are not a JSON object");
  else
    try {
      verdict = row->run(params);
    } catch (const std::exception& error) {  // a parameter of the wrong type, no memory: the check has not passed
      verdict = brokenTest(error.what());
    }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (verdict.status == agent::CheckStatus::Pass && result.seconds > static_cast<double>(request.deadline.count())) {
    verdict.status = agent::CheckStatus::Timeout;
    verdict.text = fmt::format("took {:.0f} s, more than its {} s; seen: {}", result.seconds, request.deadline.count(), verdict.text);
  }
  result.status = verdict.status;
  result.text = std::move(verdict.text);
  result.values = std::move(verdict.values);
  result.evidence = verdict.evidence.is_null() ? "" : verdict.evidence.dump();
  return result;
}

}  // namespace

std::span<const CatalogueRow> catalogue() { return kCatalogue; }

const CatalogueRow* findCheck(std::string_view id) {
  const auto row = std::find_if(kCatalogue.begin(), kCatalogue.end(), [id](const auto& each) { return each.id == id; });
  return row == kCatalogue.end() ? nullptr : &*row;
}

std::vector<agent::CheckResult> runChecks(const std::vector<CheckRequest>& requests) {
  std::vector<agent::CheckResult> results;
  for (const auto& request : requests) results.push_back(runOne(request));
  return results;
}

}  // namespace muster::validate
