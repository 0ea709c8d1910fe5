// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/golden.h"

#include "validate/burn/first_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

namespace muster::burn {
namespace {

// Integer limits: limit²·max_n is within 2²⁴ (FP32 accumulators), 2⁵³ (FP64), 2³¹ (INT8). FP8
// tensor cores may keep as few as 14 bits while they add, and their results come out as FP16, which
// holds whole numbers up to 2,048: with operands from -2 to 2 (variance 2) that is eight standard
// deviations of a sum of 16,384 products. One of the 2²⁸ results is farther out with a chance of
// 3·10⁻⁷ a seed. With scales of 1 and 2, elements from -1 to 1 have the variance 5/3: nine standard
// deviations.
constexpr std::array kDtypes{
    DtypeRow{Dtype::Fp64, "fp64", 53, 1 << 19, 16384, 0x1p-53},
    DtypeRow{Dtype::Fp32, "fp32", 24, 31, 16384, 0x1p-24},
    DtypeRow{Dtype::Tf32, "tf32", 11, 31, 16384, 0x1p-24},
    DtypeRow{Dtype::Bf16, "bf16", 8, 31, 16384, 0x1p-24},
    DtypeRow{Dtype::Fp16, "fp16", 11, 31, 16384, 0x1p-24},
    DtypeRow{Dtype::Fp8, "fp8", 4, 2, 16384, 0x1p-13},
    DtypeRow{Dtype::Fp8E5m2, "fp8e5m2", 3, 2, 16384, 0x1p-13},
    DtypeRow{Dtype::Mxfp8, "mxfp8", 4, 1, 16384, 0x1p-13, 32},
    DtypeRow{Dtype::Nvfp4, "nvfp4", 2, 1, 16384, 0x1p-13, 16},
    DtypeRow{Dtype::Int8, "int8", 7, 127, 16384, 0},
    DtypeRow{Dtype::Bf16Sparse, "bf16sparse", 8, 31, 16384, 0x1p-24, 0, true},
};
constexpr double kSigmas = 10;
constexpr int kMostThreads = 64;

/// A or B of a plan as rows of K values, made on the fly.
struct Source {
  static Source ofA(const GemmPlan& plan) {
    return {plan, streamA(plan.seed), rowOf(plan.dtype), rowOf(plan.dtype).sparse};
  }
  static Source ofB(const GemmPlan& plan) {
    return {plan, streamB(plan.seed), rowOf(plan.dtype), false};
  }

  const GemmPlan& plan;
  std::uint64_t stream;
  const DtypeRow& row;
  bool sparse;
  bool isZero(int at, int k) const { return sparse && !isKept(stream, index(at, k)); }
  std::uint64_t index(int at, int k) const {
    return static_cast<std::uint64_t>(at) * static_cast<std::uint64_t>(plan.n) +
           static_cast<std::uint64_t>(k);
  }
  std::int64_t integer(int at, int k) const {
    if (isZero(at, k)) return 0;
    return scaledInteger(stream, index(at, k), row.integer_limit, row.scale_block);
  }
  double random(int at, int k) const {
    if (isZero(at, k)) return 0;
    return scaledRandom(stream, index(at, k), row.significant_bits, row.scale_block);
  }
};

/// Σ over the rows of one tile, weighted: one value a k.
std::vector<std::uint64_t> weighted(const Source& source, std::uint64_t weights, int tile) {
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(source.plan.n));
  for (int at = tile * kTile; at < (tile + 1) * kTile; ++at) {
    const std::uint64_t w = weight(weights, static_cast<std::uint64_t>(at));
    for (int k = 0; k < source.plan.n; ++k)
      sums[static_cast<std::size_t>(k)] += w * static_cast<std::uint64_t>(source.integer(at, k));
  }
  return sums;
}

/// In lanes, so that a vector unit can add doubles too. The size is a multiple of kTile.
template <class T>
T dot(const std::vector<T>& a, const std::vector<T>& b) {
  constexpr std::size_t kLanes = 16;
  T sums[kLanes] = {};
  for (std::size_t k = 0; k < a.size(); k += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[k + lane] * b[k + lane];
  return std::accumulate(std::begin(sums), std::end(sums), T{0});
}

std::vector<double> randomRow(const Source& source, int at) {
  std::vector<double> row(static_cast<std::size_t>(source.plan.n));
  for (int k = 0; k < source.plan.n; ++k) row[static_cast<std::size_t>(k)] = source.random(at, k);
  return row;
}

/// work(i) for each i, on all cores: a GPU waits for what its products must be.
template <class Work>
void eachOnAllCores(int count, Work work) {
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1,
                                 std::min(count, kMostThreads));
  FirstError error;
  std::vector<std::jthread> workers;
  for (int first = 0; first < threads; ++first)
    workers.emplace_back([=, &error] {
      error.guard([&] {
        for (int i = first; i < count; i += threads) work(i);
      });
    });
  workers.clear();
  error.rethrow();
}

std::vector<std::vector<double>> tileRows(const Source& source) {
  std::vector<std::vector<double>> sums(
      static_cast<std::size_t>(source.plan.tilesPerSide()),
      std::vector<double>(static_cast<std::size_t>(source.plan.n)));
  eachOnAllCores(source.plan.tilesPerSide(), [&source, &sums](int tile) {
    auto& sum = sums[static_cast<std::size_t>(tile)];
    for (int at = tile * kTile; at < (tile + 1) * kTile; ++at) {
      const auto row = randomRow(source, at);
      for (std::size_t k = 0; k < row.size(); ++k) sum[k] += row[k];
    }
  });
  return sums;
}

}  // namespace

