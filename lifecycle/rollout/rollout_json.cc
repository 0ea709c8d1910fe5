// SPDX-License-Identifier: Apache-2.0
// Rollouts as JSON. What is read was written by muster: a value of the wrong kind is damage, found
// by the parser's exceptions, which stop here.
#include "base/json_input.h"
#include "base/json_output.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/drivers.h"
#include "inventory/model/gates.h"
#include "inventory/model/node.h"
#include "inventory/model/profile.h"
#include "inventory/model/rollout_policy.h"
#include "lifecycle/rollout/rollout.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace muster::lifecycle {
namespace {

using inventory::Ceiling;
using nlohmann::json;

constexpr std::array kRolloutStates = std::to_array<std::pair<RolloutState, std::string_view>>({
    {RolloutState::Running, "running"},
    {RolloutState::Paused, "paused"},
    {RolloutState::Halted, "halted"},
    {RolloutState::Aborted, "aborted"},
    {RolloutState::Done, "done"},
    {RolloutState::RolledBack, "rolled-back"},
});
constexpr std::array kDirections = std::to_array<std::pair<RolloutDirection, std::string_view>>({
    {RolloutDirection::Forward, "forward"},
    {RolloutDirection::Back, "back"},
});
constexpr std::array kNodeStates = std::to_array<std::pair<RolloutNodeState, std::string_view>>({
    {RolloutNodeState::Waiting, "waiting"},
    {RolloutNodeState::Untouched, "untouched"},
    {RolloutNodeState::Skipped, "skipped"},
    {RolloutNodeState::Started, "started"},
    {RolloutNodeState::Done, "done"},
    {RolloutNodeState::Failed, "failed"},
    {RolloutNodeState::Returning, "returning"},
    {RolloutNodeState::Returned, "returned"},
    {RolloutNodeState::RollbackFailed, "rollback-failed"},
    {RolloutNodeState::RollbackFailed, "stuck"},  // as older musters wrote it
});
constexpr std::array kVerdicts = std::to_array<std::pair<RegressionVerdict, std::string_view>>({
    {RegressionVerdict::Holds, "holds"},
    {RegressionVerdict::Slower, "slower"},
    {RegressionVerdict::Inconclusive, "inconclusive"},
    {RegressionVerdict::Inconclusive, "unclear"},  // as older musters wrote it
});

template <class Table, class Value>
std::string_view word(const Table& table, Value value) {
  return std::find_if(table.begin(), table.end(),
                      [value](const auto& row) { return row.first == value; })
      ->second;
}
template <class Table>
auto valueOf(const Table& table, const json& word) {
  const auto text = word.get<std::string>();
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const auto& r) { return r.second == text; });
  if (row == table.end()) throw json::other_error::create(501, "unknown word " + text, &word);
  return row->first;
}

json write(const Ceiling& ceiling) {
  json out = json::object();
  if (ceiling.nodes) out["nodes"] = *ceiling.nodes;
  if (ceiling.percent) out["percent"] = *ceiling.percent;
  return out;
}
Ceiling ceilingFrom(const json& source) {
  Ceiling out;
  if (source.contains("nodes")) out.nodes = source["nodes"].get<int>();
  if (source.contains("percent")) out.percent = source["percent"].get<int>();
  return out;
}

json write(const inventory::RolloutPolicy& policy) {
  json canary = {{"nodes", policy.canary.nodes}};
  if (policy.canary.racks) canary = {{"racks", *policy.canary.racks}};
  const auto& most = policy.max_unavailable;
  const auto& slower = policy.regression;
  return {{"canary", canary},
          {"waves", policy.waves},
          {"max_unavailable",
           {{"pool", write(most.pool)},
            {"rack", write(most.rack)},
            {"su", write(most.su)},
            {"leaf", write(most.leaf)}}},
          {"max_failed_percent", policy.max_failed_percent},
          {"regression",
           {{"tolerated_percent", slower.tolerated_percent},
            {"tolerated_slower_percent", slower.tolerated_slower_percent},
            {"confidence_percent", slower.confidence_percent},
            {"when_unclear",
             slower.on_inconclusive == inventory::OnInconclusive::Halt ? "halt" : "go-on"}}},
          {"on_failure", policy.on_failure == inventory::OnFailure::Halt ? "halt" : "roll-back"},
          {"soak_minutes", policy.soak_minutes}};
}

