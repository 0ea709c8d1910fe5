// SPDX-License-Identifier: Apache-2.0
#include "validate/bmc_gate.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "inventory/model/gates.h"
#include "inventory/model/node.h"
#include "validate/gate_params.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::validate {
namespace {

using lifecycle::Again;
using nlohmann::json;
using wire::CheckResult;
using wire::CheckStatus;

constexpr int kTries = 5;  ///< a BMC restarts by itself in a minute or two
constexpr std::chrono::seconds kTryAgain{20};
constexpr std::size_t kNamed = 4;
constexpr std::string_view kCritical = "Critical", kWarning = "Warning";

std::string keyOf(const NodeName& node, const std::string& gate) {
  return fmt::format("gate.bmc.{}.{}", node.str(), gate);
}

CheckResult resultOf(std::string_view id, CheckStatus status, std::string text) {
  CheckResult result;
  result.id = std::string(id);
  result.status = status;
  result.text = std::move(text);
  return result;
}

CheckResult unread(std::string_view id, const std::string& why) {
  return resultOf(id, CheckStatus::NoData, "the BMC: " + why);
}

std::string wordsOf(const bmc::EventLogCursor::Kept& entry) {
  return fmt::format("{} {} ({})", entry.severity, entry.message, entry.created);
}

}  // namespace

CheckResult evaluateBmcLog(const std::vector<bmc::EventLogCursor::Kept>& news, bool warnings_fail) {
  std::vector<std::string> named;
  double critical = 0, warnings = 0;
  auto evidence = json::array();
  for (const auto& entry : news) {
    critical += entry.severity == kCritical, warnings += entry.severity == kWarning;
    evidence.push_back({{"created", entry.created},
                        {"severity", entry.severity},
                        {"message", entry.message},
                        {"log", entry.log},
                        {"resolution", entry.resolution}});
    if ((entry.severity == kCritical || warnings_fail) && named.size() < kNamed)
      named.push_back(wordsOf(entry));
  }
  auto result =
      named.empty()
          ? resultOf(kBmcLogCheck, CheckStatus::Pass,
                     warnings > 0 ? fmt::format("no critical entry since the gate began, {:.0f} "
                                                "warnings: {}",
                                                warnings, wordsOf(news.front()))
                                  : "no new entry of weight since the gate began")
          : resultOf(kBmcLogCheck, CheckStatus::Fail,
                     fmt::format("{:.0f} critical entries and {:.0f} warnings since the "
                                 "gate began: {}",
                                 critical, warnings, fmt::join(named, "; ")));
  result.values = {{"new_critical", critical}, {"new_warnings", warnings}};
  result.evidence = jsonText(evidence);
  return result;
}

CheckResult evaluatePowerSupplies(const bmc::PowerSupplies& seen,
                                  std::optional<std::size_t> expected) {
  std::vector<std::string> wrong;
  std::size_t good = 0, absent = 0, unknown = 0;
  const bool grouped = std::ranges::any_of(
      seen.groups, [](const bmc::SupplyRedundancy& group) { return group.health == "OK"; });
  auto evidence = json::array();
  for (const auto& supply : seen.supplies) {
    evidence.push_back({{"name", supply.name}, {"state", supply.state}, {"health", supply.health}});
    const bool runs =
        supply.state.empty() || supply.state == "Enabled" || supply.state == "StandbySpare";
    if (supply.state == "Absent") {
      ++absent;
      if (!expected) wrong.push_back(fmt::format("the place of {} is empty", supply.name));
    } else if (!runs || (!supply.health.empty() && supply.health != "OK")) {
      wrong.push_back(fmt::format("{} is {}, its health {}", supply.name,
                                  supply.state.empty() ? "there" : supply.state,
                                  supply.health.empty() ? "unknown" : supply.health));
    } else {
      ++good;
      unknown += supply.health.empty() && !grouped;  // a DGX speaks of all of them together
    }
  }
  for (const auto& group : seen.groups)
    if ((!group.health.empty() && group.health != "OK") ||
        (!group.state.empty() && group.state != "Enabled"))
      wrong.push_back(fmt::format("{} is not redundant: {}, its health {}", group.name,
                                  group.state.empty() ? "there" : group.state,
                                  group.health.empty() ? "unknown" : group.health));
  if (expected && good < *expected)
    wrong.push_back(fmt::format("{} of {} power supplies are well", good, *expected));
  auto result =
      !wrong.empty()
          ? resultOf(kBmcPowerCheck, CheckStatus::Fail, fmt::format("{}", fmt::join(wrong, "; ")))
      : good == 0 || unknown > 0
          ? resultOf(kBmcPowerCheck, CheckStatus::NoData,
                     fmt::format("the BMC does not say how {} of {} power supplies are",
                                 good == 0 ? seen.supplies.size() : unknown, seen.supplies.size()))
          : resultOf(kBmcPowerCheck, CheckStatus::Pass,
                     fmt::format("{} power supplies are well{}{}", good,
                                 absent ? fmt::format(", {} places are empty", absent) : "",
                                 seen.groups.empty() ? "; the BMC says nothing of redundancy"
                                                     : ", redundant"));
  result.values = {{"power_supplies", static_cast<double>(good)}};
  result.evidence = jsonText(evidence);
  return result;
}

