// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/self_test.h"

#include "validate/burn/golden.h"
#include "validate/burn/gpu/float_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace muster::burn {
namespace {

constexpr int kN = 2 * kTile;
constexpr std::uint64_t kMemoryBytes = 1u << 20, kCopyBytes = 1u << 20;
constexpr int kRateTries = 5;  ///< other work on the machine slows clean runs too
constexpr double kSlowShare =
    0.4;  ///< of the best clean rate; the slow kernel does kSlowKernelTimes the work
constexpr std::chrono::milliseconds kRateTime{200}, kPulse{50};

class Tester {
 public:
  Tester(Devices& devices, std::size_t which, bool every_bit, const Options& watch)
      : device_(*devices[which]), every_bit_(every_bit), watch_(watch) {
    alone_.push_back(std::move(devices[which]));
  }
  Devices release() { return std::move(alone_); }

  SelfTest run() {
    clean();
    for (const auto dtype : device_.dtypes())
      if (every_bit_ || !device_.isByName(dtype)) products(dtype);
    for (const int bit : bits(64))
      expectFail(fmt::format("memory bit {}", bit),
                 {FaultKind::MemoryBit, 4711 + static_cast<std::uint64_t>(bit) * 97, bit},
                 {StageKind::Memory});
    for (const int bit : bits(64))
      expectFail(fmt::format("copy bit {}", bit),
                 {FaultKind::CopyBit, 99 + static_cast<std::uint64_t>(bit) * 1031, bit},
                 {StageKind::Copy});
    if (!device_.unitCaches().empty())
      for (const int bit : bits(64))
        expectFail(fmt::format("cache bit {}", bit),
                   {FaultKind::CacheBit, 77 + static_cast<std::uint64_t>(bit), bit},
                   {StageKind::Caches});
    pulse();
    slow();
    return std::move(result_);
  }

 private:
  Options options(Stage stage) const {
    Options options;
    options.on_hang = watch_.on_hang, options.hang_limit = watch_.hang_limit;
    options.stages = {stage};
    options.n = kN;
    options.memory_bytes = kMemoryBytes;
    options.copy_bytes = kCopyBytes;
    return options;
  }
  std::vector<int> bits(int width) const {
    std::vector<int> chosen;
    for (int bit = 0; bit < width; ++bit)
      if (every_bit_ || bit == 0 || bit == width - 1 || bit == width / 2) chosen.push_back(bit);
    return chosen;
  }
  Report with(std::optional<Fault> fault, const Options& options) {
    device_.inject(fault);
    auto report = burn(alone_, options);
    device_.inject(std::nullopt);
    return report;
  }
  static std::string said(const Report& report) {
    for (const auto& stage : report.devices.front().stages)
      if (!stage.findings.empty()) return stage.findings.front();
    return std::string(toString(report.outcome()));
  }
  void expectFail(std::string name, Fault fault, Stage stage) {
    const auto report = with(fault, options(stage));
    result_.rows.push_back({std::move(name), report.outcome() == Outcome::Fail, said(report)});
  }

  void clean() {
    auto all = options({});
    all.stages = usualStages(device_, {});
    const auto report = with(std::nullopt, all);
    result_.rows.push_back({"no fault passes", report.outcome() == Outcome::Pass, said(report)});
  }

  void products(Dtype dtype) {
    const auto* name = rowOf(dtype).name;
    const GemmPlan plan{dtype, Operands::Integer, kN, Options{}.seed};
    const auto tile = exactTile(plan, 0);
    const auto at = static_cast<std::uint64_t>(
        std::find_if(tile.begin(), tile.end(), [](auto value) { return value != 0; }) -
        tile.begin());
    const std::uint64_t index =
        at / kTile * kN + at % kTile;  // a sum that is not zero: the sign of a zero is no value
    const int width = gpu::bytesOf(gpu::outputOf(dtype)) * 8;
    for (const int bit : bits(width))
      expectFail(fmt::format("{} output bit {}", name, bit), {FaultKind::OutputBit, index, bit},
                 {StageKind::Gemm, dtype});
    for (const int bit : bits(gpu::bytesOf(gpu::encodingOf(dtype, true, gpu::Float8::Ocp)) * 8))
      expectFail(fmt::format("{} input bit {}", name, bit), {FaultKind::InputBit, 77, bit},
                 {StageKind::Gemm, dtype});
    if (rowOf(dtype).scale_block)
      for (const int bit : bits(8))
        expectFail(fmt::format("{} scale bit {}", name, bit), {FaultKind::ScaleBit, 9, bit},
                   {StageKind::Gemm, dtype});
    if (rowOf(dtype).sparse)
      for (const int bit : bits(4))
        expectFail(fmt::format("{} place bit {}", name, bit), {FaultKind::PlaceBit, 9, bit},
                   {StageKind::Gemm, dtype});
    if (rowOf(dtype).unit_roundoff == 0) return;
    expectFail(fmt::format("{} not a number", name), {FaultKind::NotANumber, index, 0},
               {StageKind::Gemm, dtype});
    expectFail(fmt::format("{} not a number in random data", name),
               {FaultKind::NotANumber, index, 0}, {StageKind::Gemm, dtype, Operands::Random});
    random(dtype, width);
  }

