// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/faults.h"

#include "lifecycle/model/facet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace muster::lab::vbmc {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<UpdateFault, std::string_view>, 14> kNames = {
    {{UpdateFault::CutUpload, "cut-upload"},
     {UpdateFault::LostAnswer, "lost-answer"},
     {UpdateFault::TaskVanishes, "task-vanishes"},
     {UpdateFault::TaskFails, "task-fails"},
     {UpdateFault::CompletedNotInstalled, "completed-not-installed"},
     {UpdateFault::ExceptionButInstalled, "exception-but-installed"},
     {UpdateFault::StuckMode, "stuck-mode"},
     {UpdateFault::NoLicence, "no-licence"},
     {UpdateFault::BmcLost, "bmc-lost"},
     {UpdateFault::HostSilent, "host-silent"},
     {UpdateFault::StartsAtRestart, "starts-at-restart"},
     {UpdateFault::AdapterStarting, "adapter-starting"},
     {UpdateFault::AdapterDead, "adapter-dead"},
     {UpdateFault::LeavesItWorse, "leaves-it-worse"}}};
constexpr std::size_t kMaxRules = 256;
constexpr std::array<std::string_view, 9> kRuleKeys = {
    "method", "path", "status", "latency_ms", "drop", "after", "merge", "count", "comment"};

Error odd(const std::string& what) { return Error(ErrorCode::InvalidInput, what); }

Result<FaultRule> ruleOf(const json& entry) {
  if (!entry.is_object()) return fail(odd("a rule is an object"));
  for (const auto& [key, value] : entry.items())
    if (std::find(kRuleKeys.begin(), kRuleKeys.end(), key) == kRuleKeys.end())
      return fail(
          odd(fmt::format("a rule has no \"{}\"; it has {}", key, fmt::join(kRuleKeys, ", "))));
  try {
    FaultRule rule;
    rule.method = entry.value("method", "*");
    rule.path = entry.value("path", "*");
    rule.status = entry.value("status", 0);
    rule.latency = std::chrono::milliseconds(entry.value("latency_ms", 0));
    rule.drop = entry.value("drop", false);
    rule.after = entry.value("after", false);
    rule.count = entry.value("count", 1);
    if (const auto merge = entry.find("merge"); merge != entry.end()) rule.merge = *merge;
    if (rule.status != 0 && (rule.status < 100 || rule.status > 599))
      return fail(odd(fmt::format("{} is no HTTP status", rule.status)));
    return rule;
  } catch (const json::exception& problem) {
    return fail(odd(fmt::format("a rule's value has the wrong type: {}", problem.what())));
  }
}

}  // namespace

std::string_view toString(UpdateFault fault) {
  const auto found = std::find_if(kNames.begin(), kNames.end(),
                                  [fault](const auto& name) { return name.first == fault; });
  return found == kNames.end() ? "none" : found->second;
}

std::optional<UpdateFault> parseUpdateFault(std::string_view text) {
  const auto found = std::find_if(kNames.begin(), kNames.end(),
                                  [text](const auto& name) { return name.second == text; });
  return found == kNames.end() ? std::nullopt : std::optional(found->first);
}

std::vector<UpdateFault> allUpdateFaults() {
  std::vector<UpdateFault> out;
  for (const auto& [fault, name] : kNames) out.push_back(fault);
  return out;
}

Result<void> Faults::set(const json& input) {
  if (!input.is_object()) return fail(odd("faults are an object with rules and update_faults"));
  std::vector<FaultRule> rules;
  std::vector<Waiting> faults;
  for (const auto& entry : input.value("rules", json::array())) {
    TRY(rule, ruleOf(entry));
    rules.push_back(std::move(rule));
  }
  if (rules.size() > kMaxRules) return fail(odd(fmt::format("more than {} rules", kMaxRules)));
  for (const auto& entry : input.value("update_faults", json::array())) {
    const auto kind = entry.is_object() && entry.contains("kind") && entry["kind"].is_string()
                          ? entry["kind"].get<std::string>()
                          : std::string();
    const auto fault = parseUpdateFault(kind);
    if (!fault) {
      std::vector<std::string_view> names;
      for (const auto& name : kNames) names.push_back(name.second);
      return fail(odd(fmt::format("there is no update fault \"{}\"; there are {}", kind,
                                  fmt::join(names, ", "))));
    }
    const auto count = entry.find("count");
    faults.push_back(
        {*fault, count != entry.end() && count->is_number_integer() ? count->get<int>() : 1});
  }
  rules_ = std::move(rules);
  faults_ = std::move(faults);
  return {};
}

json Faults::toJson() const {
  nlohmann::json out = {{"rules", nlohmann::json::array()},
                        {"update_faults", nlohmann::json::array()}};
  for (const auto& rule : rules_) {
    nlohmann::json entry = {{"method", rule.method}, {"path", rule.path},
                            {"status", rule.status}, {"latency_ms", rule.latency.count()},
                            {"drop", rule.drop},     {"after", rule.after},
                            {"count", rule.count}};
    if (!rule.merge.is_null()) entry["merge"] = rule.merge;
    out["rules"].push_back(std::move(entry));
  }
  for (const auto& waiting : faults_)
    out["update_faults"].push_back({{"kind", toString(waiting.fault)}, {"count", waiting.count}});
  return out;
}

std::optional<FaultRule> Faults::take(const std::string& method, const std::string& path) {
  const auto fits = [&](const FaultRule& rule) {
    return rule.count != 0 && lifecycle::matches(rule.method, method) &&
           lifecycle::matches(rule.path, path);
  };
  const auto found = std::find_if(rules_.begin(), rules_.end(), fits);
  if (found == rules_.end()) return std::nullopt;
  auto rule = *found;
  if (found->count > 0 && --found->count == 0) rules_.erase(found);
  return rule;
}

void Faults::expect(UpdateFault fault, int count) { faults_.push_back({fault, count}); }

UpdateFault Faults::draw() {
  if (faults_.empty()) return UpdateFault::None;
  const auto fault = faults_.front().fault;
  if (faults_.front().count > 0 && --faults_.front().count == 0) faults_.erase(faults_.begin());
  return fault;
}

}  // namespace muster::lab::vbmc
