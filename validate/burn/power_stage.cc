// SPDX-License-Identifier: Apache-2.0
// Power: pulses that begin and end on all devices at once, then a steady load whose mean is
// evaluated. A single high sample proves nothing.
#include "validate/burn/stages.h"

#include <thread>

namespace muster::burn {
namespace {

using Clock = std::chrono::steady_clock;

Result<void> loadUntil(GemmWork& work, Clock::time_point end) {
  std::uint64_t batch = 1;
  while (Clock::now() < end) {
    TRY(round, work.multiply(batch, false));
    if (round.seconds < 0.02) batch *= 2;  // as few looks at the clock as the edges of a pulse bear
  }
  return {};
}

Result<void> load(Device& device, const Options& options, const Stage& stage,
                  Clock::time_point start, StageReport& report,
                  const std::function<Power(Clock::time_point)>& power) {
  const GemmPlan plan{stage.dtype, Operands::Random,
                      options.n ? options.n : device.preferredN(stage.dtype), options.seed};
  TRY(work, device.prepareGemm(plan));
  for (int i = 0; i < options.pulses; ++i) {
    const auto begin = start + 2 * i * options.pulse;
    std::this_thread::sleep_until(begin);
    TRY_OK(loadUntil(*work, begin + options.pulse));
  }
  const auto steady = Clock::now();
  TRY_OK(loadUntil(*work, steady + stage.duration));
  const auto seen = power(steady);
  TRY(wrong, work->wrongInputs());
  if (wrong) report.fails(fmt::format("{} operands were changed while power was drawn", wrong));
  if (!seen.mean_watts || !seen.limit_watts) {
    report.lacks(Outcome::NoData, "the device reports neither its power draw nor its power limit");
    return {};
  }
  report.values = {{"power_mean_watts", *seen.mean_watts},
                   {"power_limit_watts", *seen.limit_watts}};
  const double least = options.min_power_share * *seen.limit_watts;
  if (!(*seen.mean_watts >= least))
    report.fails(
        fmt::format("{:.0f} W on average, expected {:.0f} W of its {:.0f} W: throttled, or starved",
                    *seen.mean_watts, least, *seen.limit_watts));
  else if (report.outcome == Outcome::NoData)
    report.outcome = Outcome::Pass;
  return {};
}

}  // namespace

StageReport runPower(Device& device, const Options& options, const Stage& stage,
                     Clock::time_point start,
                     const std::function<Power(Clock::time_point)>& power) {
  StageReport report;
  report.name = stage.name();
  report.seed = options.seed;
  if (auto ran = load(device, options, stage, start, report, power); !ran)
    report.lacks(Outcome::Error, ran.error().str());
  return report;
}

}  // namespace muster::burn
