#include "firmware/left.h"

#include "bmc/staged_images.h"
#include "lifecycle/left.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view kTakeBack = "firmware-left.", kLeft = "left.firmware.";
constexpr auto kTakeBackTime = 1min, kTakeBackLimit = 30min;

}  // namespace

std::string takenBackOf(const FacetName& facet) { return facet.str().starts_with(kTakeBack) ? facet.str().substr(kTakeBack.size()) : std::string(); }

Left leftOn(const lifecycle::FactSet& facts, const lifecycle::Subject& subject) {
  Left left;
  const auto running = runningBy(facts, subject);
  for (const auto& fact : facts.view(subject)) {
    const auto bar = fact.value.find('|');
    if (!fact.facet.str().starts_with(kLeft) || fact.value == lifecycle::kNothingLeft || bar == std::string::npos) continue;
    left.facets.push_back(fact.facet);
    auto progress = Progress::parse(fact.value.substr(bar + 1));
    if (!progress || progress->step == Step::Over) continue;  // what has ended badly is remembered as that
    if (progress->isWriting() && progress->current.empty()) progress->current = {fact.facet.str().substr(kLeft.size()), fact.value.substr(0, bar)};
    auto images = progress->staged;
    if (progress->isWriting()) images.push_back(progress->current);
    if (progress->isWriting()) images.insert(images.end(), progress->with.begin(), progress->with.end());
    for (auto& image : images) {
      const auto now = running.find(image.component);
      const bool runs = now != running.end() && lifecycle::matches(image.version, now->second);
      if (!runs && std::find(left.images.begin(), left.images.end(), image) == left.images.end()) left.images.push_back(std::move(image));
    }
    left.ways.push_back(std::move(*progress));
    left.at = std::max(left.at, fact.observed_at);
  }
  return left;
}

bool isWanted(const inventory::FirmwareBaseline& baseline, const Target& image) {
  const auto* component = baseline.find(image.component);
  return component && !component->file.empty() && component->version == image.version;
}

Progress takeOver(const Left& left) {
  if (left.images.empty()) return {};
  if (left.ways.size() == 1) return left.ways.front();
  return Progress{.step = Step::Next, .staged = left.images};
}

std::vector<lifecycle::Goal> takeBackGoals(const lifecycle::FactSet& facts, const lifecycle::Subject& subject, const inventory::FirmwareBaseline& baseline) {
  std::vector<lifecycle::Goal> goals;
  const auto left = leftOn(facts, subject);
  for (const auto& image : left.images) {
    if (isWanted(baseline, image)) continue;
    lifecycle::Goal goal;
    goal.facet = {subject, takeBackFacet(image.component)};
    goal.want = fmt::format("{}, since {}", lifecycle::kNothingLeft, muster::toString(left.at));  // what was true after an earlier one says nothing of this
    goal.expected = kTakeBackTime;
    goal.deadline = kTakeBackLimit;
    goal.why = fmt::format("{} {} was sent by an action that was abandoned, and would run after the next restart", image.component, image.version);
    goals.push_back(std::move(goal));
  }
  return goals;
}

Async<std::string> takeBack(bmc::Bmc& bmc, std::vector<Target> images, std::string node) {
  auto read = bmc.firmware();
  CO_TRY(items, co_await std::move(read));
  std::erase_if(images, [&](const Target& image) {  // it was activated meanwhile: what runs is what the plan sees
    return std::any_of(items.begin(), items.end(), [&](const bmc::FirmwareItem& item) { return item.name == image.component && item.unreadable.empty() && lifecycle::matches(image.version, item.version); });
  });
  if (images.empty()) co_return std::string();
  auto list = bmc.tasks();
  CO_TRY(tasks, co_await std::move(list));
  if (!tasks.running.empty()) co_return fail(ErrorCode::Unavailable, fmt::format("{} is busy with {}; nothing is taken back meanwhile", bmc.address(), tasks.running.front()));
  for (const auto& image : images) {
    auto discard = bmc::discardStaged(bmc, image.component, images.size());
    const auto done = co_await std::move(discard);
    if (!done && done.error().canRetry()) co_return fail(done.error());
    if (!done)
      co_return fmt::format("{} {} was sent by an action that was abandoned, and would run after the next restart: {}. Take it back by the BMC's own means, or put {} into the baseline; then: muster firmware retry {}",
                            image.component, image.version, done.error().text(), image.version, node);
  }
  co_return std::string();
}

}  // namespace muster::firmware
