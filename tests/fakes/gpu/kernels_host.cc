// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/gpu/kernels_host.h"

#include "tests/fakes/gpu/fake_units.h"
#include "tests/fakes/gpu/narrow_floats.h"

#include <cmath>
#include <cstring>
#include <vector>

namespace muster::test::kernels {
namespace {

using namespace burn;
using namespace burn::gpu;

struct Sum {
  std::uint64_t sum = 0;
  unsigned odd = 0;
};

std::uint64_t bitsAt(const Output& out, std::uint64_t index) {
  std::uint64_t bits = 0;
  const auto bytes = static_cast<std::size_t>(bytesOf(out.kind));
  std::memcpy(&bits, static_cast<const unsigned char*>(out.c) + index * bytes, bytes);
  return bits;
}

/// By doubles, whatever the format: not as the device does it.
Sum sumOf(const Output& out, int tile) {
  const int side = out.n / kTile;
  Sum sum;
  for (int row = tile / side * kTile; row < (tile / side + 1) * kTile; ++row)
    for (int column = tile % side * kTile; column < (tile % side + 1) * kTile; ++column) {
      const auto index = static_cast<std::uint64_t>(column) * static_cast<std::uint64_t>(out.n) +
                         static_cast<std::uint64_t>(row);
      const double number = numberAt(out.kind, out.c, index);
      const bool whole = std::isfinite(number) && std::trunc(number) == number;
      if (!out.over_bits && !whole) ++sum.odd;
      const auto value =
          out.over_bits ? bitsAt(out, index)
                        : static_cast<std::uint64_t>(static_cast<std::int64_t>(whole ? number : 0));
      sum.sum += out.row_weights[row] * out.column_weights[column] * value;
    }
  return sum;
}

}  // namespace

void fillOperands(Encoding encoding, OperandRule rule, void* to, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto bits = encode(encoding, rule.element(i));
    if (encoding != Encoding::E2m1) {
      store(encoding, to, i, bits);
      continue;
    }
    auto& two = static_cast<std::uint8_t*>(to)[i / 2];
    two = static_cast<std::uint8_t>(i % 2 ? two | bits << 4 : bits);
  }
}
void countWrongOperands(Encoding encoding, OperandRule rule, const void* from, std::uint64_t count,
                        unsigned long long* wrong) {
  for (std::uint64_t i = 0; i < count; ++i)
    *wrong += load(encoding, from, i) != encode(encoding, rule.element(i));
}
void fillScales(const ScaleRule& rule, std::uint8_t* to) {
  for (std::uint64_t i = 0; i < rule.count(); ++i) to[rule.place(i)] = rule.at(i);
}
void countWrongScales(const ScaleRule& rule, const std::uint8_t* from, unsigned long long* wrong) {
  for (std::uint64_t i = 0; i < rule.count(); ++i) *wrong += from[rule.place(i)] != rule.at(i);
}
void fillPlaces(const OperandRule& rule, std::uint32_t* to, std::uint64_t words) {
  for (std::uint64_t i = 0; i < words; ++i) to[i] = keptPlacesWord(rule.stream, i);
}
void countWrongPlaces(const OperandRule& rule, const std::uint32_t* from, std::uint64_t words,
                      unsigned long long* wrong) {
  for (std::uint64_t i = 0; i < words; ++i) *wrong += from[i] != keptPlacesWord(rule.stream, i);
}
void multiplySparse(const SparseFactors& factors) {
  const auto n = static_cast<std::size_t>(factors.n);
  const auto* a = static_cast<const std::uint16_t*>(factors.a);
  const auto* b = static_cast<const std::uint16_t*>(factors.b);
  std::vector<double> rows(n * n), columns(n * n);
  for (std::size_t i = 0; i < n * n; ++i) columns[i] = narrow::brain(b[i]);
  for (std::size_t kept = 0; kept < n * n / 2; ++kept) {
    const auto place = factors.places[kept / 16] >> (kept % 16 * 2) & 3;  // two bits each
    rows[kept / 2 * 4 + place] = narrow::brain(a[kept]);
  }
  for (std::size_t column = 0; column < n; ++column)
    for (std::size_t row = 0; row < n; ++row) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += rows[row * n + k] * columns[column * n + k];
      factors.c[column * n + row] = static_cast<float>(sum);
    }
}
void fillWeights(std::uint64_t seed, std::uint64_t* to, int count) {
  for (int i = 0; i < count; ++i) to[i] = weight(seed, static_cast<std::uint64_t>(i));
}
void tileSums(const Output& out, std::uint64_t* sums) {
  for (int tile = 0; tile < out.n / kTile * (out.n / kTile); ++tile)
    sums[tile] = sumOf(out, tile).sum;
}
void checkTiles(const Output& out, const std::uint64_t* golden, unsigned long long product,
                TileReport* report) {
  const int side = out.n / kTile;
  for (int tile = 0; tile < side * side; ++tile) {
    const auto seen = sumOf(out, tile);
    if (seen.odd == 0 && seen.sum == golden[tile]) continue;
    const auto place = report->bad++;
    if (place < kFirstBad) report->first[place] = {tile, tile % kFakeUnits, product, seen.odd};
    if (place != 0) continue;
    for (int i = 0; i < kTile * kTile; ++i)
      report->values[i] = numberAt(out.kind, out.c,
                                   static_cast<std::uint64_t>(tile % side * kTile + i % kTile) *
                                           static_cast<std::uint64_t>(out.n) +
                                       static_cast<std::uint64_t>(tile / side * kTile + i / kTile));
  }
}
void sideSums(const Output& out, double* rows, double* columns) {
  const int n = out.n, side = n / kTile;
  for (int row = 0; row < n; ++row)
    for (int column = 0; column < n; ++column) {
      const double value =
          numberAt(out.kind, out.c,
                   static_cast<std::uint64_t>(column) * static_cast<std::uint64_t>(n) +
                       static_cast<std::uint64_t>(row));
      auto& row_sum = rows[row * side + column / kTile];
      auto& column_sum = columns[row / kTile * n + column];
      row_sum = column % kTile == 0 ? value : row_sum + value;
      column_sum = row % kTile == 0 ? value : column_sum + value;
    }
}
void walkMemory(const Walk& walk, std::uint64_t* words, std::uint64_t count, std::uint64_t seed,
                WordReport* report) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto at = walk.downwards ? count - 1 - i : i;
    const auto expected = patternWord(walk.read.pattern, walk.read.inverse, at, seed);
    if (walk.reads && words[at] != expected) {
      const auto place = report->wrong++;
      if (place < kFirstBad)
        report->first[place] = {at, expected, words[at], static_cast<int>(at % kFakeUnits)};
    }
    if (walk.writes) words[at] = patternWord(walk.write.pattern, walk.write.inverse, at, seed);
  }
}
void blockCrcs(const std::uint64_t* words, std::uint64_t count, std::uint32_t* crcs) {
  for (std::uint64_t i = 0; i < count; ++i)
    crcs[i / kCopyBlockWords] =
        crcWord(i % kCopyBlockWords ? crcs[i / kCopyBlockWords] : 0, words[i]);
}
void probeUnits(int blocks, UnitReport* report) {
  for (int block = 0; block < blocks; ++block) ++report->products[block % kFakeUnits];
}
void probeCache(const CacheProbe& probe, int blocks, CacheReport* report) {
  for (int block = 0; block < blocks; ++block)
    report->words[block % kFakeUnits] += static_cast<unsigned>(probe.words);
  if (probe.fault_word < 0) return;
  const auto index = static_cast<unsigned long long>(probe.fault_word % probe.words);
  report->bad.first[0] = {index, 0, 1ULL << probe.fault_bit, 0};
  report->bad.wrong = 1;
}
void flipBit(void* at, int bytes, int bit) {
  bit %= bytes * 8;
  static_cast<unsigned char*>(at)[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
}
void setNan(void* at, int bytes) {
  for (int i = 0; i < bytes; ++i) static_cast<unsigned char*>(at)[i] = i == bytes - 1 ? 0x7f : 0xff;
}

}  // namespace muster::test::kernels