inventory::RolloutPolicy policyFrom(const json& source) {
  inventory::RolloutPolicy policy;
  const auto& canary = source.at("canary");
  if (canary.contains("nodes")) policy.canary.nodes = canary["nodes"].get<int>();
  if (canary.contains("racks")) policy.canary.racks = canary["racks"].get<int>();
  policy.waves = source.at("waves").get<std::vector<int>>();
  const auto& most = source.at("max_unavailable");
  policy.max_unavailable = {ceilingFrom(most.at("pool")), ceilingFrom(most.at("rack")),
                            ceilingFrom(most.at("su")), ceilingFrom(most.at("leaf"))};
  policy.max_failed_percent = source.at("max_failed_percent").get<int>();
  const auto& slower = source.at("regression");
  policy.regression.tolerated_percent = slower.at("tolerated_percent").get<int>();
  policy.regression.tolerated_slower_percent = slower.at("tolerated_slower_percent").get<int>();
  policy.regression.confidence_percent = slower.at("confidence_percent").get<int>();
  policy.regression.on_inconclusive = slower.at("when_unclear") == "halt"
                                          ? inventory::OnInconclusive::Halt
                                          : inventory::OnInconclusive::Continue;
  policy.on_failure = source.at("on_failure") == "halt" ? inventory::OnFailure::Halt
                                                        : inventory::OnFailure::RollBack;
  policy.soak_minutes = source.value("soak_minutes", 0);  // not in those of older controllers
  return policy;
}

json write(const Wave& wave) {
  json nodes = json::array();
  for (const auto& node : wave.nodes) nodes.push_back(node.str());
  return {{"name", wave.name}, {"nodes", std::move(nodes)}};
}

GateReport gateFrom(const json& source) {
  GateReport gate;
  gate.wave = source.at("wave").get<std::string>();
  gate.passed = source.at("passed").get<bool>();
  gate.accepted_by = source.at("accepted_by").get<std::string>();
  gate.attempted = source.at("attempted").get<int>();
  gate.failed = source.at("failed").get<int>();
  gate.reasons = source.at("reasons").get<std::vector<std::string>>();
  gate.blames_change = source.value("speaks_against", false);
  gate.notes = source.at("notes").get<std::vector<std::string>>();
  for (const auto& one : source.at("comparisons")) {
    Comparison c;
    c.measure = one.at("measure").get<std::string>();
    c.nodes = one.at("nodes").get<std::size_t>();
    c.verdict = valueOf(kVerdicts, one.at("verdict"));
    c.mean_loss_percent = one.at("mean_loss_percent").get<double>();
    c.least_loss_percent = one.value("least_loss_percent", 0.0);
    c.most_loss_percent = one.value("most_loss_percent", 0.0);
    c.tolerated_percent = one.at("tolerated_percent").get<double>();
    c.confidence_percent = one.at("confidence_percent").get<int>();
    c.worst_node = one.at("worst_node").get<std::string>();
    c.worst_loss_percent = one.at("worst_loss_percent").get<double>();
    gate.comparisons.push_back(std::move(c));
  }
  return gate;
}

WallTime timeFrom(const json& source) {
  return WallTime(std::chrono::milliseconds(source.get<std::int64_t>()));
}

/// Runs `read` on the parsed text; what the parser throws becomes Corrupt.
template <class Read>
auto parsed(std::string_view what, std::string_view text, Read read)
    -> Result<decltype(read(json()))> {
  try {
    const auto source = parseJson(text, kKeptJson);
    if (!source)
      return fail(ErrorCode::Corrupt, fmt::format("the store's record of {} cannot be read: {}",
                                                  what, source.error().text()));
    return read(*source);
  } catch (const json::exception& damaged) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the store's record of {} cannot be read: {}", what, damaged.what()));
  }
}

}  // namespace

std::string_view toString(RolloutState state) { return word(kRolloutStates, state); }
std::string_view toString(RolloutDirection direction) { return word(kDirections, direction); }
std::string_view toString(RolloutNodeState state) { return word(kNodeStates, state); }

json toJson(const GateReport& gate) {
  json comparisons = json::array();
  for (const auto& comparison : gate.comparisons) comparisons.push_back(toJson(comparison));
  return {{"wave", gate.wave},
          {"passed", gate.passed},
          {"accepted_by", gate.accepted_by},
          {"attempted", gate.attempted},
          {"failed", gate.failed},
          {"reasons", gate.reasons},
          {"speaks_against", gate.blames_change},
          {"notes", gate.notes},
          {"comparisons", std::move(comparisons)}};
}

json toJson(const Rollout& r) {
  json waves = json::array(), gates = json::array();
  for (const auto& wave : r.waves) waves.push_back(write(wave));
  for (const auto& gate : r.gates) gates.push_back(toJson(gate));
  json out = {{"id", r.id},
              {"at", r.at.time_since_epoch().count()},
              {"user", r.user},
              {"host", r.host},
              {"command", r.command},
              {"change_file", r.change_file},
              {"change_text", r.change_text},
              {"policy", write(r.policy)},
              {"wipe_reason", r.wipe_reason},
              {"inventory_digest", r.inventory_digest},
              {"plan_hash", r.plan_hash},
              {"declared", r.declared},
              {"waves", std::move(waves)},
              {"irreversible", r.irreversible},
              {"state", toString(r.state)},
              {"way", toString(r.direction)},
              {"wave", r.wave},
              {"accepted_by", r.accepted_by},
              {"epoch", r.epoch},
              {"reasons", r.reasons},
              {"gates", std::move(gates)}};
  if (r.soak_until) out["soak_until"] = r.soak_until->time_since_epoch().count();
  return out;
}

