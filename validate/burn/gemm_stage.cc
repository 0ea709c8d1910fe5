// SPDX-License-Identifier: Apache-2.0
// Products. Integer operands: every tile against a golden from integer arithmetic. Random operands:
// the first product by row and column sums, every later one bit for bit against the first. At most
// one product in 200 is plain, for its rate: the report says the share that was verified. Operands
// are read again at the end: corrupted ones spoil all products alike.
#include "validate/burn/golden.h"
#include "validate/burn/stages.h"

#include "base/io/crypto.h"

#include <bit>
#include <cmath>

namespace muster::burn {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kRoundSeconds = 0.25;  ///< between two looks at the clock
constexpr std::size_t kMaxFindings = 8;
constexpr std::uint64_t kMaxRound = 1u << 16;
constexpr std::uint64_t kVerifiedToPlain = 200;  ///< at least 99 % of all products are verified

/// Integer operands: which element of the tile is wrong, and by which bit.
std::string place(const GemmPlan& plan, const BadTile& bad) {
  const auto unit = bad.multiplied_there
                        ? fmt::format("on unit {}", bad.unit)
                        : fmt::format("(multiplied on any unit, checked on unit {})", bad.unit);
  const auto words = fmt::format(
      "product {} {}: tile {} (rows from {}, columns from {})", bad.product, unit, bad.tile,
      bad.tile / plan.tilesPerSide() * kTile, bad.tile % plan.tilesPerSide() * kTile);
  if (plan.operands != Operands::Integer ||
      bad.values.size() != static_cast<std::size_t>(kTile) * kTile)
    return words + " is not what it must be";
  const auto exact = exactTile(plan, bad.tile);
  int wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (bad.values[i] == static_cast<double>(exact[i])) continue;
    if (wrong++ == 0)
      first = fmt::format("row {} column {}: expected {} saw {}",
                          bad.tile / plan.tilesPerSide() * kTile + static_cast<int>(i) / kTile,
                          bad.tile % plan.tilesPerSide() * kTile + static_cast<int>(i) % kTile,
                          exact[i], bad.values[i]);
  }
  return fmt::format("{}: {} wrong values, first at {}", words, wrong, first);
}

/// A value that is no number differs from everything.
bool off(double seen, double expected, double tolerance) {
  return !(std::abs(seen - expected) <= tolerance);
}

class Gemm {
 public:
  Gemm(const GemmPlan& plan, GemmWork& work, Expectations& expectations, StageReport& report)
      : plan_(plan), work_(work), expectations_(expectations), report_(report) {}

  Result<void> run(std::chrono::milliseconds duration) {
    GemmRound plain, verified;
    double seconds = 0;
    if (plan_.operands == Operands::Integer) {
      TRY_OK(expect());
      TRY(first, work_.multiply(1, true));
      add(verified, first);
      seconds = first.seconds / static_cast<double>(std::max<std::uint64_t>(first.products, 1));
    } else {  // its sums are compared, and its bits are what the later ones must be
      TRY(first, work_.multiply(1, false));
      TRY_OK(expect());
      seconds = first.seconds / static_cast<double>(std::max<std::uint64_t>(first.products, 1));
    }
    const auto batch = std::clamp<std::uint64_t>(
        duration.count() == 0 ? 1
                              : static_cast<std::uint64_t>(kRoundSeconds / std::max(seconds, 1e-9)),
        1, kMaxRound);
    const auto end = Clock::now() + duration;
    do {
      TRY(round, work_.multiply(batch, true));
      add(verified, round);
    } while (Clock::now() < end);
    if (const auto few = std::min(batch, verified.products / kVerifiedToPlain); few > 0) {
      TRY(round, work_.multiply(few, false));  // only to say what verifying costs
      add(plain, round);
    }
    TRY(wrong, work_.wrongInputs());
    if (wrong)
      report_.fails(
          fmt::format("{} operands are not what they were made as: memory or its path", wrong));
    conclude(plain, verified);
    return {};
  }

 private:
  /// What verified products must be.
  Result<void> expect() {
    if (plan_.operands == Operands::Integer) {
      auto golden = expectations_.golden(plan_);
      report_.golden = digestOf(golden);
      return work_.setGolden(std::move(golden));
    }
    TRY(sides, work_.sideSums());
    for (auto& finding : compareSides(plan_, sides, expectations_.sides(plan_)))
      report_.fails(std::move(finding));
    TRY(reference, work_.tileSums());
    report_.reference = digestOf(reference);
    return work_.setGolden(std::move(reference));
  }

  void add(GemmRound& sum, const GemmRound& round) { addRound(plan_, sum, round, report_); }

