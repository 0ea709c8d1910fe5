// SPDX-License-Identifier: Apache-2.0
// Power: pulses that begin and end on all devices at once, then a steady load whose mean is
// evaluated. A single high sample proves nothing. Every product is compared, bit for bit, with the
// first one, which is evaluated by its sums: the edges of a pulse are where a weak supply shows.
#include "validate/burn/stages.h"

#include <thread>

namespace muster::burn {
namespace {

using Clock = std::chrono::steady_clock;

class Load {
 public:
  Load(const GemmPlan& plan, GemmWork& work, StageReport& report)
      : plan_(plan), work_(work), report_(report) {}

  /// What all later products must be. Returns the sums of the first.
  Result<SideSums> expect() {
    TRY_OK(work_.multiply(1, false));
    TRY(sides, work_.sideSums());
    TRY(reference, work_.tileSums());
    report_.reference = digestOf(reference);
    TRY_OK(work_.setGolden(std::move(reference)));
    return sides;
  }

  Result<void> until(Clock::time_point end) {
    while (Clock::now() < end) TRY_OK(round());
    return {};
  }

  Result<void> round() {
    TRY(round, work_.multiply(batch_, true));
    if (round.seconds < 0.02)
      batch_ *= 2;  // as few looks at the clock as the edges of a pulse bear
    addRound(plan_, sum_, round, report_);
    return {};
  }

  const GemmRound& sum() const { return sum_; }

 private:
  const GemmPlan& plan_;
  GemmWork& work_;
  StageReport& report_;
  GemmRound sum_;
  std::uint64_t batch_ = 1;
};

void evaluatePower(const Options& options, const Power& seen, StageReport& report) {
  if (!seen.mean_watts || !seen.limit_watts) {
    report.lacks(Outcome::NoData, "the device reports neither its power draw nor its power limit");
    return;
  }
  report.values["power_mean_watts"] = *seen.mean_watts;
  report.values["power_limit_watts"] = *seen.limit_watts;
  const double least = options.min_power_share * *seen.limit_watts;
  if (!(*seen.mean_watts >= least))
    report.fails(
        fmt::format("{:.0f} W on average, expected {:.0f} W of its {:.0f} W: throttled, or starved",
                    *seen.mean_watts, least, *seen.limit_watts));
  else if (report.outcome == Outcome::NoData)
    report.outcome = Outcome::Pass;
}

Result<void> run(Device& device, const Options& options, const Stage& stage,
                 Expectations& expectations, Clock::time_point start, StageReport& report,
                 const std::function<Power(Clock::time_point)>& power) {
  const GemmPlan plan{stage.dtype, Operands::Random,
                      options.n ? options.n : device.preferredN(stage.dtype), options.seed};
  report.product = fmt::format("n {}, seed {:x}", plan.n, plan.seed);
  TRY(work, device.prepareGemm(plan));
  Load load(plan, *work, report);
  TRY(sides, load.expect());
  for (int i = 0; i < options.pulses; ++i) {
    const auto begin = start + 2 * i * options.pulse;
    std::this_thread::sleep_until(begin);
    TRY_OK(load.until(begin + options.pulse));
  }
  const auto steady = Clock::now();
  TRY_OK(load.round());
  TRY_OK(load.until(steady + stage.duration));
  const auto seen = power(steady);
  TRY(wrong, work->wrongInputs());
  if (wrong) report.fails(fmt::format("{} operands were changed while power was drawn", wrong));
  // Only now: on the host they take longer than the devices may wait for each other.
  for (auto& finding : compareSides(plan, sides, expectations.sides(plan)))
    report.fails(std::move(finding));
  const auto& sum = load.sum();
  report.values = {{"products", static_cast<double>(sum.products)},
                   {"verified_share", verifiedShare(sum.products, 0)},
                   {"bad_tiles", static_cast<double>(sum.bad_tiles)}};
  if (sum.bad_tiles)
    report.fails(fmt::format("{} bad tiles in {} products while power was drawn", sum.bad_tiles,
                             sum.products));
  if (sum.products == 0) report.lacks(Outcome::Error, "no product was made, so nothing drew power");
  evaluatePower(options, seen, report);
  return {};
}

}  // namespace

StageReport runPower(Device& device, const Options& options, const Stage& stage,
                     Expectations& expectations, Clock::time_point start,
                     const std::function<Power(Clock::time_point)>& power) {
  StageReport report;
  report.name = stage.name();
  report.seed = options.seed;
  if (auto ran = run(device, options, stage, expectations, start, report, power); !ran)
    report.lacks(Outcome::Error, ran.error().str());
  return report;
}

}  // namespace muster::burn
