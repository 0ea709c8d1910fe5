// SPDX-License-Identifier: Apache-2.0
#include "cli/view/firmware_view.h"

#include "firmware/baselines.h"
#include "inventory/parse/hostlist.h"

#include <algorithm>
#include <map>

namespace muster::cli {
namespace {

std::string counted(int count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string summary(const app::NodeUpgrade& node) {
  return fmt::format("{}, {}, {}, about {} min", counted(node.flashes, "flash", "flashes"),
                     counted(node.resets, "reset", "resets"),
                     counted(node.ac_cycles, "AC cycle", "AC cycles"), node.minutes);
}

std::size_t nameWidthOf(const app::NodeUpgrade& node) {
  std::size_t out = 9;
  for (const auto& wave : node.waves)
    for (const auto& step : wave.steps) out = std::max(out, step.component.size());
  for (const auto& undone : node.undone) out = std::max(out, undone.component.size());
  return out;
}

std::string bodyOf(const app::NodeUpgrade& node) {
  std::string out = fmt::format("baseline {}: {}\n", node.baseline,
                                node.waves.empty()
                                    ? (node.undone.empty() ? "reached" : "nothing that can be done")
                                    : summary(node));
  const auto name_width = nameWidthOf(node);
  int number = 0;
  for (const auto& wave : node.waves) {
    ++number;
    for (const auto& step : wave.steps) {
      const bool first = &step == &wave.steps.front();
      out += fmt::format("  {:>2}  {:<{}}  {} → {}", first ? std::to_string(number) : "",
                         step.component, name_width, step.from, step.to);
      if (first)
        out += fmt::format(
            "   then {}, {} min",
            wave.activation == toString(firmware::Activation::None) ? "nothing" : wave.activation,
            wave.minutes);
      out += "\n";
    }
  }
  for (const auto& undone : node.undone)
    out +=
        fmt::format("   -  {:<{}}  {} stays, {} is wanted: {}\n", undone.component, name_width,
                    undone.running.empty() ? "unknown" : undone.running, undone.wanted, undone.why);
  for (const auto& broken : node.forbidden_now)
    out += fmt::format("   !  runs a forbidden combination now: {}\n", broken);
  return out;
}

}  // namespace

std::string firmwareText(const std::vector<app::NodeUpgrade>& nodes) {
  std::vector<std::string> bodies;
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& node : nodes) {
    auto body = bodyOf(node);
    auto& group = names[body];
    if (group.empty()) bodies.push_back(body);
    group.push_back(node.node.str());
  }
  std::string out;
  for (const auto& body : bodies) out += inventory::foldHostlist(names[body]) + "  " + body;
  return out;
}

nlohmann::json firmwareJson(const std::vector<app::NodeUpgrade>& nodes) {
  auto out = nlohmann::json::array();
  for (const auto& node : nodes) out.push_back(toJson(node));
  return out;
}

}  // namespace muster::cli