Result<Rollout> rolloutFromJson(std::string_view text) {
  return parsed("a rollout", text, [](const json& source) {
    Rollout r;
    r.id = source.at("id").get<std::string>();
    r.at = timeFrom(source.at("at"));
    r.user = source.at("user").get<std::string>();
    r.host = source.at("host").get<std::string>();
    r.command = source.at("command").get<std::string>();
    r.change_file = source.at("change_file").get<std::string>();
    r.change_text = source.at("change_text").get<std::string>();
    r.policy = policyFrom(source.at("policy"));
    r.wipe_reason = source.at("wipe_reason").get<std::string>();
    r.inventory_digest = source.at("inventory_digest").get<std::string>();
    r.plan_hash = source.at("plan_hash").get<std::string>();
    r.declared = source.at("declared").get<std::map<std::string, std::string>>();
    for (const auto& wave : source.at("waves")) {
      Wave next{wave.at("name").get<std::string>(), {}};
      for (const auto& node : wave.at("nodes")) next.nodes.emplace_back(node.get<std::string>());
      r.waves.push_back(std::move(next));
    }
    r.irreversible = source.at("irreversible").get<std::vector<std::string>>();
    r.state = valueOf(kRolloutStates, source.at("state"));
    r.direction = valueOf(kDirections, source.at("way"));
    r.wave = source.at("wave").get<std::size_t>();
    r.accepted_by = source.at("accepted_by").get<std::string>();
    if (source.contains("soak_until")) r.soak_until = timeFrom(source["soak_until"]);
    r.epoch = source.at("epoch").get<std::int64_t>();
    r.reasons = source.at("reasons").get<std::vector<std::string>>();
    for (const auto& gate : source.at("gates")) r.gates.push_back(gateFrom(gate));
    return r;
  });
}

json toJson(const FrozenNode& node) {
  json actions = json::array();
  for (const auto& action : node.actions)
    actions.push_back(
        {{"id", action.id}, {"to", action.to}, {"disruption", toString(action.disruption)}});
  return {{"actions", std::move(actions)}, {"before", node.before}};
}

Result<std::map<NodeName, FrozenNode>> frozenFromJson(std::string_view text) {
  return parsed("a frozen plan", text, [](const json& source) {
    std::map<NodeName, FrozenNode> out;
    for (const auto& [name, node] : source.items()) {
      auto& frozen = out[NodeName(name)];
      frozen.before = node.at("before").template get<Measures>();
      for (const auto& action : node.at("actions"))
        frozen.actions.push_back(
            {action.at("id").template get<std::string>(),
             action.at("to").template get<std::string>(),
             parseDisruption(action.at("disruption").template get<std::string>())
                 .value_or(Disruption::None)});
    }
    return out;
  });
}

json toJson(const NodeProgress& progress) {
  json out = {{"state", toString(progress.state)}};
  if (!progress.why.empty()) out["why"] = progress.why;
  if (progress.started_at != WallTime{})
    out["started_at"] = progress.started_at.time_since_epoch().count();
  if (!progress.after.empty()) out["after"] = progress.after;
  return out;
}

Result<std::map<NodeName, NodeProgress>> progressFromJson(std::string_view text) {
  return parsed("a rollout's progress", text, [](const json& source) {
    std::map<NodeName, NodeProgress> out;
    for (const auto& [name, node] : source.at("nodes").items()) {
      NodeProgress progress;
      progress.state = valueOf(kNodeStates, node.at("state"));
      progress.why = node.value("why", "");
      if (node.contains("started_at")) progress.started_at = timeFrom(node["started_at"]);
      if (node.contains("after")) progress.after = node["after"].template get<Measures>();
      out.emplace(NodeName(name), std::move(progress));
    }
    return out;
  });
}

std::string declarationOf(const inventory::Profile& profile) {
  return jsonText(
      json{{"image", profile.image}, {"drivers", profile.drivers}, {"firmware", profile.firmware}});
}

bool isChanged(const Rollout& rollout, RolloutNodeState state) {
  switch (state) {
    case RolloutNodeState::Started:
    case RolloutNodeState::Done:
    case RolloutNodeState::Failed:
      return true;
    case RolloutNodeState::Untouched:
      return rollout.direction ==
             RolloutDirection::Forward;  // it was so before the rollout, and after its end
    case RolloutNodeState::Waiting:
    case RolloutNodeState::Skipped:
    case RolloutNodeState::Returning:
    case RolloutNodeState::Returned:
    case RolloutNodeState::RollbackFailed:
      break;
  }
  return false;
}

}  // namespace muster::lifecycle
