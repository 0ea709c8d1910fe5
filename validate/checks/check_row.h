// SPDX-License-Identifier: Apache-2.0
// The catalogue of checks: one row each. A check gets its parameters as JSON and answers with what
// it saw.
#pragma once

#include "inventory/model/fwd.h"
#include "inventory/model/gates.h"
#include "validate/checks/checks.h"
#include "validate/checks/host.h"
#include "wire/messages.h"

#include <nlohmann/json.hpp>

#include <span>
#include <string_view>

namespace muster::validate {

/// What a check says. Only Pass passes.
struct Verdict {
  wire::CheckStatus status = wire::CheckStatus::NoData;
  std::string text;
  std::map<std::string, double> values;
  nlohmann::json evidence;
};

inline Verdict pass(std::string text) { return {wire::CheckStatus::Pass, std::move(text), {}, {}}; }
inline Verdict failed(std::string text) {
  return {wire::CheckStatus::Fail, std::move(text), {}, {}};
}
inline Verdict noData(std::string text) {
  return {wire::CheckStatus::NoData, std::move(text), {}, {}};
}
inline Verdict checkError(std::string text) {
  return {wire::CheckStatus::Error, std::move(text), {}, {}};
}

struct CatalogueRow {
  std::string_view id;
  std::string_view group;      ///< of a gate's `on`
  inventory::GateLevel level;  ///< the least thorough gate that asks for it
  std::string_view what;       ///< for people
  std::string_view needs;      ///< what must be there; without it there is no data, and no pass
  std::string_view units;      ///< of what it measures; empty: nothing is measured
  std::string_view source;     ///< where the expected value comes from
  std::string_view advice;     ///< what to do when it fails
  std::string_view
      takes;  ///< parameters that a gate may set: numbers, or "NAME:word"; "*:word": any name
  Verdict (*run)(const nlohmann::json& params, const Host& host);
};

/// All checks that the agent knows; ordered by id.
std::span<const CatalogueRow> catalogue();
const CatalogueRow* findCheck(std::string_view id);
/// One check, whatever it throws. Fails closed.
Verdict runCheck(const CatalogueRow& row, const nlohmann::json& params, const Host& host);

// The functions behind the rows.
Verdict checkHostGemm(const nlohmann::json& params,
                      const Host& host);  ///< {n, seconds, min_gflops}
Verdict checkHostMemory(
    const nlohmann::json& params,
    const Host& host);  ///< {mebibytes or percent_of_available, seconds, hold_seconds}
Verdict checkHostStream(const nlohmann::json& params,
                        const Host& host);  ///< {seconds, min_gbytes_per_s}
Verdict checkGpuBurn(const nlohmann::json& params,
                     const Host& host);  ///< {seconds, stages, hold_seconds, min_power_share}:
                                         ///< muster-burn --backend cuda
Verdict checkCollectiveReady(const nlohmann::json& params, const Host& host);  ///< {}
Verdict checkGpuCollective(
    const nlohmann::json& params,
    const Host& host);  ///< a job of muster-collective (validate/collective/collective.h)
Verdict checkGpuCount(const nlohmann::json& params, const Host& host);  ///< {count}
Verdict checkGpuModel(const nlohmann::json& params,
                      const Host& host);  ///< {model}: part of the name
Verdict checkGpuDriver(const nlohmann::json& params, const Host& host);   ///< {driver}: glob
Verdict checkGpuStack(const nlohmann::json& params, const Host& host);    ///< {min_cuda}: 13.0
Verdict checkGpuEcc(const nlohmann::json& params, const Host& host);      ///< {}
Verdict checkGpuRemap(const nlohmann::json& params, const Host& host);    ///< {}
Verdict checkGpuRetired(const nlohmann::json& params, const Host& host);  ///< {}
Verdict checkGpuThrottle(const nlohmann::json& params,
                         const Host& host);  ///< {window_seconds, max_seconds}
Verdict checkGpuVbios(const nlohmann::json& params, const Host& host);   ///< {vbios}: glob
Verdict checkGpuNvlink(const nlohmann::json& params, const Host& host);  ///< {links, max_errors}
Verdict checkGpuNvlinkBer(const nlohmann::json& params,
                          const Host& host);  ///< {max_effective_ber, max_symbol_ber}
Verdict checkGpuFabric(const nlohmann::json& params, const Host& host);  ///< {}
Verdict checkGpuPcie(const nlohmann::json& params,
                     const Host& host);  ///< {generation, width, max_replays}
Verdict checkGpuClocks(const nlohmann::json& params, const Host& host);       ///< {}
Verdict checkGpuPower(const nlohmann::json& params, const Host& host);        ///< {limit_watts}
Verdict checkGpuTemperature(const nlohmann::json& params, const Host& host);  ///< {margin_c}
Verdict checkGpuXid(const nlohmann::json& params, const Host& host);          ///< {}
Verdict checkGpuAffinity(const nlohmann::json& params, const Host& host);     ///< {}
Verdict checkGpuAmd(const nlohmann::json& params, const Host& host);          ///< {count, model}
Verdict checkGpuAmdThrottle(const nlohmann::json& params,
                            const Host& host);                         ///< {gpus, window_seconds}
Verdict checkGpuXgmi(const nlohmann::json& params, const Host& host);  ///< {gpus, links}
Verdict checkGpuGds(const nlohmann::json& params,
                    const Host& host);  ///< {gpus, drivers, program}: names with commas
Verdict checkGpuDcgm(const nlohmann::json& params, const Host& host);  ///< {level, limit_seconds}
Verdict checkGpuSettings(const nlohmann::json& params,
                         const Host& host);  ///< {gpus, persistence, mig, compute_mode, ecc}
Verdict checkGpuC2c(const nlohmann::json& params, const Host& host);  ///< {gpus, links}
Verdict checkGpuNvswitch(const nlohmann::json& params,
                         const Host& host);  ///< {switches, firmware}: firmware may be absent
Verdict checkGpuProcesses(const nlohmann::json& params,
                          const Host& host);  ///< {gpus, max_used_mib, allow}: names with commas
Verdict checkGpuSramEcc(const nlohmann::json& params, const Host& host);  ///< {gpus, max_corrected}
Verdict checkGpuMemoryTemperature(const nlohmann::json& params,
                                  const Host& host);  ///< {gpus, max_c}
Verdict checkGpuNcclLoopback(const nlohmann::json& params,
                             const Host& host);  ///< {max_bytes, devices, port_gbits, …}
Verdict checkGpuNcclTests(
    const nlohmann::json& params,
    const Host& host);  ///< {program, gpus, model, max_bytes, min_busbw_gbytes_per_s,
                        ///< limit_seconds}; rccl-tests print the same
Verdict checkRdmaCount(const nlohmann::json& params, const Host& host);  ///< {count}
Verdict checkRdmaLinks(const nlohmann::json& params,
                       const Host& host);  ///< {window_seconds, min_load}
Verdict checkRdmaPorts(const nlohmann::json& params,
                       const Host& host);  ///< {min_gbits, link_layer, max_errors}
Verdict checkSystemAcs(const nlohmann::json& params, const Host& host);   ///< {}
Verdict checkSystemCpus(const nlohmann::json& params, const Host& host);  ///< {count}
Verdict checkSystemFilesystems(const nlohmann::json& params,
                               const Host& host);  ///< {min_free_percent, min_free_inodes_percent}
Verdict checkSystemPcie(const nlohmann::json& params, const Host& host);       ///< {}
Verdict checkSystemTime(const nlohmann::json& params, const Host& host);       ///< {max_error_ms}
Verdict checkSystemKernelLog(const nlohmann::json& params, const Host& host);  ///< {}
Verdict checkSystemDimms(const nlohmann::json& params, const Host& host);      ///< {max_corrected}
Verdict checkSystemNuma(const nlohmann::json& params, const Host& host);       ///< {}
Verdict checkSystemBootOrder(const nlohmann::json& params, const Host& host);  ///< {}
Verdict checkSystemNetwork(const nlohmann::json& params, const Host& host);    ///< {}
Verdict checkSystemTuning(const nlohmann::json& params, const Host& host);     ///< {NAME: value}
Verdict checkSystemIdle(const nlohmann::json& params, const Host& host);       ///< {max_us}
Verdict checkDiskHealth(const nlohmann::json& params, const Host& host);       ///< {}
Verdict checkDiskRead(const nlohmann::json& params,
                      const Host& host);  ///< {seconds, min_mbytes_per_s}
Verdict checkDiskWrite(const nlohmann::json& params, const Host& host);  ///< {mebibytes}

}  // namespace muster::validate
