// SPDX-License-Identifier: Apache-2.0
#include "base/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster {
namespace {

template <class Duration>
Duration stretched(Duration limit, double slowness) {
  if (slowness <= 1) return limit;
  return Duration(static_cast<typename Duration::rep>(
      std::ceil(static_cast<double>(limit.count()) * slowness)));
}

}  // namespace

double slownessOf(const Clock& clock) {
  const auto* slow = dynamic_cast<const SlowClock*>(&clock);
  return slow ? std::max(1.0, slow->slowness()) : 1.0;
}

std::chrono::milliseconds limitHere(const Clock& clock, std::chrono::milliseconds limit) {
  return stretched(limit, slownessOf(clock));
}

std::chrono::seconds limitHere(const Clock& clock, std::chrono::seconds limit,
                               std::chrono::seconds most) {
  return std::max(limit, std::min(most, stretched(limit, slownessOf(clock))));
}

std::string limitText(double slowness, std::chrono::seconds limit) {
  if (slowness <= 1) return fmt::format("{} s", limit.count());
  return fmt::format("{} s ({} s on an idle machine; this one is {:g} times slower)",
                     stretched(limit, slowness).count(), limit.count(), slowness);
}

std::string limitText(const Clock& clock, std::chrono::seconds limit) {
  return limitText(slownessOf(clock), limit);
}

}  // namespace muster
