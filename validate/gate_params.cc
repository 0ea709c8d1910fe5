// SPDX-License-Identifier: Apache-2.0
#include "validate/gate_params.h"

#include "base/json_input.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "validate/checks/check_row.h"
#include "validate/gates.h"

#include <algorithm>

namespace muster::validate {
namespace {

using inventory::Gate;

constexpr std::string_view kWord = ":word", kAnyName = "*";

struct Param {
  std::string_view name;
  bool word = false;  ///< else a number, zero or more
};

/// `takes` of the catalogue's row; pair tests are no agent's check, but have a floor.
std::vector<Param> paramsOf(std::string_view check) {
  const auto* row = findCheck(check);
  std::string_view takes = row ? row->takes
                           : check == "rdma.pair" || check == "gdr.pair"
                               ? "min_gbits max_latency_us"
                               : "";
  std::vector<Param> out;
  while (!takes.empty()) {
    const auto end = std::min(takes.find(' '), takes.size());
    auto name = takes.substr(0, end);
    const bool word = name.ends_with(kWord);
    if (word) name.remove_suffix(kWord.size());
    out.push_back({name, word});
    takes.remove_prefix(std::min(end + 1, takes.size()));
  }
  return out;
}

const Param* find(const std::vector<Param>& params, std::string_view name) {
  const auto found = std::find_if(params.begin(), params.end(), [name](const auto& each) {
    return each.name == name || each.name == kAnyName;
  });
  return found == params.end() ? nullptr : &*found;
}

std::optional<nlohmann::json> numberOf(const std::string& text) {
  auto number = jsonOrNone(text, kKeptJson);
  return number.is_number() && number.get<double>() >= 0 ? std::optional(std::move(number))
                                                         : std::nullopt;
}

struct Refusal {
  std::string why, way_out;
};

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
  if (!row && check != "rdma.pair" && check != "gdr.pair")
    return Refusal{"the catalogue has no such check", "`muster validate checks` lists them"};
  const std::string group(row ? row->group : check.substr(0, check.find('.')));
  if (std::find(gate.groups.begin(), gate.groups.end(), group) == gate.groups.end())
    return Refusal{"the gate does not ask for it", fmt::format("add {} to `groups`", group)};
  if (row && row->level > gate.level)
    return Refusal{"the gate is not thorough enough to ask for it", "raise `level`"};
  return std::nullopt;
}

std::optional<Refusal> whyNotSet(std::string_view check, const std::string& name,
                                 const std::string& value) {
  const auto params = paramsOf(check);
  const auto* known = find(params, name);
  if (!known)
    return Refusal{
        fmt::format("it has no parameter {}", name),
        params.empty() ? "remove it: the check takes none" : "it takes " + paramNames(check)};
  if (!known->word && !numberOf(value))
    return Refusal{fmt::format("{} is \"{}\"", name, value), "write a number, zero or more"};
  return std::nullopt;
}

}  // namespace

std::string paramNames(std::string_view check) {
  std::string out;
  for (const auto& param : paramsOf(check))
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

void setOwnParams(const Gate& gate, std::string_view check, nlohmann::json& params) {
  const auto own = gate.checks.find(std::string(check));
  if (own == gate.checks.end()) return;
  if (own->second.contains("mebibytes"))
    params.erase("percent_of_available");  // two words for one thing: the gate's counts
  const auto known = paramsOf(check);
  for (const auto& [name, value] : own->second) {
    const auto* param = find(known, name);
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
