// The catalogue of checks: one row each. A check gets its parameters as JSON and answers with what it saw.
#pragma once

#include "agent/protocol/messages.h"
#include "validate/checks/checks.h"

#include <nlohmann/json.hpp>

#include <span>
#include <string_view>

namespace muster::validate {

/// What a check says. Only Pass passes.
struct Verdict {
  agent::CheckStatus status = agent::CheckStatus::NoData;
  std::string text;
  std::map<std::string, double> values;
  nlohmann::json evidence;
};

inline Verdict pass(std::string text) { return {agent::CheckStatus::Pass, std::move(text), {}, {}}; }
inline Verdict failed(std::string text) { return {agent::CheckStatus::Fail, std::move(text), {}, {}}; }
inline Verdict noData(std::string text) { return {agent::CheckStatus::NoData, std::move(text), {}, {}}; }
inline Verdict brokenTest(std::string text) { return {agent::CheckStatus::Error, std::move(text), {}, {}}; }

struct CatalogueRow {
  std::string_view id;
  std::string_view what;     ///< for people
  std::string_view advice;   ///< what to do when it fails
  Verdict (*run)(const nlohmann::json& params);
};

/// All checks that the agent knows; ordered by id.
std::span<const CatalogueRow> catalogue();
const CatalogueRow* findCheck(std::string_view id);

// The functions behind the rows.
Verdict checkHostGemm(const nlohmann::json& params);    ///< {n, seconds, min_gflops}
Verdict checkHostMemory(const nlohmann::json& params);  ///< {mebibytes or percent_of_available, seconds}
Verdict checkGpuCount(const nlohmann::json& params);    ///< {count}
Verdict checkGpuModel(const nlohmann::json& params);    ///< {model}: part of the name
Verdict checkGpuDriver(const nlohmann::json& params);   ///< {driver}: glob
Verdict checkGpuEcc(const nlohmann::json& params);      ///< {}
Verdict checkGpuRemap(const nlohmann::json& params);    ///< {}
Verdict checkGpuThrottle(const nlohmann::json& params); ///< {}
Verdict checkRdmaCount(const nlohmann::json& params);   ///< {count}

}  // namespace muster::validate
