// SPDX-License-Identifier: Apache-2.0
// Memory patterns, copies with a CRC of every block, and a small product on every unit.
#include "validate/burn/stages.h"

#include <algorithm>

namespace muster::burn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxFindings = 8;

MemoryStep up(std::optional<MemoryWord> read, std::optional<MemoryWord> write) {
  return {false, read, write, {}};
}
MemoryStep down(std::optional<MemoryWord> read, std::optional<MemoryWord> write) {
  return {true, read, write, {}};
}

/// March C−: finds stuck bits, transitions, address faults and most couplings (van de Goor).
void march(Pattern pattern, std::vector<MemoryStep>& steps) {
  const MemoryWord zero{pattern, false}, one{pattern, true};
  for (const auto& step : {up({}, zero), up(zero, one), up(one, zero), down(zero, one),
                           down(one, zero), down(zero, {})})
    steps.push_back(step);
}

void writeThenRead(Pattern pattern, std::chrono::milliseconds hold,
                   std::vector<MemoryStep>& steps) {
  for (const bool inverse : {false, true}) {
    steps.push_back(up({}, MemoryWord{pattern, inverse}));
    steps.push_back(down(MemoryWord{pattern, inverse}, {}));
    steps.back().hold = hold;
  }
}

template <class Work>
StageReport guarded(const Stage& stage, const Options& options, Work work) {
  StageReport report;
  report.name = stage.name();
  report.seed = options.seed;
  if (auto ran = work(report); !ran) report.lacks(Outcome::Error, ran.error().str());
  return report;
}

Result<void> patterns(Device& device, const Options& options, const Stage& stage,
                      StageReport& report) {
  const auto bytes = options.memory_bytes ? options.memory_bytes
                                          : device.freeBytes() / 100 *
                                                static_cast<std::uint64_t>(options.memory_percent);
  TRY(work, device.prepareMemory(bytes));
  const auto steps = memorySteps(options.hold);
  const auto start = Clock::now();
  const auto end = start + stage.duration,
             first_round_end = start + std::max(stage.duration, options.memory_limit);
  const auto passed = [start] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  double first_round_seconds = 0;
  double moved = 0, seconds = 0;
  std::uint64_t wrong = 0, rounds = 0;
  std::size_t done = 0;
  bool complete = false;
  do {
    const auto seed = options.seed + rounds;
    const auto round_end = complete ? end : first_round_end;
    for (done = 0; done < steps.size() &&
                   (done == 0 || stage.duration.count() == 0 || Clock::now() < round_end);
         ++done) {
      TRY(result, work->step(steps[done], seed));
      moved += static_cast<double>(result.bytes_moved), seconds += result.seconds,
          wrong += result.wrong_words;
      for (const auto& bad : result.first)
        if (report.findings.size() < kMaxFindings)
          report.fails(fmt::format(
              "step {} of round {} at byte {:#x}{}: expected {:#018x} saw {:#018x}, differing bits "
              "{:#018x}",
              done, rounds, bad.offset_bytes,
              bad.unit < 0 ? "" : fmt::format(", read by unit {}", bad.unit), bad.expected,
              bad.seen, bad.expected ^ bad.seen));
    }
    ++rounds;
    if (!complete && done == steps.size()) complete = true, first_round_seconds = passed();
  } while (done == steps.size() && Clock::now() < end);
  const double lasted = passed();
  TRY(copy, work->copyRate());
  report.values = {{"memory_tested_mib", static_cast<double>(work->bytes() >> 20)},
                   {"memory_wrong_words", static_cast<double>(wrong)},
                   {"memory_gbytes_per_s", moved * 1e-9 / seconds},
                   {"memory_copy_gbytes_per_s", copy * 1e-9},
                   {"memory_rounds", static_cast<double>(rounds - (done == steps.size() ? 0 : 1))}};
  if (complete) report.values["memory_round_seconds"] = first_round_seconds;
  if (wrong)
    report.fails(fmt::format("{} wrong words in {} MiB", wrong, work->bytes() >> 20));
  else if (work->bytes() == 0)
    report.lacks(Outcome::NoData, "no memory was tested");
  else if (!complete)
    report.lacks(Outcome::Slow, fmt::format("slow, and no word wrong so far: {} of {} steps of the "
                                            "first round over {} MiB in {:.1f} s, at {:.3f} GB/s",
                                            done, steps.size(), work->bytes() >> 20, lasted,
                                            moved * 1e-9 / seconds));
  else
    report.outcome = Outcome::Pass;
  return {};
}

