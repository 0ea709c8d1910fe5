// SPDX-License-Identifier: Apache-2.0
// The kernels' interface on the host: the same values, one after the other.
#include "validate/burn/cuda/kernels.h"

#include "tests/fakes/cuda/fake_cuda.h"

namespace muster::burn::cuda {
namespace {

constexpr int kUnits = test::kFakeUnits;

struct Sum {
  std::uint64_t sum = 0;
  unsigned odd = 0;
};

Sum sumOf(const Output& out, int tile) {
  const int side = out.n / kTile;
  Sum sum;
  for (int row = tile / side * kTile; row < (tile / side + 1) * kTile; ++row)
    for (int column = tile % side * kTile; column < (tile % side + 1) * kTile; ++column) {
      const auto value =
          outputAt(out.kind, out.c,
                   static_cast<std::uint64_t>(column) * static_cast<std::uint64_t>(out.n) +
                       static_cast<std::uint64_t>(row));
      if (!out.over_bits) sum.odd += value.odd;
      sum.sum += out.row_weights[row] * out.column_weights[column] *
                 (out.over_bits ? value.bits : static_cast<std::uint64_t>(value.whole));
    }
  return sum;
}

}  // namespace

void fillOperands(cudaStream_t, Dtype dtype, OperandRule rule, void* to, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) store(dtype, to, i, encode(dtype, rule.at(i)));
}
void countWrongOperands(cudaStream_t, Dtype dtype, OperandRule rule, const void* from,
                        std::uint64_t count, unsigned long long* wrong) {
  for (std::uint64_t i = 0; i < count; ++i)
    *wrong += load(dtype, from, i) != encode(dtype, rule.at(i));
}
void fillWeights(cudaStream_t, std::uint64_t seed, std::uint64_t* to, int count) {
  for (int i = 0; i < count; ++i) to[i] = weight(seed, static_cast<std::uint64_t>(i));
}
void tileSums(cudaStream_t, const Output& out, std::uint64_t* sums) {
  for (int tile = 0; tile < out.n / kTile * (out.n / kTile); ++tile)
    sums[tile] = sumOf(out, tile).sum;
}
void checkTiles(cudaStream_t, const Output& out, const std::uint64_t* golden,
                unsigned long long product, TileReport* report) {
  const int side = out.n / kTile;
  for (int tile = 0; tile < side * side; ++tile) {
    const auto seen = sumOf(out, tile);
    if (seen.odd == 0 && seen.sum == golden[tile]) continue;
    const auto place = report->bad++;
    if (place < kFirstBad) report->first[place] = {tile, tile % kUnits, product, seen.odd};
    if (place != 0) continue;
    for (int i = 0; i < kTile * kTile; ++i)
      report->values[i] = outputAt(out.kind, out.c,
                                   static_cast<std::uint64_t>(tile % side * kTile + i % kTile) *
                                           static_cast<std::uint64_t>(out.n) +
                                       static_cast<std::uint64_t>(tile / side * kTile + i / kTile))
                              .number;
  }
}
void sideSums(cudaStream_t, const Output& out, double* rows, double* columns) {
  const int n = out.n, side = n / kTile;
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      const double value =
          outputAt(out.kind, out.c,
                   static_cast<std::uint64_t>(column) * static_cast<std::uint64_t>(n) +
                       static_cast<std::uint64_t>(row))
              .number;
      auto& row_sum = rows[row * side + column / kTile];
      auto& column_sum = columns[row / kTile * n + column];
      row_sum = column % kTile == 0 ? value : row_sum + value;
      column_sum = row % kTile == 0 ? value : column_sum + value;
    }
}
void walkMemory(cudaStream_t, const Walk& walk, std::uint64_t* words, std::uint64_t count,
                std::uint64_t seed, WordReport* report) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto at = walk.downwards ? count - 1 - i : i;
    const auto expected = patternWord(walk.read.pattern, walk.read.inverse, at, seed);
    if (walk.reads && words[at] != expected) {
      const auto place = report->wrong++;
      if (place < kFirstBad) report->first[place] = {at, expected, words[at]};
    }
    if (walk.writes) words[at] = patternWord(walk.write.pattern, walk.write.inverse, at, seed);
  }
}
void blockCrcs(cudaStream_t, const std::uint64_t* words, std::uint64_t count, std::uint32_t* crcs) {
  for (std::uint64_t i = 0; i < count; ++i)
    crcs[i / kCopyBlockWords] =
        crcWord(i % kCopyBlockWords ? crcs[i / kCopyBlockWords] : 0, words[i]);
}
void probeUnits(cudaStream_t, std::uint64_t, int blocks, UnitReport* report) {
  for (int block = 0; block < blocks; ++block) ++report->products[block % kUnits];
}
void flipBit(cudaStream_t, void* at, int bytes, int bit) {
  bit %= bytes * 8;
  static_cast<unsigned char*>(at)[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
}
void setNan(cudaStream_t, void* at, int bytes) {
  for (int i = 0; i < bytes; ++i) static_cast<unsigned char*>(at)[i] = i == bytes - 1 ? 0x7f : 0xff;
}

}  // namespace muster::burn::cuda
