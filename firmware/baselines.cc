// SPDX-License-Identifier: Apache-2.0
#include "firmware/baselines.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "bmc/roles.h"
#include "firmware/files.h"
#include "firmware/pending_images.h"
#include "lifecycle/model/facet_table.h"

#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/profile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <set>

namespace muster::firmware {
namespace {

constexpr std::string_view kPrefix = "firmware.";
constexpr std::chrono::seconds kLongestFlash{24 * 3600};
constexpr std::chrono::seconds kConfirmed{
    10};  ///< of a component that another action of its wave has installed

constexpr const char* kUpdateable = "updateable";

}  // namespace

std::string evidenceOf(const bmc::FirmwareItem& item) {
  return item.updateable == false ? jsonText(nlohmann::json{{kUpdateable, false}}) : std::string();
}

bool isFixed(const lifecycle::FactSet& facts, const lifecycle::Subject& subject,
             const std::string& component) {
  const auto* fact = facts.find(subject, facetOf(component));
  if (!fact || fact->evidence.empty()) return false;
  const auto evidence = jsonOrNone(fact->evidence, kKeptJson);
  return evidence.is_object() && evidence.value(kUpdateable, nlohmann::json(true)) == false;
}

std::string componentOf(const FacetName& facet) {
  const auto& name = facet.str();
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : std::string();
}

const inventory::FirmwareBaseline* baselineOf(const inventory::Cluster& cluster,
                                              const lifecycle::Subject& subject) {
  if (subject.isCluster()) return nullptr;
  const inventory::Node* node = cluster.findNode(subject.node());
  if (!node) return nullptr;
  const auto found = cluster.firmware.find(cluster.profileOf(*node).firmware);
  return found == cluster.firmware.end() ? nullptr : &found->second;
}

/// A driver's fact is "probe=version,probe=version".
Versions probesOf(const lifecycle::FactSet& facts, const lifecycle::Subject& subject) {
  Versions out;
  for (const auto& fact : facts.view(subject)) {
    if (lifecycle::stageOf(fact.facet) != lifecycle::Stage::Drivers) continue;
    for (std::size_t at = 0; at < fact.value.size();) {
      const auto end = std::min(fact.value.find(',', at), fact.value.size());
      const auto pair = fact.value.substr(at, end - at);
      if (const auto equals = pair.find('='); equals != std::string::npos)
        out[pair.substr(0, equals)] = pair.substr(equals + 1);
      at = end + 1;
    }
  }
  return out;
}

Versions runningBy(const lifecycle::FactSet& facts, const lifecycle::Subject& subject) {
  Versions out = probesOf(facts, subject);
  for (const auto& fact : facts.view(subject))
    if (const auto component = componentOf(fact.facet); !component.empty())
      out[component] = fact.value;
  return out;
}

Durations measuredBy(const lifecycle::FactSet& facts, const lifecycle::Subject& subject) {
  const auto prefix = tookFacet("").str();
  Durations out;
  for (const auto& fact : facts.view(subject)) {
    const auto& name = fact.facet.str();
    if (!name.starts_with(prefix)) continue;
    long long seconds = 0;
    const auto [end, error] =
        std::from_chars(fact.value.data(), fact.value.data() + fact.value.size(), seconds);
    if (error == std::errc() && end == fact.value.data() + fact.value.size() && seconds > 0 &&
        seconds < kLongestFlash.count())
      out[name.substr(prefix.size())] = std::chrono::seconds(seconds);
  }
  return out;
}

Durations typicalOf(const std::vector<Durations>& machines) {
  std::map<std::string, std::vector<std::chrono::seconds>> all;
  for (const auto& machine : machines)
    for (const auto& [name, took] : machine) all[name].push_back(took);
  Durations out;
  for (auto& [name, times] : all) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    out[name] = *middle;
  }
  return out;
}

std::chrono::minutes flashTime(const inventory::FirmwareComponent& component,
                               const Durations& measured) {
  if (component.minutes > 0) return std::chrono::minutes(component.minutes);
  const auto known = measured.find(component.name);
  return known == measured.end() ? rowOf(component.name).flash
                                 : std::chrono::ceil<std::chrono::minutes>(known->second);
}

std::chrono::minutes waveTime(const Wave& wave, const Durations& measured) {
  auto time = activationTime(wave.activation);
  for (const auto& step : wave.steps) time += flashTime(*step.component, measured);
  return time;
}

Totals totalsOf(const Schedule& schedule, const Durations& measured) {
  Totals totals;
  for (const auto& wave : schedule.waves) {
    totals.flashes += static_cast<int>(wave.steps.size());
    totals.resets +=
        wave.activation == Activation::BmcReset || wave.activation == Activation::PowerCycle;
    totals.ac_cycles += wave.activation == Activation::AcCycle;
    totals.time += waveTime(wave, measured);
  }
  return totals;
}

UpgradePath upgradePathOf(const inventory::FirmwareBaseline& baseline, const Versions& running,
                          Durations measured) {
  UpgradePath path;
  path.measured = std::move(measured);
  path.schedule = solve(baseline, running);
  std::map<std::string, std::chrono::seconds> expected;
  std::vector<std::string> moving;
  for (const auto& wave : path.schedule.waves) {
    for (const auto& step : wave.steps) {
      const auto& name = step.component->name;
      expected[name] += &step == &wave.steps.front()
                            ? std::chrono::seconds(waveTime(wave, path.measured))
                            : kConfirmed;
      std::erase(moving, name);  // its last step counts
      moving.push_back(name);
    }
  }
  auto add = [&](const std::string& name) {
    const auto* undone = path.schedule.undoneOf(name);
    const auto* component = baseline.find(name);
    const bool known = running.contains(name);
    if (component)
      path.steps.push_back(
          {component,
           known ? expected[name]
                 : std::chrono::seconds(flashTime(*component, path.measured) +
                                        activationTime(activationOf(*component))),
           undone && known && !component->file.empty() ? undone->why : std::string()});
  };
  for (const auto& name : baseline.order)
    if (std::find(moving.begin(), moving.end(), name) == moving.end()) add(name);
  for (const auto& name : moving) add(name);
  return path;
}

void leaveFailedUndone(Schedule& schedule, const Versions& running,
                       const lifecycle::Subject& subject, const lifecycle::FactSet& facts) {
  const auto pending = pendingImagesOf(facts, subject);
  const auto has_failed = [&](const UpdateStep& step) {
    auto why = whyNotAgain(*step.component, subject, facts, pending);
    if (why.empty()) return false;
    const auto& name = step.component->name;
    const auto found = running.find(name);
    if (!schedule.undoneOf(name))
      schedule.undone.push_back(
          {step.component, found == running.end() ? "" : found->second, std::move(why)});
    return true;
  };
  for (auto& wave : schedule.waves) std::erase_if(wave.steps, has_failed);
  std::erase_if(schedule.waves, [](const Wave& wave) { return wave.steps.empty(); });
}

}  // namespace muster::firmware