Result<void> copies(Device& device, const Options& options, const Stage& stage,
                    StageReport& report) {
  const auto routes = device.routes();
  if (routes.empty()) report.lacks(Outcome::NoData, "the device names no way to copy");
  const auto end = Clock::now() + stage.duration;
  std::map<std::string, double> bytes, seconds;
  std::uint64_t round = 0;
  do
    for (const auto& route : routes) {
      TRY(result, device.copy(route, options.copy_bytes, options.seed + round++));
      bytes[route] += static_cast<double>(result.bytes), seconds[route] += result.seconds;
      if (result.host_node) report.values["copy_host_memory_node"] = *result.host_node;
      if (result.bad_blocks && report.findings.size() < kMaxFindings)
        report.fails(fmt::format(
            "{}: {} blocks of {} bytes have another CRC, the first at byte {:#x}, seed {}", route,
            result.bad_blocks, kCopyBlockWords * 8, result.first_bad_offset,
            options.seed + round - 1));
    }
  while (Clock::now() < end);
  for (const auto& route : routes) {
    std::string key = "copy_" + route + "_gbytes_per_s";
    std::replace(key.begin(), key.end(), ' ', '_');
    report.values[key] = bytes[route] * 1e-9 / seconds[route];
    if (!(bytes[route] > 0)) report.lacks(Outcome::NoData, route + ": nothing was copied");
  }
  if (report.outcome == Outcome::NoData && report.findings.empty()) report.outcome = Outcome::Pass;
  return {};
}

Result<void> units(Device& device, const Options& options, StageReport& report) {
  TRY(results, device.probeUnits(options.seed));
  std::vector<int> seen;
  for (const auto& unit : results) {
    if (unit.wrong)
      report.fails(fmt::format("unit {}: {} of {} products are wrong", unit.unit, unit.wrong,
                               unit.products));
    if (unit.products && std::find(seen.begin(), seen.end(), unit.unit) == seen.end())
      seen.push_back(unit.unit);
  }
  report.values = {{"units_probed", static_cast<double>(seen.size())}};
  const auto expected = static_cast<std::size_t>(std::max(device.identity().units, 1));
  if (seen.size() < expected)
    report.lacks(Outcome::NoData, fmt::format("{} of {} units were probed", seen.size(), expected));
  else if (report.outcome == Outcome::NoData)
    report.outcome = Outcome::Pass;
  return {};
}

}  // namespace

std::vector<MemoryStep> memorySteps(std::chrono::milliseconds hold) {
  std::vector<MemoryStep> steps;
  march(Pattern::Zeros, steps);
  march(Pattern::Random, steps);
  for (const auto pattern : {Pattern::Address, Pattern::WalkingOne, Pattern::Checkerboard})
    writeThenRead(pattern, {}, steps);
  if (hold.count() > 0) writeThenRead(Pattern::Random, hold, steps);
  return steps;
}

StageReport runMemory(Device& device, const Options& options, const Stage& stage) {
  return guarded(stage, options,
                 [&](StageReport& report) { return patterns(device, options, stage, report); });
}
StageReport runCopies(Device& device, const Options& options, const Stage& stage) {
  return guarded(stage, options,
                 [&](StageReport& report) { return copies(device, options, stage, report); });
}
StageReport runUnits(Device& device, const Options& options, const Stage& stage) {
  return guarded(stage, options,
                 [&](StageReport& report) { return units(device, options, report); });
}

}  // namespace muster::burn