  /// The fault is in every product, the first one too, so only the sums can tell; what they cannot
  /// tell from rounding is counted apart.
  void random(Dtype dtype, int width) {
    const GemmPlan plan{dtype, Operands::Random, kN, Options{}.seed};
    const auto& row = rowOf(dtype);
    double value = 0;
    for (int k = 0; k < kN; ++k) {
      if (row.sparse && !isKept(streamA(plan.seed), static_cast<std::uint64_t>(k))) continue;
      value += scaledRandom(streamA(plan.seed), static_cast<std::uint64_t>(k), row.significant_bits,
                            row.scale_block) *
               scaledRandom(streamB(plan.seed), static_cast<std::uint64_t>(k), row.significant_bits,
                            row.scale_block);
    }
    for (const int bit : bits(width)) {
      const Fault fault{FaultKind::OutputBit, 0, bit};
      if (std::abs(flipped(value, width, bit) - value) > 2 * sideTolerance(plan) ||
          std::isnan(flipped(value, width, bit)))
        expectFail(fmt::format("{} output bit {} in random data", row.name, bit), fault,
                   {StageKind::Gemm, dtype, Operands::Random});
      else
        ++result_.below_rounding;
    }
  }

  static double flipped(double value, int width, int bit) {
    if (width == 64)
      return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^ 1ULL << bit);
    if (width == 16)
      return gpu::decodeHalf(gpu::encodeFloat(gpu::kHalf, static_cast<float>(value)) ^ 1u << bit);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) ^
                                1u << bit);
  }
  /// The first product is right, what a pulse computes is not: no sum tells, every bit does.
  void pulse() {
    for (const auto dtype : device_.dtypes()) {
      if (rowOf(dtype).unit_roundoff == 0 || rowOf(dtype).sparse) continue;
      auto pulsing = options({StageKind::Power, dtype, Operands::Random});
      pulsing.pulses = 1, pulsing.pulse = kPulse;
      const auto report = with(Fault{FaultKind::OutputBit, 0, 0, 1}, pulsing);
      result_.rows.push_back(
          {fmt::format("{} output bit 0 during a power pulse", rowOf(dtype).name),
           report.outcome() == Outcome::Fail, said(report)});
      if (!every_bit_) return;  // a pulse takes a second
    }
  }

  void slow() {
    const auto dtype = device_.dtypes().front();
    const auto key = fmt::format("gemm_{}_gflops", rowOf(dtype).name);
    auto timed = options({StageKind::Gemm, dtype, Operands::Integer, kRateTime});
    Report report;
    double best = 0;
    for (int i = 0; i < kRateTries && report.outcome() != Outcome::Fail; ++i) {
      timed.floors.clear();
      const auto clean = with(std::nullopt, timed);
      const auto& values = clean.devices.front().stages.front().values;
      if (const auto rate = values.find(key); rate != values.end())
        best = std::max(best, rate->second);
      timed.floors[key] = kSlowShare * best;
      report = with(Fault{FaultKind::SlowKernel, 0, 0}, timed);
    }
    result_.rows.push_back({"slow kernel", report.outcome() == Outcome::Fail, said(report)});
  }

  Device& device_;
  const bool every_bit_;
  const Options& watch_;
  Devices alone_;
  SelfTest result_;
};

}  // namespace

bool SelfTest::good() const { return !rows.empty() && missed().empty(); }

std::string SelfTest::missed() const {
  std::string text;
  for (const auto& row : rows)
    if (!row.caught)
      text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", row.fault, row.said);
  return text;
}

SelfTest selfTest(Devices& devices, std::size_t which, bool every_bit, const Options& watch) {
  Tester tester(devices, which, every_bit, watch);
  auto result = tester.run();
  devices[which] = std::move(tester.release().front());
  return result;
}

}  // namespace muster::burn