const DtypeRow& rowOf(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)]; }

Result<Dtype> parseDtype(std::string_view name) {
  std::string known;
  for (const auto& row : kDtypes) {
    if (row.name == name) return row.dtype;
    known += std::string(known.empty() ? "" : ", ") + row.name;
  }
  return fail(ErrorCode::InvalidInput,
              fmt::format("there is no number format '{}'; there are {}", name, known));
}

std::vector<std::uint64_t> goldenSums(const GemmPlan& plan) {
  const auto a = Source::ofA(plan), b = Source::ofB(plan);
  const auto side = static_cast<std::size_t>(plan.tilesPerSide());
  std::vector<std::vector<std::uint64_t>> rows(side), columns(side);
  eachOnAllCores(plan.tilesPerSide(), [&](int tile) {
    rows[static_cast<std::size_t>(tile)] = weighted(a, streamRows(plan.seed), tile);
    columns[static_cast<std::size_t>(tile)] = weighted(b, streamColumns(plan.seed), tile);
  });
  std::vector<std::uint64_t> sums(side * side);
  eachOnAllCores(plan.tilesPerSide(), [&](int tile) {
    const auto row = static_cast<std::size_t>(tile);
    for (std::size_t column = 0; column < side; ++column)
      sums[row * side + column] = dot(rows[row], columns[column]);
  });
  return sums;
}

std::vector<std::int64_t> exactTile(const GemmPlan& plan, int tile) {
  const auto a = Source::ofA(plan), b = Source::ofB(plan);
  const auto slice = [&](const Source& source, int of) {
    std::vector<std::vector<std::int64_t>> rows(
        kTile, std::vector<std::int64_t>(static_cast<std::size_t>(plan.n)));
    for (int at = 0; at < kTile; ++at)
      for (int k = 0; k < plan.n; ++k)
        rows[static_cast<std::size_t>(at)][static_cast<std::size_t>(k)] =
            source.integer(of * kTile + at, k);
    return rows;
  };
  const auto rows = slice(a, tile / plan.tilesPerSide()),
             columns = slice(b, tile % plan.tilesPerSide());
  std::vector<std::int64_t> values;
  for (const auto& row : rows)
    for (const auto& column : columns) values.push_back(dot(row, column));
  return values;
}

SideSums expectedSides(const GemmPlan& plan) {
  const auto a = Source::ofA(plan), b = Source::ofB(plan);
  const auto a_tiles = tileRows(a), b_tiles = tileRows(b);
  const auto n = static_cast<std::size_t>(plan.n),
             side = static_cast<std::size_t>(plan.tilesPerSide());
  SideSums sums;
  sums.rows.resize(n * side), sums.columns.resize(n * side);
  eachOnAllCores(plan.n, [&](int line) {
    const auto at = static_cast<std::size_t>(line);
    const auto row = randomRow(a, line), column = randomRow(b, line);
    for (std::size_t tile = 0; tile < side; ++tile) {
      sums.rows[at * side + tile] = dot(row, b_tiles[tile]);
      sums.columns[tile * n + at] = dot(column, a_tiles[tile]);
    }
  });
  return sums;
}

double sideTolerance(const GemmPlan& plan) {
  // A partial sum of k products of operands in (-1, 1) has the variance k/9; each addition rounds
  // it by at most u of itself, evenly. Sparse ones are smaller: the bound holds.
  const double one_value = rowOf(plan.dtype).unit_roundoff * plan.n * std::sqrt(1.0 / 54);
  return kSigmas * 2 * one_value * std::sqrt(kTile);
}

}  // namespace muster::burn
