// SPDX-License-Identifier: Apache-2.0
// Caches: patterns that never leave them. What each unit has for itself is written and read there,
// and named by its unit; the last cache before the memory is walked over as memory is, by a region
// that is half as large.
#include "validate/burn/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster::burn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxFindings = 8;

std::string key(std::string cache) {
  std::replace(cache.begin(), cache.end(), ' ', '_');
  return "cache_" + cache;
}

class Caches {
 public:
  Caches(Device& device, const Options& options, StageReport& report)
      : device_(device), options_(options), report_(report) {}

  Result<void> run(Clock::time_point end) {
    std::uint64_t round = 0;
    do {
      const auto seed = options_.seed + round++;
      for (const auto& cache : device_.unitCaches()) TRY_OK(ofUnits(cache, seed));
      if (device_.lastCacheBytes()) TRY_OK(lastCache(seed));
    } while (Clock::now() < end);
    report_.values["cache_rounds"] = static_cast<double>(round);
    report_.values["cache_wrong_words"] = static_cast<double>(wrong_);
    if (wrong_)
      report_.fails(fmt::format("{} wrong words in caches", wrong_));
    else if (report_.findings.empty())
      report_.outcome = Outcome::Pass;
    return {};
  }

 private:
  Result<void> ofUnits(UnitCache which, std::uint64_t seed) {
    TRY(round, device_.probeUnitCache(which, seed));
    const std::string cache(toString(which));
    const int units = std::max(device_.identity().units, 1);
    if (round.units < units || round.words == 0)
      lacksOnce(fmt::format("{} of {} units tested their {}", round.units, units, cache));
    report_.values[key(cache) + "_units"] = round.units;
    note(round.first, round.wrong_words, cache);
    return {};
  }

  Result<void> lastCache(std::uint64_t seed) {
    TRY(work, device_.prepareMemory(device_.lastCacheBytes() / 2));
    report_.values["cache_last_mib"] = static_cast<double>(work->bytes()) / (1 << 20);
    for (const auto& step : memorySteps({})) {
      TRY(result, work->step(step, seed));
      note(result.first, result.wrong_words, "the last cache");
    }
    return {};
  }

  void note(const std::vector<BadWord>& first, std::uint64_t wrong, const std::string& where) {
    wrong_ += wrong;
    for (const auto& bad : first)
      if (report_.findings.size() < kMaxFindings)
        report_.fails(fmt::format(
            "{}{} at byte {:#x}: expected {:#018x} saw {:#018x}, differing bits {:#018x}", where,
            bad.unit < 0 ? "" : fmt::format(", read by unit {},", bad.unit), bad.offset_bytes,
            bad.expected, bad.seen, bad.expected ^ bad.seen));
  }

  void lacksOnce(std::string what) {
    if (said_.insert(what).second) report_.lacks(Outcome::NoData, std::move(what));
  }

  Device& device_;
  const Options& options_;
  StageReport& report_;
  std::uint64_t wrong_ = 0;
  std::set<std::string> said_;
};

}  // namespace

std::string_view toString(UnitCache cache) {
  return cache == UnitCache::SharedMemory ? "shared memory" : "L1";
}

StageReport runCaches(Device& device, const Options& options, const Stage& stage) {
  StageReport report;
  report.name = stage.name();
  report.seed = options.seed;
  if (auto ran = Caches(device, options, report).run(Clock::now() + stage.duration); !ran)
    report.lacks(Outcome::Error, ran.error().str());
  return report;
}

}  // namespace muster::burn
