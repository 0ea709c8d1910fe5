// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/executor/duration_estimate.h"

#include "lifecycle/model/facet_table.h"

#include "inventory/model/cluster.h"
#include "lifecycle/model/plan.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace muster::lifecycle {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::hours kLongestBelieved{
    24 * 7};  ///< beyond this a clock was set, or muster was away

std::string secondsOf(milliseconds duration) {
  const auto seconds = std::chrono::duration<double>(duration).count();
  return seconds < 10    ? fmt::format("{:.1f} s", seconds)
         : seconds < 600 ? fmt::format("{:.0f} s", seconds)
                         : fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace

bool DurationEstimate::isLate(milliseconds taken, double slowness) const {
  return expected.count() > 0 &&
         std::chrono::duration<double>(taken) >
             (std::chrono::duration<double>(expected) * kLateFactor + kLateSlack) * slowness;
}

std::string DurationEstimate::text() const {
  if (samples == 0) return fmt::format("usually {}", secondsOf(expected));
  return fmt::format("usually {} (of {} like it, nine in ten took no longer)", secondsOf(expected),
                     samples);
}

std::string DurationEstimates::kindOf(const Action& action) {
  return action.phase + " " + action.facet.facet.str() +
         (action.id.ends_with(kDrainSuffix) ? std::string(kDrainSuffix) : "");
}

void DurationEstimates::add(const Intent& intent) {
  const auto taken = intent.closed_at - intent.opened_at;
  if (intent.state != IntentState::Done || taken < milliseconds(0) || taken > kLongestBelieved)
    return;
  auto& samples = samples_[kindOf(intent.action)];
  if (samples.size() < kMaxSamples) samples.push_back(taken);
}

DurationEstimate DurationEstimates::of(const Action& action) const {
  const milliseconds prior = action.expected;
  const auto found = samples_.find(kindOf(action));
  if (found == samples_.end()) return {prior, 0};
  auto all = found->second;
  all.insert(all.end(), kPriorSamples, prior);
  const auto rank =
      static_cast<std::size_t>(std::ceil(kEstimateQuantile * static_cast<double>(all.size()))) - 1;
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rank), all.end());
  return {all[rank], found->second.size()};
}

Result<DurationEstimates> learnDurations(const inventory::Cluster& cluster, Store& store,
                                         const Subject& subject) {
  std::vector<Subject> asked{subject};
  if (const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node()))
    for (const auto& other : cluster.nodes)
      if (asked.size() < kPeersAsked && other.profile == node->profile && other.name != node->name)
        asked.emplace_back(other.name);
  DurationEstimates out;
  for (const auto& one : asked) {
    TRY(intents, store.intentsOf(one, kIntentsOfPeer));  // newest first
    for (const auto& intent : intents) out.add(intent);
  }
  return out;
}

Result<const DurationEstimates*> KnownDurations::of(const inventory::Cluster& cluster, Store& store,
                                                    const Subject& subject,
                                                    std::chrono::steady_clock::time_point now) {
  const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node());
  const auto profile = node ? node->profile : std::string();
  auto known = known_.find(profile);
  if (known == known_.end() || now - known->second.at > kept_) {
    TRY(estimates, learnDurations(cluster, store, subject));
    known = known_.insert_or_assign(profile, Known{now, std::move(estimates)}).first;
  }
  return &known->second.estimates;
}

std::string_view lateAdvice(const Action& action) {
  const auto* row = findFacetRow(action.facet.facet);
  return row && !row->when_late.empty() ? row->when_late
                                        : "`muster events` of the node shows what it waits for";
}

}  // namespace muster::lifecycle