Result<std::optional<BmcGate::Start>> BmcGate::known(const std::string& key,
                                                     const std::string& intent) const {
  TRY(text, store_.getValue(key));
  const auto root = jsonOrNone(text.value_or(""), kKeptJson);
  if (!root.is_object() || root.value("intent", "") != intent) return std::optional<Start>();
  return std::optional(
      Start{intent, root.value("cursor", std::string()), root.value("unknown", std::string())});
}

Result<void> BmcGate::keep(const std::string& key, const Start& start) {
  return store_.putValue(
      key, jsonText(json{
               {"intent", start.intent}, {"cursor", start.cursor}, {"unknown", start.unknown}}));
}

std::optional<Again> BmcGate::again(const std::string& intent, const Error& why) {
  if (!why.canRetry() || ++tries_[intent] >= kTries) return std::nullopt;
  return Again{kTryAgain, "the BMC to answer: " + why.str()};
}

Async<std::optional<Again>> BmcGate::begin(NodeName node, std::string gate, std::string intent) {
  using Wait = std::optional<Again>;
  const auto key = keyOf(node, gate);
  CO_TRY(begun, known(key, intent));
  if (begun) co_return Wait();
  Start start{.intent = intent, .cursor = {}, .unknown = "this controller reads no BMC"};
  if (view_.event_log) {
    const auto log = co_await view_.event_log(node);
    if (!log) {
      if (const auto wait = again(intent, log.error())) co_return wait;
      start.unknown = log.error().str();
    } else {
      bmc::EventLogCursor cursor;
      cursor.take(*log, clock_.now());
      cursor.kept.clear();
      start.cursor = cursor.str(), start.unknown.clear();
    }
  }
  tries_.erase(intent);
  CO_TRY_OK(keep(key, start));
  co_return Wait();
}

Async<BmcGate::Answer> BmcGate::end(inventory::Node node, inventory::Gate gate,
                                    std::string intent) {
  Answer answer;
  json log_params = json::object();
  setOwnParams(gate, kBmcLogCheck, log_params);
  const bool warnings_fail = log_params.value("fail_on", std::string("critical")) != "critical";
  const auto supplies = ownNumber(gate, kBmcPowerCheck, "supplies");
  CO_TRY(begun, known(keyOf(node.name, gate.name), intent));
  if (!begun || !begun->unknown.empty()) {
    answer.results.push_back(
        unread(kBmcLogCheck, begun ? begun->unknown : "where its logs stood is not known"));
  } else {
    const auto log = co_await view_.event_log(node.name);
    if (!log) {
      if (auto wait = again(intent, log.error())) co_return Answer{std::move(wait), {}, {}};
      answer.results.push_back(unread(kBmcLogCheck, log.error().str()));
    } else {
      auto cursor = bmc::EventLogCursor::parse(begun->cursor);
      cursor.take(*log, clock_.now());
      answer.results.push_back(evaluateBmcLog(cursor.kept, warnings_fail));
      if (!warnings_fail)
        std::ranges::copy_if(cursor.kept, std::back_inserter(answer.warnings),
                             [](const auto& entry) { return entry.severity != kCritical; });
    }
  }
  if (!view_.power_supplies) {
    answer.results.push_back(unread(kBmcPowerCheck, "this controller reads no BMC"));
    co_return answer;
  }
  const auto seen = co_await view_.power_supplies(node.name);
  if (!seen) {
    if (auto wait = again(intent, seen.error())) co_return Answer{std::move(wait), {}, {}};
    answer.results.push_back(unread(kBmcPowerCheck, seen.error().str()));
  } else {
    answer.results.push_back(evaluatePowerSupplies(
        *seen, supplies ? std::optional(static_cast<std::size_t>(*supplies)) : std::nullopt));
  }
  co_return answer;
}

}  // namespace muster::validate