  void conclude(const GemmRound& plain, const GemmRound& verified) {
    const auto gflops = [this](const GemmRound& round) {
      return 2e-9 * std::pow(plan_.n, 3) * static_cast<double>(round.products) / round.seconds;
    };
    const std::string prefix = fmt::format("gemm_{}_", rowOf(plan_.dtype).name);
    report_.values = {{prefix + "gflops", gflops(verified)},
                      {"products", static_cast<double>(verified.products)},
                      {"verified_share", verifiedShare(verified.products, plain.products)},
                      {"bad_tiles", static_cast<double>(verified.bad_tiles)}};
    if (plain.products > 0) {
      report_.values[prefix + "plain_gflops"] = gflops(plain);
      report_.values["verified_rate_share"] = gflops(verified) / gflops(plain);
    }
    if (verified.bad_tiles)
      report_.fails(fmt::format("{} bad tiles in {} products of {}x{}", verified.bad_tiles,
                                verified.products, plan_.n, plan_.n));
    if (verified.products == 0)
      report_.lacks(Outcome::NoData, "no product was verified");
    else if (report_.outcome == Outcome::NoData)
      report_.outcome = Outcome::Pass;
  }

  const GemmPlan& plan_;
  GemmWork& work_;
  Expectations& expectations_;
  StageReport& report_;
};

}  // namespace

std::vector<std::string> compareSides(const GemmPlan& plan, const SideSums& seen,
                                      const SideSums& expected) {
  const double tolerance = sideTolerance(plan);
  std::vector<std::string> findings;
  int rows = 0, columns = 0;
  std::size_t row = 0, column = 0;
  const auto side = static_cast<std::size_t>(plan.tilesPerSide()),
             n = static_cast<std::size_t>(plan.n);
  if (seen.rows.size() != expected.rows.size() || seen.columns.size() != expected.columns.size())
    return {"the device gave sums of another size"};
  for (std::size_t i = 0; i < seen.rows.size(); ++i)
    if (off(seen.rows[i], expected.rows[i], tolerance) && rows++ == 0) row = i / side;
  for (std::size_t i = 0; i < seen.columns.size(); ++i)
    if (off(seen.columns[i], expected.columns[i], tolerance) && columns++ == 0) column = i % n;
  if (rows || columns)
    findings.push_back(
        fmt::format("{} row sums and {} column sums of random data are off by more than rounding "
                    "allows ({:.2g}); first near row {} column {}",
                    rows, columns, tolerance, row, column));
  return findings;
}

void addRound(const GemmPlan& plan, GemmRound& sum, const GemmRound& round, StageReport& report) {
  sum.products += round.products;
  sum.seconds += round.seconds;
  sum.bad_tiles += round.bad_tiles;
  for (const auto& bad : round.first)
    if (report.findings.size() < kMaxFindings) report.fails(place(plan, bad));
}

double verifiedShare(std::uint64_t verified, std::uint64_t plain) {
  const auto all = static_cast<double>(verified + plain);
  return all > 0 ? static_cast<double>(verified) / all : 0;
}

std::string digestOf(const std::vector<std::uint64_t>& numbers) {
  static_assert(std::endian::native == std::endian::little);
  return io::sha256Hex(std::string_view(reinterpret_cast<const char*>(numbers.data()),
                                        numbers.size() * sizeof(std::uint64_t)));
}

std::vector<std::uint64_t> Expectations::golden(const GemmPlan& plan) {
  std::lock_guard lock(mutex_);
  auto& known = golden_[{plan.dtype, plan.n, plan.seed}];
  if (known.empty()) known = goldenSums(plan);
  return known;
}

SideSums Expectations::sides(const GemmPlan& plan) {
  std::lock_guard lock(mutex_);
  auto& known = sides_[{plan.dtype, plan.n, plan.seed}];
  if (known.rows.empty()) known = expectedSides(plan);
  return known;
}

StageReport runGemm(Device& device, const Options& options, const Stage& stage,
                    Expectations& expectations) {
  StageReport report;
  report.name = stage.name();
  const GemmPlan plan{stage.dtype, stage.operands,
                      options.n ? options.n : device.preferredN(stage.dtype), options.seed};
  report.seed = plan.seed;
  report.product = fmt::format("n {}, seed {:x}", plan.n, plan.seed);
  auto work = device.prepareGemm(plan);
  if (!work) {
    report.lacks(Outcome::Error, work.error().str());
    return report;
  }
  if (auto ran = Gemm(plan, **work, expectations, report).run(stage.duration); !ran)
    report.lacks(Outcome::Error, ran.error().str());
  return report;
}

}  // namespace muster::burn
