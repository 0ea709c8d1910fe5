// SPDX-License-Identifier: Apache-2.0
#include "firmware/pending_images.h"

#include "bmc/staged_images.h"
#include "firmware/in_band.h"
#include "lifecycle/model/orphaned_operation.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view kTakeBack = "firmware-left.", kLeft = "left.firmware.";
constexpr auto kTakeBackTime = 1min, kTakeBackLimit = 30min;

bool holds(const std::vector<Target>& images, const Target& image) {
  return std::find(images.begin(), images.end(), image) != images.end();
}

/// What was true after an earlier one says nothing of this.
std::string takenBackSince(WallTime at) {
  return fmt::format("{}, since {}", lifecycle::kNoOrphanedOperation, muster::toString(at));
}

std::vector<Target> imagesOf(const Progress& way) {
  auto images = way.staged;
  if (way.isWriting()) images.push_back(way.current);
  if (way.isWriting()) images.insert(images.end(), way.with.begin(), way.with.end());
  return images;
}

/// As they would have become facts, had its process lived.
std::vector<Failure> failuresOf(const Progress& way) {
  std::vector<Failure> out;
  if (!way.failed) return out;
  if (way.failed->written) out.push_back(*way.failed);
  if (way.step == Step::Over)
    for (const auto& image : way.staged) out.push_back({image, way.failed->why, true});
  return out;
}

}  // namespace

std::string takenBackOf(const FacetName& facet) {
  return facet.str().starts_with(kTakeBack) ? facet.str().substr(kTakeBack.size()) : std::string();
}

bool tellsOfLeft(const FacetName& facet) { return facet.str().starts_with(kLeft); }

Left leftOn(const lifecycle::FactSet& facts, const lifecycle::Subject& subject, WallTime before) {
  Left left;
  std::vector<std::pair<WallTime, Progress>> ways;
  for (const auto& fact : facts.view(subject)) {
    if (!tellsOfLeft(fact.facet) || fact.value == lifecycle::kNoOrphanedOperation ||
        fact.observed_at >= before)
      continue;
    const auto bar = fact.value.find('|');
    if (bar == std::string::npos) continue;
    left.facets.push_back(fact.facet);
    auto progress = Progress::parse(fact.value.substr(bar + 1));
    if (!progress) continue;
    if (progress->isWriting() && progress->current.empty())
      progress->current = {fact.facet.str().substr(kLeft.size()), fact.value.substr(0, bar)};
    if (progress->step != Step::Over) left.at = std::max(left.at, fact.observed_at);
    ways.emplace_back(fact.observed_at, std::move(*progress));
  }
  if (ways.empty()) return left;
  std::ranges::stable_sort(ways, {}, &std::pair<WallTime, Progress>::first);
  const auto running = runningBy(facts, subject);
  auto runs = [&running](const Target& image) {
    const auto now = running.find(image.component);
    return now != running.end() && lifecycle::matches(image.version, now->second);
  };
  for (auto& [at, way] : ways) {
    for (auto& failure : failuresOf(way))
      if (!runs(failure.target)) left.failed.push_back(std::move(failure));
    if (way.step == Step::Over) continue;  // nothing of it is gone on with
    for (auto& image : imagesOf(way)) {
      const bool gone = runs(image) || facts.value(subject, takeBackFacet(image.component)) ==
                                           takenBackSince(left.at);
      if (!gone && !holds(left.images, image)) left.images.push_back(std::move(image));
    }
    left.ways.push_back(std::move(way));
  }
  return left;
}

bool isWanted(const inventory::FirmwareBaseline& baseline, const Target& image) {
  const auto* component = baseline.find(image.component);
  return component && !component->file.empty() && component->version == image.version;
}

