// SPDX-License-Identifier: Apache-2.0
#include "cli/view/firmware_view.h"

#include "inventory/model/firmware.h"
#include "inventory/model/node.h"
#include "inventory/parse/hostlist.h"

#include <algorithm>
#include <map>

namespace muster::cli {
namespace {

std::string counted(int count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string summary(const firmware::Totals& totals) {
  return fmt::format("{}, {}, {}, about {} min", counted(totals.flashes, "flash", "flashes"),
                     counted(totals.resets, "reset", "resets"),
                     counted(totals.ac_cycles, "AC cycle", "AC cycles"), totals.time.count());
}

std::string bodyOf(const app::NodeUpgrade& node) {
  const auto& schedule = node.path.schedule;
  const auto totals = firmware::totalsOf(schedule, node.path.measured);
  std::string out = fmt::format(
      "baseline {}: {}\n", node.baseline->name,
      schedule.waves.empty() ? (schedule.undone.empty() ? "reached" : "nothing that can be done")
                             : summary(totals));
  std::size_t name_width = 9;
  for (const auto& component : node.baseline->components)
    name_width = std::max(name_width, component.name.size());
  int number = 0;
  for (const auto& wave : schedule.waves) {
    ++number;
    for (const auto& step : wave.steps) {
      const bool first = &step == &wave.steps.front();
      out += fmt::format("  {:>2}  {:<{}}  {} → {}", first ? std::to_string(number) : "",
                         step.component->name, name_width, step.from, step.to);
      if (first)
        out += fmt::format(
            "   then {}, {} min",
            wave.activation == firmware::Activation::None ? "nothing" : toString(wave.activation),
            firmware::waveTime(wave, node.path.measured).count());
      out += "\n";
    }
  }
  for (const auto& undone : schedule.undone)
    out += fmt::format("   -  {:<{}}  {} stays, {} is wanted: {}\n", undone.component->name,
                       name_width, undone.running.empty() ? "unknown" : undone.running,
                       undone.component->version, undone.why);
  for (const auto& broken : firmware::brokenConstraints(*node.baseline, node.running))
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
  for (const auto& node : nodes) {
    const auto totals = firmware::totalsOf(node.path.schedule, node.path.measured);
    nlohmann::json entry = {
        {"node", node.node.str()},
        {"baseline", node.baseline->name},
        {"flashes", totals.flashes},
        {"resets", totals.resets},
        {"ac_cycles", totals.ac_cycles},
        {"minutes", totals.time.count()},
        {"waves", nlohmann::json::array()},
        {"undone", nlohmann::json::array()},
        {"forbidden_now", firmware::brokenConstraints(*node.baseline, node.running)}};
    for (const auto& wave : node.path.schedule.waves) {
      nlohmann::json steps = nlohmann::json::array();
      for (const auto& step : wave.steps)
        steps.push_back(
            {{"component", step.component->name}, {"from", step.from}, {"to", step.to}});
      entry["waves"].push_back({{"activation", toString(wave.activation)},
                                {"minutes", firmware::waveTime(wave, node.path.measured).count()},
                                {"steps", std::move(steps)}});
    }
    for (const auto& undone : node.path.schedule.undone)
      entry["undone"].push_back({{"component", undone.component->name},
                                 {"running", undone.running},
                                 {"wanted", undone.component->version},
                                 {"why", undone.why}});
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace muster::cli
