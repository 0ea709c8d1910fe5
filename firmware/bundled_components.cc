// SPDX-License-Identifier: Apache-2.0
// One package for several components of a tray: it goes there once, and is written into all of
// them, those of later waves too.
#include "firmware/installation.h"
#include "inventory/model/in_band.h"

#include <algorithm>

namespace muster::firmware {

using lifecycle::Blocked;
using lifecycle::Outcome;

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
std::string Installation::whyNotWith(const Target& other, const Schedule& schedule,
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

/// What else is written when this image is sent.
Async<Installation::CoUpdated> Installation::coUpdatedWith(Target first, Schedule schedule) {
  CoUpdated co_updated;
  CO_TRY(image, imageOf(first));
  if (inventory::isInBand(*baseline_.find(first.component))) co_return co_updated;
  for (const auto& component : baseline_.components) {
    const Target other{component.name, versionIn(component, image.sha256)};
    const bool came = std::find(progress_.staged.begin(), progress_.staged.end(), other) !=
                      progress_.staged.end();
    if (other.component == first.component || other.version.empty() ||
        inventory::isInBand(component) || came || runs(other))
      continue;
    CO_TRY(both, co_await bmc_.sharesPackage(first.component, other.component));
    if (!both) continue;
    const auto item =
        std::find_if(items_.begin(), items_.end(),
                     [&](const bmc::FirmwareItem& each) { return each.name == other.component; });
    if (item != items_.end() && !item->unreadable.empty())
      co_return fail(ErrorCode::Unavailable,
                     fmt::format("{}, which the package of {} also writes, cannot be read now: {}",
                                 other.component, first.component, item->unreadable));
    co_updated.why_not = whyNotWith(other, schedule, image.sha256);
    if (!co_updated.why_not.empty()) co_return co_updated;
    co_updated.others.push_back(other);
  }
  co_return co_updated;
}

/// "": all of it may be written, and run together.
std::string Installation::whyNotCoUpdated(const Target& first,
                                          const std::vector<Target>& others) const {
  Versions versions = probesOf(context_.facts(), action_.facet.subject);
  for (const auto& item : items_)
    if (item.unreadable.empty() && !item.version.empty()) versions[item.name] = item.version;
  const auto before = brokenConstraints(baseline_, versions);
  versions[first.component] = first.version;
  std::set<Activation> hows{activationOf(*baseline_.find(first.component))};
  for (const auto& other : others) hows.insert(activationOf(*baseline_.find(other.component)));
  if (hows.contains(Activation::BmcReset) && hows.contains(Activation::PowerCycle) &&
      !hows.contains(Activation::AcCycle))
    return fmt::format(
        "{} comes in the same package, and one needs a reset of the BMC, the other a power cycle; "
        "declare \"activation: ac-cycle\" for one of them, which does both",
        others.front().component);
  for (const auto& other : others) {
    versions[other.component] = other.version;
    if (auto again =
            whyNotAgain(*baseline_.find(other.component), action_.facet.subject, context_.facts());
        !again.empty())
      return again;
  }
  for (const auto& broken : brokenConstraints(baseline_, versions))
    if (std::find(before.begin(), before.end(), broken) == before.end())
      return fmt::format(
          "its package brings all of it at once, which is forbidden here: {}; put what it needs "
          "first in the baseline's order",
          broken);
  return {};
}

Async<Outcome> Installation::begin(Target next, Schedule schedule) {
  CO_TRY(co_updated, co_await coUpdatedWith(next, std::move(schedule)));
  const auto& others = co_updated.others;
  const auto why = !co_updated.why_not.empty() || others.empty() ? co_updated.why_not
                                                                 : whyNotCoUpdated(next, others);
  if (!why.empty()) {
    const auto text = fmt::format("{} {} is not sent: {}", next.component, next.version, why);
    if (progress_.staged.empty()) co_return Blocked{text};
    auto before_it = activate();  // what is staged may be what it needs
    co_return co_await std::move(before_it);
  }
  progress_.current = next == Target{component_.name, component_.version} ? Target{} : next;
  progress_.with = std::move(co_updated.others);
  progress_.uploads_tried = 0;
  co_return co_await look();
}

/// The current image, and what came with it, may be on the machine.
void Installation::stageCurrent() {
  progress_.staged.push_back(target());
  progress_.staged.insert(progress_.staged.end(), progress_.with.begin(), progress_.with.end());
  progress_.current = {};
  progress_.with.clear();
}

}  // namespace muster::firmware
