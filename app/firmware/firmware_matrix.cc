// SPDX-License-Identifier: Apache-2.0
#include "app/firmware/firmware_matrix.h"

#include "firmware/baselines.h"
#include "firmware/files.h"
#include "firmware/pending_images.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/profile.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace muster::app {
namespace {

using inventory::FirmwareBaseline;

/// What becomes of each component of a baseline, in the order of its components.
std::vector<FirmwareCell> cellsOf(const std::string& profile, const FirmwareBaseline& baseline,
                                  const firmware::Versions& running,
                                  const lifecycle::Subject& subject,
                                  const lifecycle::FactSet& facts) {
  auto path = firmware::upgradePathOf(baseline, running);
  firmware::leaveFailedUndone(path.schedule, running, subject, facts);
  std::vector<FirmwareCell> out;
  for (std::size_t place = 0; place < baseline.order.size(); ++place) {
    const auto* component = baseline.find(baseline.order[place]);
    if (!component) continue;
    FirmwareCell cell{profile, baseline.name, component->name, place, component->version};
    if (const auto found = running.find(component->name); found != running.end())
      cell.found = found->second;
    std::vector<std::string> versions;
    for (const auto& wave : path.schedule.waves)
      for (const auto& step : wave.steps)
        if (step.component == component) versions.push_back(step.to);
    const auto* undone = path.schedule.undoneOf(component->name);
    if (undone) cell.why = undone->why;
    if (cell.found.empty())
      cell.state = FirmwareState::Unknown;
    else if (undone)
      cell.state = FirmwareState::Left;
    else
      cell.state = versions.empty() ? FirmwareState::AsDeclared : FirmwareState::ToUpdate;
    if (versions.size() > 1) cell.through.assign(versions.begin(), std::prev(versions.end()));
    out.push_back(std::move(cell));
  }
  return out;
}

std::map<std::string, std::string> stagedOn(const lifecycle::FactSet& facts,
                                            const lifecycle::Subject& subject) {
  std::map<std::string, std::string> out;
  for (const auto& image : firmware::pendingImagesOf(facts, subject).images)
    out[image.component] = image.version;
  return out;
}

}  // namespace

std::string_view wordOf(FirmwareState state) {
  switch (state) {
    case FirmwareState::AsDeclared:
      return "as-declared";
    case FirmwareState::ToUpdate:
      return "to-update";
    case FirmwareState::Left:
      return "left";
    case FirmwareState::Unknown:
      break;
  }
  return "unknown";
}

std::vector<FirmwareCell> firmwareMatrix(const inventory::Cluster& cluster,
                                         const lifecycle::FactSet& facts) {
  // Most nodes of a profile run the same: their way is computed once.
  std::map<std::pair<std::string, firmware::Versions>, std::vector<FirmwareCell>> ways;
  using Key = std::tuple<std::string, std::size_t, FirmwareState, std::string, std::string,
                         std::vector<std::string>, std::string>;
  std::map<Key, FirmwareCell> cells;
  for (const auto& node : cluster.nodes) {
    const lifecycle::Subject subject(node.name);
    const auto* baseline = firmware::baselineOf(cluster, subject);
    if (!baseline) continue;
    const auto running = firmware::runningBy(facts, subject);
    std::vector<FirmwareCell> own;  // of a node on which something has failed
    const bool has_failed = !firmware::failedFacets(facts, subject).empty();
    auto& way = has_failed ? own : ways[{node.profile, running}];
    if (way.empty()) way = cellsOf(node.profile, *baseline, running, subject, facts);
    const auto staged = stagedOn(facts, subject);
    for (const auto& one : way) {
      const auto on_it = staged.find(one.component);
      const auto version = on_it == staged.end() ? std::string() : on_it->second;
      const Key key{one.profile, one.place, one.state, one.found, version, one.through, one.why};
      auto& cell = cells.try_emplace(key, one).first->second;
      cell.staged = version;
      cell.nodes.push_back(node.name.str());
    }
  }
  std::vector<FirmwareCell> out;
  for (auto& [key, cell] : cells) out.push_back(std::move(cell));
  std::ranges::stable_sort(out, [](const FirmwareCell& a, const FirmwareCell& b) {
    const auto weight = [](const FirmwareCell& cell) {
      return std::tuple(cell.profile, cell.place, cell.state == FirmwareState::AsDeclared);
    };
    return weight(a) < weight(b);
  });
  return out;
}

}  // namespace muster::app
