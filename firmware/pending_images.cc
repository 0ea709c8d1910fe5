// SPDX-License-Identifier: Apache-2.0
#include "firmware/pending_images.h"

#include "firmware/in_band.h"
#include "inventory/model/firmware.h"
#include "inventory/model/images.h"
#include "lifecycle/model/orphaned_operation.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view kStaged = "firmware-staged.";
constexpr std::string_view kStagedBefore =
    "firmware-left.";  ///< what it was called until 2026-11: in facts and in begun actions
constexpr std::string_view kOrphaned = "left.firmware.";
constexpr auto kCancelTime = 1min, kCancelLimit = 30min;

bool holds(const std::vector<Target>& images, const Target& image) {
  return std::find(images.begin(), images.end(), image) != images.end();
}

/// What was true after an earlier one says nothing of this.
std::string cancelledSince(WallTime at) {
  return fmt::format("{}, since {}", lifecycle::kNoOrphanedOperation, muster::toString(at));
}

std::vector<Target> imagesOf(const Progress& operation) {
  auto images = operation.staged;
  if (operation.isWriting()) images.push_back(operation.current);
  if (operation.isWriting())
    images.insert(images.end(), operation.with.begin(), operation.with.end());
  return images;
}

/// By the fact, which stores of before 2026-11 hold under its former name.
bool isCancelled(const lifecycle::FactSet& facts, const lifecycle::Subject& subject,
                 const std::string& component, const std::string& since) {
  return facts.value(subject, stagedFacet(component)) == since ||
         facts.value(subject, FacetName(std::string(kStagedBefore) + component)) == since;
}

/// As they would have become facts, had its process lived.
std::vector<Failure> failuresOf(const Progress& operation) {
  std::vector<Failure> out;
  if (!operation.failed) return out;
  if (operation.failed->written) out.push_back(*operation.failed);
  if (operation.step == InstallStep::Over)
    for (const auto& image : operation.staged) out.push_back({image, operation.failed->why, true});
  return out;
}

}  // namespace

std::string stagedComponentOf(const FacetName& facet) {
  for (const auto prefix : {kStaged, kStagedBefore})
    if (facet.str().starts_with(prefix)) return facet.str().substr(prefix.size());
  return {};
}

bool isOrphanedUpdate(const FacetName& facet) { return facet.str().starts_with(kOrphaned); }

PendingImages pendingImagesOf(const lifecycle::FactSet& facts, const lifecycle::Subject& subject,
                              WallTime before) {
  PendingImages pending;
  std::vector<std::pair<WallTime, Progress>> operations;
  for (const auto& fact : facts.view(subject)) {
    if (!isOrphanedUpdate(fact.facet) || fact.value == lifecycle::kNoOrphanedOperation ||
        fact.observed_at >= before)
      continue;
    const auto bar = fact.value.find('|');
    if (bar == std::string::npos) continue;
    pending.facets.push_back(fact.facet);
    auto progress = Progress::parse(fact.value.substr(bar + 1));
    if (!progress) continue;
    if (progress->isWriting() && progress->current.empty())
      progress->current = {fact.facet.str().substr(kOrphaned.size()), fact.value.substr(0, bar)};
    if (progress->step != InstallStep::Over) pending.at = std::max(pending.at, fact.observed_at);
    operations.emplace_back(fact.observed_at, std::move(*progress));
  }
  if (operations.empty()) return pending;
  std::ranges::stable_sort(operations, {}, &std::pair<WallTime, Progress>::first);
  const auto running = runningBy(facts, subject);
  auto runs = [&running](const Target& image) {
    const auto now = running.find(image.component);
    return now != running.end() && lifecycle::matches(image.version, now->second);
  };
  for (auto& [at, operation] : operations) {
    for (auto& failure : failuresOf(operation))
      if (!runs(failure.target)) pending.failed.push_back(std::move(failure));
    if (operation.step == InstallStep::Over) continue;  // nothing of it is gone on with
    for (auto& image : imagesOf(operation)) {
      const bool gone =
          runs(image) || isCancelled(facts, subject, image.component, cancelledSince(pending.at));
      if (!gone && !holds(pending.images, image)) pending.images.push_back(std::move(image));
    }
    pending.operations.push_back(std::move(operation));
  }
  return pending;
}

bool isWanted(const inventory::FirmwareBaseline& baseline, const Target& image) {
  const auto* component = baseline.find(image.component);
  return component && !component->file.empty() && component->version == image.version;
}

Progress resumeFrom(const PendingImages& pending) {
  if (pending.images.empty()) return {};
  auto holdsAll = [&pending](const Progress& operation) {
    const auto told = imagesOf(operation);
    return std::ranges::all_of(pending.images,
                               [&told](const Target& image) { return holds(told, image); });
  };
  auto writes = [&pending](const Progress& operation) {
    return operation.isWriting() &&
           (holds(pending.images, operation.current) ||
            std::ranges::any_of(operation.with, [&pending](const Target& image) {
              return holds(pending.images, image);
            }));
  };
  auto operation = std::find_if(
      pending.operations.rbegin(), pending.operations.rend(),
      [&](const Progress& each) { return holdsAll(each) && (!each.isWriting() || writes(each)); });
  if (operation == pending.operations.rend())
    operation = std::find_if(pending.operations.rbegin(), pending.operations.rend(), writes);
  Progress out =
      operation == pending.operations.rend() ? Progress{.step = InstallStep::Next} : *operation;
  std::erase_if(out.with,
                [&pending](const Target& image) { return !holds(pending.images, image); });
  for (const auto& each : pending.operations)
    for (const auto& uri : each.waits)
      if (std::ranges::find(out.waits, uri) == out.waits.end()) out.waits.push_back(uri);
  out.staged = pending.images;
  if (out.isWriting())
    std::erase_if(out.staged, [&out](const Target& image) {
      return image == out.current || holds(out.with, image);
    });
  return out;
}

std::vector<lifecycle::Goal> cancelStagedGoals(const PendingImages& pending,
                                               const lifecycle::Subject& subject,
                                               const inventory::FirmwareBaseline& baseline) {
  std::vector<lifecycle::Goal> goals;
  for (const auto& image : pending.images) {
    if (isWanted(baseline, image)) continue;
    lifecycle::Goal goal;
    goal.facet = {subject, stagedFacet(image.component)};
    goal.want = cancelledSince(pending.at);
    goal.expected = kCancelTime;
    goal.deadline = kCancelLimit;
    goal.why = fmt::format(
        "{} {} was sent by an action that was abandoned, and would run after the next restart",
        image.component, image.version);
    goals.push_back(std::move(goal));
  }
  return goals;
}

std::vector<Unwanted> unwantedOf(const PendingImages& pending,
                                 const inventory::FirmwareBaseline& baseline) {
  std::vector<Unwanted> out;
  for (const auto& image : pending.images) {
    if (isWanted(baseline, image)) continue;
    const auto* component = baseline.find(image.component);
    Unwanted each{image, false, component && inventory::isInBand(*component)};
    for (const auto& operation : pending.operations) {
      const bool written =
          operation.isWriting() && (operation.current == image || holds(operation.with, image));
      each.arrived = each.arrived || holds(operation.staged, image) ||
                     (written && operation.step != InstallStep::Upload);
      if (written && operation.task.starts_with(kAgentTask))
        each.by_agent = true, each.task = operation.task;
    }
    out.push_back(std::move(each));
  }
  return out;
}

Async<std::string> cancelStaged(bmc::Bmc& bmc, std::vector<Unwanted> unwanted, std::string node) {
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
    const auto done = co_await bmc.cancelStaged(image.component, waiting);
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
