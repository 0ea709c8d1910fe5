// SPDX-License-Identifier: Apache-2.0
#include "cli/view/rollout_view.h"

#include "base/json_output.h"
#include "inventory/model/gates.h"
#include "inventory/model/node.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/rollout/gate.h"

#include <nlohmann/json.hpp>

#include <array>

namespace muster::cli {
namespace {

using app::RolloutStatus;
using lifecycle::RolloutNodeState;
using lifecycle::RolloutRecord;

constexpr std::size_t kMaxNodesExplained = 20;
constexpr std::array kStates{
    RolloutNodeState::Waiting,   RolloutNodeState::Started,  RolloutNodeState::Done,
    RolloutNodeState::Failed,    RolloutNodeState::Skipped,  RolloutNodeState::Untouched,
    RolloutNodeState::Returning, RolloutNodeState::Returned, RolloutNodeState::RollbackFailed};

std::string fold(const std::vector<NodeName>& nodes) {
  std::vector<std::string> names;
  for (const auto& node : nodes) names.push_back(node.str());
  return inventory::foldHostlist(std::move(names));
}

std::vector<NodeName> inState(const RolloutStatus& status, RolloutNodeState state) {
  std::vector<NodeName> out;
  for (const auto& [node, progress] : status.progress)
    if (progress.state == state) out.push_back(node);
  return out;
}

std::string explained(const RolloutStatus& status, RolloutNodeState state) {
  std::string out;
  const auto nodes = inState(status, state);
  for (std::size_t i = 0; i < nodes.size() && i < kMaxNodesExplained; ++i)
    if (const auto& why = status.progress.at(nodes[i]).why; !why.empty())
      out += fmt::format("    {}: {}\n", nodes[i].str(), why);
  if (nodes.size() > kMaxNodesExplained)
    out += fmt::format("    … and {} more\n", nodes.size() - kMaxNodesExplained);
  return out;
}

std::string wavesText(const RolloutStatus& status) {
  const auto& rollout = status.rollout;
  std::string out;
  for (std::size_t i = 0; i < rollout.waves.size(); ++i) {
    std::size_t done = 0;
    for (const auto& node : rollout.waves[i].nodes) {
      const auto its = status.progress.find(node);
      done += its != status.progress.end() && its->second.state == RolloutNodeState::Done;
    }
    out += fmt::format("  {} {:<10} {:>6} nodes, {:>6} done   {}\n",
                       i == rollout.wave && rollout.isOpen() ? ">" : " ", rollout.waves[i].name,
                       rollout.waves[i].nodes.size(), done, fold(rollout.waves[i].nodes));
  }
  return out;
}

}  // namespace

std::string frozenText(const RolloutRecord& book) {
  const auto status = app::statusOf(book);
  const auto& rollout = status.rollout;
  std::string out = fmt::format("rollout {}, plan {}\n{}", rollout.id,
                                rollout.plan_hash.substr(0, 12), wavesText(status));
  if (const auto untouched = inState(status, RolloutNodeState::Untouched); !untouched.empty())
    out += fmt::format("  nothing to do on {}\n", fold(untouched));
  if (const auto skipped = inState(status, RolloutNodeState::Skipped); !skipped.empty())
    out += fmt::format("  left out: {}\n{}", fold(skipped),
                       explained(status, RolloutNodeState::Skipped));
  for (const auto& text : rollout.irreversible)
    out += "  a rollback cannot undo all: " + text + "\n";
  return out;
}

std::string touchedText(const RolloutRecord& book) {
  std::map<std::string, std::vector<NodeName>> by_action;
  for (const auto& wave : book.rollout().waves)
    for (const auto& node : wave.nodes)
      if (const auto* frozen = book.frozen(node))
        for (const auto& action : frozen->actions)
          by_action[fmt::format("{:<7} {} → {}", toString(action.disruption),
                                action.id.substr(action.id.find('/') + 1), action.to)]
              .push_back(node);
  std::string out = "  what would be done:\n";
  for (const auto& [what, nodes] : by_action)
    out += fmt::format("    {}   {} nodes: {}\n", what, nodes.size(), fold(nodes));
  return out;
}

std::string rolloutText(const RolloutStatus& status) {
  const auto& rollout = status.rollout;
  const auto& order = status.order;
  std::string out =
      fmt::format("rollout {}: {}{}\n", rollout.id, toString(rollout.state),
                  rollout.direction == lifecycle::RolloutDirection::Back && rollout.isOpen()
                      ? ", on its way back"
                      : "");
  out += fmt::format("  asked for by {}@{} at {}: {}\n", rollout.user, rollout.host,
                     toString(rollout.at), rollout.command);
  if (order.order != lifecycle::Order::None && rollout.state == lifecycle::RolloutState::Running)
    out += fmt::format("  told to {} by {}\n", toString(order.order), order.by);
  for (const auto& reason : rollout.reasons) out += "  " + reason + "\n";
  if (rollout.soak_until && rollout.isOpen())
    out += fmt::format("  wave '{}' is watched until {}\n", rollout.waves[rollout.wave].name,
                       muster::toString(*rollout.soak_until));
  out += wavesText(status);
  for (const auto state : kStates) {
    const auto nodes = inState(status, state);
    if (!nodes.empty())
      out += fmt::format("  {:<10}{:>6}  {}\n{}", toString(state), nodes.size(), fold(nodes),
                         explained(status, state));
  }
  for (const auto& gate : rollout.gates) out += lifecycle::textOf(gate) + "\n";
  return out;
}

std::string rolloutJson(const RolloutStatus& status) {
  auto out = lifecycle::toJson(status.rollout);
  out["at"] = toString(status.rollout.at);
  out["order"] = {{"order", toString(status.order.order)}, {"by", status.order.by}};
  out["nodes"] = nlohmann::json::object();
  for (const auto& [node, progress] : status.progress)
    out["nodes"][node.str()] = lifecycle::toJson(progress);
  out["counts"] = nlohmann::json::object();
  for (const auto state : kStates)
    out["counts"][std::string(toString(state))] = status.count(state);
  return jsonText(out, 2) + "\n";
}

}  // namespace muster::cli
