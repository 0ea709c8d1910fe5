// SPDX-License-Identifier: Apache-2.0
#include "validate/gate_params.h"

#include "base/json_input.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/pools.h"
#include "validate/bmc_gate.h"
#include "validate/checks/check_params.h"
#include "validate/checks/check_row.h"
#include "validate/collective/nccl_tests.h"
#include "validate/gates.h"

#include <algorithm>

namespace muster::validate {
namespace {

using inventory::Gate;

constexpr std::string_view kAnyName = "*";

/// Checks that no agent runs: between two nodes, and by the BMC.
struct OtherCheck {
  std::string_view id, group, takes;
};
constexpr OtherCheck kOthers[] = {{"rdma.pair", "rdma", "min_gbits max_latency_us"},
                                  {"gdr.pair", "gdr", "min_gbits max_latency_us"},
                                  {kBmcLogCheck, kBmcGroup, "fail_on:word"},
                                  {kBmcPowerCheck, kBmcGroup, "supplies"}};

const OtherCheck* otherCheck(std::string_view id) {
  const auto found = std::ranges::find(kOthers, id, &OtherCheck::id);
  return found == std::end(kOthers) ? nullptr : found;
}

std::vector<CheckParam> paramsOfCheck(std::string_view check) {
  const auto* row = findCheck(check);
  const auto* other = otherCheck(check);
  return paramsOf(row ? row->takes : other ? other->takes : "");
}

std::optional<nlohmann::json> numberOf(const std::string& text) {
  auto number = jsonOrNone(text, kKeptJson);
  return number.is_number() ? std::optional(std::move(number)) : std::nullopt;
}

using Refusal = ParamRefusal;

constexpr std::string_view kLevel = "level";  ///< of gpu.dcgm

/// The most that a gate may ask of one check on idle nodes: a job that wants the node back waits a
/// few seconds for it, and what has not ended then goes on beside the job. About twice what level
/// quick asks for.
struct IdleBound {
  std::string_view param;
  double most;
};
constexpr IdleBound kIdleBounds[] = {
    {"seconds", 10},  // of disk.read each disk
    {"hold_seconds", 10},
    {"window_seconds", 10},
    {"limit_seconds", 120},  // of site testers, which end by themselves much earlier
    {kLevel, 1},             // of gpu.dcgm: 2 takes minutes, 4 hours
    {"mebibytes", 1'024},
    {"percent_of_available", 0},  // of terabytes
    {"n", 16'384},
};
constexpr std::string_view kLargestMessage = "max_bytes";
constexpr double kIdleMessageBytes = 1024.0 * 1024 * 1024;

std::optional<Refusal> whyNotOnIdleNodes(std::string_view check, const std::string& name,
                                         const std::string& value) {
  const auto refusal = [&](const std::string& most) {
    return Refusal{
        fmt::format("{}: {} is {}, at most {} on idle nodes, which jobs want back within "
                    "seconds",
                    check, name, value, most),
        "lower it, or name another gate of level quick in active_checks"};
  };
  if (name == kLargestMessage) {
    const auto bytes = collective::messageBytes(value);
    return bytes && *bytes > kIdleMessageBytes ? std::optional(refusal("1G")) : std::nullopt;
  }
  const auto bound = std::ranges::find(kIdleBounds, name, &IdleBound::param);
  if (bound == std::end(kIdleBounds)) return std::nullopt;
  const auto number = numberOf(value);
  return number && number->get<double>() > bound->most
             ? std::optional(refusal(fmt::format("{}", bound->most)))
             : std::nullopt;
}

/// The present name of a check that had another one; empty: it had none.
std::string_view renamedCheck(std::string_view check) {
  return check == "system.knobs" ? "system.tuning" : "";
}

/// Why this gate does not ask for the check; nullopt: it does.
std::optional<Refusal> whyNotAsked(const Gate& gate, std::string_view check) {
  const auto* row = findCheck(check);
  if (const auto renamed = renamedCheck(check); !renamed.empty())
    return Refusal{fmt::format("this check is named {} now", renamed),
                   fmt::format("write {} instead", renamed)};
  const auto* other = otherCheck(check);
  if (!row && !other)
    return Refusal{"the catalogue has no such check", "`muster validate checks` lists them"};
  const std::string group(row ? row->group : other->group);
  if (std::find(gate.groups.begin(), gate.groups.end(), group) == gate.groups.end())
    return Refusal{"the gate does not ask for it", fmt::format("add {} to `groups`", group)};
  if (row && row->level > gate.level)
    return Refusal{"the gate is not thorough enough to ask for it", "raise `level`"};
  return std::nullopt;
}

std::optional<Refusal> whyNotSet(std::string_view check, const std::string& name,
                                 const std::string& value) {
  const auto params = paramsOfCheck(check);
  const auto* known = findParam(params, name);
  if (!known)
    return Refusal{
        fmt::format("it has no parameter {}", name),
        params.empty() ? "remove it: the check takes none" : "it takes " + paramNames(check)};
  if (!known->word) return whyNotNumber(name, numberOf(value).value_or(nlohmann::json(value)));
  if (value.find_first_not_of(" ,") == std::string::npos)
    return Refusal{fmt::format("{} names nothing: \"{}\"", name, value),
                   "name something, or leave it out"};
  return std::nullopt;
}

}  // namespace

std::string paramNames(std::string_view check) {
  std::string out;
  for (const auto& param : paramsOfCheck(check))
    out += fmt::format("{}{}", out.empty() ? "" : ", ",
                       param.name == kAnyName ? "the settings' names" : param.name);
  return out;
}

void evaluateGates(const inventory::Cluster& cluster, Diagnostics& diagnostics) {
  for (const auto& [name, gate] : cluster.gates)
    for (const auto& [check, own] : gate.checks) {
      const auto say = [&, where = fmt::format("gate {}, check {}", name, check),
                        at = gate.where](const std::optional<Refusal>& refusal) {
        if (refusal)
          diagnostics.error(at, fmt::format("{}: {}", where, refusal->why), refusal->way_out);
      };
      const auto refused = whyNotAsked(gate, check);
      say(refused);
      for (const auto& [param, value] : own)
        if (!refused) say(whyNotSet(check, param, value));
    }
}

void evaluateActiveChecks(const inventory::Cluster& cluster, Diagnostics& diagnostics) {
  for (const auto& [name, pool] : cluster.pools) {
    if (!pool.slurm || !pool.slurm->active_checks) continue;
    const auto gate = cluster.gates.find(pool.slurm->active_checks->gate);
    if (gate == cluster.gates.end()) continue;
    for (const auto& [check, own] : gate->second.checks)
      for (const auto& [param, value] : own)
        if (const auto refused = whyNotOnIdleNodes(check, param, value))
          diagnostics.error(gate->second.where,
                            fmt::format("gate {} of pool {}'s active_checks, {}", gate->first, name,
                                        refused->why),
                            refused->way_out);
  }
}

void setOwnParams(const Gate& gate, std::string_view check, nlohmann::json& params) {
  const auto own = gate.checks.find(std::string(check));
  if (own == gate.checks.end()) return;
  if (own->second.contains("mebibytes"))
    params.erase("percent_of_available");  // two words for one thing: the gate's counts
  const auto known = paramsOfCheck(check);
  for (const auto& [name, value] : own->second) {
    const auto* param = findParam(known, name);
    auto number = param && !param->word ? numberOf(value) : std::nullopt;
    params[name] = number ? std::move(*number) : nlohmann::json(value);
  }
}

std::optional<double> ownNumber(const Gate& gate, std::string_view check,
                                const std::string& param) {
  nlohmann::json params = nlohmann::json::object();
  setOwnParams(gate, check, params);
  return params.contains(param) && params.at(param).is_number()
             ? std::optional(params.at(param).get<double>())
             : std::nullopt;
}

}  // namespace muster::validate
