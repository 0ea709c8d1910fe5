// SPDX-License-Identifier: Apache-2.0
#include "discovery/match.h"

#include "inventory/model/discovery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fnmatch.h>

#include <algorithm>

namespace muster::discovery {
namespace {

std::vector<std::string> valuesOf(const Machine& machine, const std::string& field) {
  if (field == "vendor") return {machine.vendor};
  if (field == "model") return {machine.model};
  if (field == "serial") return {machine.serial};
  if (field == "uuid") return {machine.uuid};
  if (field == "bmc") return {machine.bmc};
  if (field == "mac") return machine.macs;
  if (field == "bmc_mac") return machine.bmc_macs;
  if (field == "gpus") return {std::to_string(machine.gpus.size())};
  std::vector<std::string> models;
  if (field == "gpu_model")
    for (const auto& gpu : machine.gpus) models.push_back(gpu.model);
  return models;
}

}  // namespace

Result<std::pair<std::string, std::string>> parseMatch(const std::string& text) {
  const auto equals = text.find('=');
  const auto field = text.substr(0, equals);
  if (equals == std::string::npos || equals + 1 == text.size() ||
      std::none_of(std::begin(inventory::kMatchFields), std::end(inventory::kMatchFields),
                   [&](const char* known) { return field == known; }))
    return fail(ErrorCode::InvalidInput, fmt::format("\"{}\" is no FIELD=GLOB; fields: {}", text,
                                                     fmt::join(inventory::kMatchFields, ", ")));
  return std::pair{field, text.substr(equals + 1)};
}

bool matches(const Machine& machine, const std::map<std::string, std::string>& globs) {
  return std::all_of(globs.begin(), globs.end(), [&](const auto& wanted) {
    const auto values = valuesOf(machine, wanted.first);
    return std::any_of(values.begin(), values.end(), [&](const std::string& value) {
      return ::fnmatch(wanted.second.c_str(), value.c_str(), FNM_CASEFOLD) == 0;
    });
  });
}

const inventory::DiscoveryRule* ruleFor(const Machine& machine,
                                        const inventory::DiscoveryPolicy& policy) {
  const auto found = std::find_if(policy.rules.begin(), policy.rules.end(),
                                  [&](const auto& rule) { return matches(machine, rule.match); });
  return found == policy.rules.end() ? nullptr : &*found;
}

}  // namespace muster::discovery
