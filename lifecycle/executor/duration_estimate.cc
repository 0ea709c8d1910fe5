// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/executor/duration_estimate.h"

#include "lifecycle/model/plan.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace muster::lifecycle {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::hours kLongestBelieved{
    24 * 7};  ///< beyond this a clock was set, or muster was away

struct Advice {
  std::string_view prefix, what;  ///< of the facet; one that ends in '.' stands for a family
};
constexpr std::array kAdvice = {
    Advice{"enrolled",
           "does its BMC answer (`curl -k https://BMC/redfish/v1/`)? its address, account and "
           "cable are in the inventory"},
    Advice{"firmware.",
           "look at the update's task on the BMC; a BMC that no longer moves it needs a reset "
           "(`keep.recovery: bmc-reset`)"},
    Advice{"inspected",
           "watch the node's console: does it boot from the network, does the RAM OS come up?"},
    Advice{
        "image",
        "watch the node's console and its link: is the disk slow, is the image server far away?"},
    Advice{"os",
           "watch the node's console: the boot loader, the disk and the network of the installed "
           "system"},
    Advice{"driver.",
           "`muster events NODE` has apt's last words; is the repository reachable from the node?"},
    Advice{"fabric.", "look at opensm's log and at the cables that `muster fabric diff` names"},
    Advice{"gate.",
           "a check that hangs names itself in `muster events NODE`; `nvidia-smi` on the node, and "
           "its temperature"},
    Advice{"health.", "watch the node's console: does it come up again? if not, power-cycle it"},
    Advice{"recovery.", "the BMC does not come back: look at it in the rack"},
    Advice{"pool",
           "what still runs there is in `muster events NODE`; the pool's drain policy says what "
           "happens at its deadline"},
};

std::string secondsOf(milliseconds duration) {
  const auto seconds = std::chrono::duration<double>(duration).count();
  return seconds < 10    ? fmt::format("{:.1f} s", seconds)
         : seconds < 600 ? fmt::format("{:.0f} s", seconds)
                         : fmt::format("{:.0f} min", seconds / 60);
}

}  // namespace

bool Pace::isLate(milliseconds taken, double slowness) const {
  return expected.count() > 0 &&
         std::chrono::duration<double>(taken) >
             (std::chrono::duration<double>(expected) * kLateFactor + kLateSlack) * slowness;
}

std::string Pace::words() const {
  if (samples == 0) return fmt::format("usually {}", secondsOf(expected));
  return fmt::format("usually {} (of {} like it, nine in ten took no longer)", secondsOf(expected),
                     samples);
}

std::string Paces::kindOf(const Action& action) {
  return action.phase + " " + action.facet.facet.str() +
         (action.id.ends_with(kDrainSuffix) ? std::string(kDrainSuffix) : "");
}

void Paces::add(const Intent& intent) {
  const auto taken = intent.closed_at - intent.opened_at;
  if (intent.state != IntentState::Done || taken < milliseconds(0) || taken > kLongestBelieved)
    return;
  auto& samples = samples_[kindOf(intent.action)];
  if (samples.size() < kMaxSamples) samples.push_back(taken);
}

Pace Paces::of(const Action& action) const {
  const milliseconds prior = action.expected;
  const auto found = samples_.find(kindOf(action));
  if (found == samples_.end()) return {prior, 0};
  auto all = found->second;
  all.insert(all.end(), kPriorSamples, prior);
  const auto rank =
      static_cast<std::size_t>(std::ceil(kPaceQuantile * static_cast<double>(all.size()))) - 1;
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rank), all.end());
  return {all[rank], found->second.size()};
}

Result<Paces> learnPaces(const inventory::Cluster& cluster, Store& store, const Subject& subject) {
  std::vector<Subject> asked{subject};
  if (const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node()))
    for (const auto& other : cluster.nodes)
      if (asked.size() < kPeersAsked && other.profile == node->profile && other.name != node->name)
        asked.emplace_back(other.name);
  Paces out;
  for (const auto& one : asked) {
    TRY(intents, store.intentsOf(one, kIntentsOfPeer));  // newest first
    for (const auto& intent : intents) out.add(intent);
  }
  return out;
}

std::string_view whenLate(const Action& action) {
  const auto& facet = action.facet.facet.str();
  for (const auto& [prefix, what] : kAdvice)
    if (prefix.ends_with('.') ? facet.starts_with(prefix) : facet == prefix) return what;
  return "`muster events` of the node shows what it waits for";
}

}  // namespace muster::lifecycle
