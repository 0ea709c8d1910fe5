// SPDX-License-Identifier: Apache-2.0
#include "pool/drain_deadline.h"

#include <algorithm>

namespace muster::pool {
namespace {

constexpr std::chrono::minutes kSureOfTheTime{
    5};  ///< a deadline that was over at the first look is believed after so long

}  // namespace

bool DrainDeadline::isSurelyOver(const NodeName& node, WallTime since, std::chrono::minutes limit) {
  const auto now = clock_.steady();
  auto& watched = watched_[node];
  if (watched.since != since || watched.first == std::chrono::steady_clock::time_point{})
    watched = {since, now, clock_.now() - since};
  const auto seen = now - watched.first;
  return seen >= std::min(limit, kSureOfTheTime) && watched.before + seen >= limit;
}

bool DrainDeadline::isOver(const NodeName& node, const Member& member,
                           const inventory::DrainPolicy& policy) {
  if (!policy.deadline_minutes || !member.draining_since) return false;
  const std::chrono::minutes limit(*policy.deadline_minutes);
  const bool is_sure = isSurelyOver(node, *member.draining_since, limit) ||
                       policy.on_timeout != inventory::OnTimeout::DeletePods;
  return is_sure && clock_.now() >= *member.draining_since + limit;
}

}  // namespace muster::pool
