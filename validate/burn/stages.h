// SPDX-License-Identifier: Apache-2.0
// One stage on one device. Each answers a report, whatever happens.
#pragma once

#include "validate/burn/engine.h"

#include <functional>
#include <mutex>

namespace muster::burn {

/// Goldens are the same for every device: made once.
class Expectations {
 public:
  std::vector<std::uint64_t> golden(const GemmPlan& plan);
  SideSums sides(const GemmPlan& plan);

 private:
  using Key = std::tuple<Dtype, int, std::uint64_t>;
  std::mutex mutex_;
  std::map<Key, std::vector<std::uint64_t>> golden_;
  std::map<Key, SideSums> sides_;
};

StageReport runGemm(Device& device, const Options& options, const Stage& stage,
                    Expectations& expectations);
StageReport runMemory(Device& device, const Options& options, const Stage& stage);
StageReport runCopies(Device& device, const Options& options, const Stage& stage);
StageReport runUnits(Device& device, const Options& options, const Stage& stage);
StageReport runCaches(Device& device, const Options& options, const Stage& stage);
/// `start`: the moment at which all devices begin to pulse. `watts`: the mean since a moment, and
/// the limit, of the samples so far.
struct Power {
  std::optional<double> mean_watts, limit_watts;
};
StageReport runPower(
    Device& device, const Options& options, const Stage& stage, Expectations& expectations,
    std::chrono::steady_clock::time_point start,
    const std::function<Power(std::chrono::steady_clock::time_point since)>& power);

/// What the first product of random data says against the device, by its sums.
std::vector<std::string> compareSides(const GemmPlan& plan, const SideSums& seen,
                                      const SideSums& expected);
/// Of all products, those whose every value was compared.
double verifiedShare(std::uint64_t verified, std::uint64_t plain);
/// Adds what was counted, and puts its first bad tiles into the report.
void addRound(const GemmPlan& plan, GemmRound& sum, const GemmRound& round, StageReport& report);

/// The steps of the memory stage, in order.
std::vector<MemoryStep> memorySteps(std::chrono::milliseconds hold);
/// SHA-256 of numbers, to compare devices by.
std::string digestOf(const std::vector<std::uint64_t>& numbers);

}  // namespace muster::burn