Progress takeOver(const Left& left) {
  if (left.images.empty()) return {};
  auto tellsOfAll = [&left](const Progress& way) {
    const auto told = imagesOf(way);
    return std::ranges::all_of(left.images,
                               [&told](const Target& image) { return holds(told, image); });
  };
  auto writes = [&left](const Progress& way) {
    return way.isWriting() && (holds(left.images, way.current) ||
                               std::ranges::any_of(way.with, [&left](const Target& image) {
                                 return holds(left.images, image);
                               }));
  };
  auto way = std::find_if(left.ways.rbegin(), left.ways.rend(), [&](const Progress& each) {
    return tellsOfAll(each) && (!each.isWriting() || writes(each));
  });
  if (way == left.ways.rend()) way = std::find_if(left.ways.rbegin(), left.ways.rend(), writes);
  Progress out = way == left.ways.rend() ? Progress{.step = Step::Next} : *way;
  std::erase_if(out.with, [&left](const Target& image) { return !holds(left.images, image); });
  for (const auto& each : left.ways)
    for (const auto& uri : each.waits)
      if (std::ranges::find(out.waits, uri) == out.waits.end()) out.waits.push_back(uri);
  out.staged = left.images;
  if (out.isWriting())
    std::erase_if(out.staged, [&out](const Target& image) {
      return image == out.current || holds(out.with, image);
    });
  return out;
}

std::vector<lifecycle::Goal> takeBackGoals(const Left& left, const lifecycle::Subject& subject,
                                           const inventory::FirmwareBaseline& baseline) {
  std::vector<lifecycle::Goal> goals;
  for (const auto& image : left.images) {
    if (isWanted(baseline, image)) continue;
    lifecycle::Goal goal;
    goal.facet = {subject, takeBackFacet(image.component)};
    goal.want = takenBackSince(left.at);
    goal.expected = kTakeBackTime;
    goal.deadline = kTakeBackLimit;
    goal.why = fmt::format(
        "{} {} was sent by an action that was abandoned, and would run after the next restart",
        image.component, image.version);
    goals.push_back(std::move(goal));
  }
  return goals;
}

std::vector<Unwanted> unwantedOf(const Left& left, const inventory::FirmwareBaseline& baseline) {
  std::vector<Unwanted> out;
  for (const auto& image : left.images) {
    if (isWanted(baseline, image)) continue;
    const auto* component = baseline.find(image.component);
    Unwanted each{image, false, component && inventory::isInBand(*component)};
    for (const auto& way : left.ways) {
      const bool written = way.isWriting() && (way.current == image || holds(way.with, image));
      each.arrived =
          each.arrived || holds(way.staged, image) || (written && way.step != Step::Upload);
      if (written && way.task.starts_with(kAgentTask)) each.by_agent = true, each.task = way.task;
    }
    out.push_back(std::move(each));
  }
  return out;
}

Async<std::string> takeBack(bmc::Bmc& bmc, std::vector<Unwanted> unwanted, std::string node) {
  CO_TRY(items, co_await bmc.firmware());
  std::erase_if(
      unwanted,
      [&](const Unwanted& each) {  // it was activated meanwhile: what runs is what the plan sees
        return !each.by_agent &&
               std::any_of(items.begin(), items.end(), [&](const bmc::FirmwareItem& item) {
                 return item.name == each.image.component && item.unreadable.empty() &&
                        lifecycle::matches(each.image.version, item.version);
               });
      });
  if (unwanted.empty()) co_return std::string();
  for (const auto& [image, arrived, by_agent, task] : unwanted) {
    if (!by_agent && std::any_of(items.begin(), items.end(), [&](const bmc::FirmwareItem& item) {
          return item.name == image.component;
        }))
      continue;
    co_return fmt::format(
        "{} {} was sent by an action that was abandoned, and {}. It may run after the next "
        "restart. See that nothing is writing it; then: muster firmware retry {}",
        image.component, image.version,
        by_agent ? "went by the node's agent, which cannot take it back"
                 : "the BMC does not list " + image.component,
        node);
  }
  CO_TRY(tasks, co_await bmc.tasks());
  if (!tasks.running.empty())
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{} is busy with {}; nothing is taken back meanwhile", bmc.address(),
                               tasks.running.front()));
  const auto waiting = static_cast<std::size_t>(std::ranges::count_if(
      unwanted,
      &Unwanted::arrived));  // one that may never have arrived is none: the job may be another's
  for (const auto& [image, arrived, by_agent, task] : unwanted) {
    const auto done = co_await bmc::discardStaged(bmc, image.component, waiting);
    if (!done && done.error().canRetry()) co_return fail(done.error());
    if (!done)
      co_return fmt::format(
          "{} {} was sent by an action that was abandoned, and would run after the next restart: "
          "{}. Take it back by the BMC's own means, or put {} into the baseline; then: muster "
          "firmware retry {}",
          image.component, image.version, done.error().text(), image.version, node);
  }
  co_return std::string();
}

}  // namespace muster::firmware
