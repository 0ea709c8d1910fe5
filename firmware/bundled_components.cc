// SPDX-License-Identifier: Apache-2.0
#include "firmware/bundled_components.h"

#include "inventory/model/firmware.h"
#include "inventory/model/in_band.h"

#include <algorithm>

namespace muster::firmware {

namespace {

/// The version that a component has in this file; "" when its baseline does not name the file.
std::string versionIn(const inventory::FirmwareComponent& component, const std::string& sha256) {
  if (component.sha256 == sha256) return component.version;
  const auto intermediate =
      std::find_if(component.intermediate.begin(), component.intermediate.end(),
                   [&](const inventory::FirmwareImageFile& each) { return each.sha256 == sha256; });
  return intermediate == component.intermediate.end() ? std::string() : intermediate->version;
}

const UpdateStep* firstStepOf(std::string_view component, const Schedule& schedule) {
  for (const auto& wave : schedule.waves)
    for (const auto& step : wave.steps)
      if (step.component->name == component) return &step;
  return nullptr;
}

}  // namespace

/// "": the file is that component's next step.
std::string BundledComponents::whyNotWith(const Target& other, const Schedule& schedule,
                                          const std::string& sha256) const {
  const auto* step = firstStepOf(other.component, schedule);
  if (step && step->image.sha256 == sha256) return {};
  if (step)
    return fmt::format(
        "its package also writes {} {}, which must run {} first; put {} before it in the "
        "baseline's order",
        other.component, other.version, step->to, other.component);
  const auto* undone = schedule.undoneOf(other.component);
  return fmt::format("its package also writes {} {}: {}", other.component, other.version,
                     undone ? undone->why : "it runs another version already");
}

Async<CoUpdated> BundledComponents::coUpdatedWith(Target first, Schedule schedule) {
  CoUpdated co_updated;
  CO_TRY(image, wave_.imageOf(first));
  if (inventory::isInBand(*wave_.baseline().find(first.component))) co_return co_updated;
  for (const auto& component : wave_.baseline().components) {
    const Target other{component.name, versionIn(component, image.sha256)};
    const bool came = std::find(wave_.progress().staged.begin(), wave_.progress().staged.end(),
                                other) != wave_.progress().staged.end();
    if (other.component == first.component || other.version.empty() ||
        inventory::isInBand(component) || came || wave_.runs(other))
      continue;
    CO_TRY(both, co_await wave_.bmc().sharesPackage(first.component, other.component));
    if (!both) continue;
    const auto* item = wave_.find(other.component);
    if (item && !item->unreadable.empty())
      co_return fail(ErrorCode::Unavailable,
                     fmt::format("{}, which the package of {} also writes, cannot be read now: {}",
                                 other.component, first.component, item->unreadable));
    co_updated.why_not = whyNotWith(other, schedule, image.sha256);
    if (!co_updated.why_not.empty()) co_return co_updated;
    co_updated.others.push_back(other);
  }
  if (!co_updated.others.empty()) co_updated.why_not = whyNotTogether(first, co_updated.others);
  co_return co_updated;
}

/// "": all of it may be written, and run together.
std::string BundledComponents::whyNotTogether(const Target& first,
                                              const std::vector<Target>& others) const {
  Versions versions = wave_.versions();
  const auto before = brokenConstraints(wave_.baseline(), versions);
  versions[first.component] = first.version;
  std::set<Activation> hows{activationOf(*wave_.baseline().find(first.component))};
  for (const auto& other : others)
    hows.insert(activationOf(*wave_.baseline().find(other.component)));
  if (hows.contains(Activation::BmcReset) && hows.contains(Activation::PowerCycle) &&
      !hows.contains(Activation::AcCycle))
    return fmt::format(
        "{} comes in the same package, and one needs a reset of the BMC, the other a power cycle; "
        "declare \"activation: ac-cycle\" for one of them, which does both",
        others.front().component);
  for (const auto& other : others) {
    versions[other.component] = other.version;
    if (auto again = whyNotAgain(*wave_.baseline().find(other.component), wave_.subject(),
                                 wave_.context().facts());
        !again.empty())
      return again;
  }
  for (const auto& broken : brokenConstraints(wave_.baseline(), versions))
    if (std::find(before.begin(), before.end(), broken) == before.end())
      return fmt::format(
          "its package brings all of it at once, which is forbidden here: {}; put what it needs "
          "first in the baseline's order",
          broken);
  return {};
}

}  // namespace muster::firmware
