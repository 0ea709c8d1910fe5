// SPDX-License-Identifier: Apache-2.0
// The kernels, for every vendor. cuda/kernels.cu and hip/kernels.hip give them names and launch
// them. The exact check needs no FP64 unless what is checked is FP64.
#pragma once

#include "validate/burn/gpu/device_code.h"
#include "validate/burn/gpu/launch_shapes.h"

namespace muster::burn::gpu {

inline constexpr int kProbeRounds = 256;
inline constexpr int kCacheReads = 16;
inline constexpr int kVectorBytes = 16;  ///< of one load: the widest that a thread has

GPU_DEVICE std::uint64_t firstIndex() {
  return static_cast<std::uint64_t>(blockIndex()) * static_cast<std::uint64_t>(blockSize()) +
         static_cast<std::uint64_t>(threadIndex());
}

GPU_DEVICE void fillOperandsBody(Encoding encoding, const OperandRule& rule, void* to,
                                 std::uint64_t count) {
  if (encoding == Encoding::E2m1) {  // a byte is one thread's
    for (auto i = 2 * firstIndex(); i < count; i += 2 * gridSize())
      storeTwo(to, i, encode(encoding, rule.element(i)), encode(encoding, rule.element(i + 1)));
    return;
  }
  for (auto i = firstIndex(); i < count; i += gridSize())
    store(encoding, to, i, encode(encoding, rule.element(i)));
}

GPU_DEVICE void countWrongOperandsBody(Encoding encoding, const OperandRule& rule, const void* from,
                                       std::uint64_t count, unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (auto i = firstIndex(); i < count; i += gridSize())
    mine += load(encoding, from, i) != encode(encoding, rule.element(i));
  if (mine) addTo(wrong, mine);
}

GPU_DEVICE void fillScalesBody(const ScaleRule& rule, std::uint8_t* to) {
  for (auto i = firstIndex(); i < rule.count(); i += gridSize()) to[rule.place(i)] = rule.at(i);
}

GPU_DEVICE void countWrongScalesBody(const ScaleRule& rule, const std::uint8_t* from,
                                     unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (auto i = firstIndex(); i < rule.count(); i += gridSize())
    mine += from[rule.place(i)] != rule.at(i);
  if (mine) addTo(wrong, mine);
}

GPU_DEVICE void fillWeightsBody(std::uint64_t seed, std::uint64_t* to, int count) {
  for (auto i = firstIndex(); i < static_cast<std::uint64_t>(count); i += gridSize())
    to[i] = weight(seed, i);
}

/// So many values as one load brings.
template <class Bits>
struct alignas(kVectorBytes) Vector {
  static constexpr int kCount = kVectorBytes / static_cast<int>(sizeof(Bits));
  Bits values[kCount];
};

struct TileSum {
  unsigned long long sum;
  unsigned odd;
};

/// One block a tile, 16 bytes a load: a thread has some rows of every so-manieth column. Addition
/// mod 2⁶⁴ has no order, so atomics keep the sum exact.
template <OutputKind kKind, bool kBits>
GPU_DEVICE void sumTile(const Output& out, int tile, TileSum* shared) {
  using Format = OutputFormat<kKind>;
  using Loaded = Vector<typename Format::Bits>;
  constexpr int kRows = Loaded::kCount, kStrips = kTile / kRows;
  const int side = out.n / kTile, thread = threadIndex();
  const int row = tile / side * kTile + thread % kStrips * kRows, column = tile % side * kTile;
  const auto* values = static_cast<const typename Format::Bits*>(out.c);
  unsigned long long sums[kRows] = {};
  unsigned odd = 0;
#pragma unroll 4
  for (int j = thread / kStrips; j < kTile; j += kThreads / kStrips) {
    const auto loaded = *reinterpret_cast<const Loaded*>(
        values + static_cast<std::uint64_t>(column + j) * static_cast<std::uint64_t>(out.n) + row);
    const unsigned long long column_weight = out.column_weights[column + j];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (kBits) {
        sums[i] += column_weight * loaded.values[i];
      } else {
        const auto whole = Format::whole(loaded.values[i]);
        odd += whole.odd;
        sums[i] += column_weight * static_cast<std::uint64_t>(whole.value);
      }
    }
  }
  unsigned long long sum = 0;
#pragma unroll
  for (int i = 0; i < kRows; ++i) sum += sums[i] * out.row_weights[row + i];
  addTo(&shared->sum, sum);
  if (odd) addTo(&shared->odd, odd);
}
template <bool kBits>
GPU_DEVICE void sumTileOfKind(const Output& out, int tile, TileSum* shared) {
  switch (out.kind) {
    case OutputKind::Double:
      return sumTile<OutputKind::Double, kBits>(out, tile, shared);
    case OutputKind::Float:
      return sumTile<OutputKind::Float, kBits>(out, tile, shared);
    case OutputKind::Half:
      return sumTile<OutputKind::Half, kBits>(out, tile, shared);
    case OutputKind::Int32:
      return sumTile<OutputKind::Int32, kBits>(out, tile, shared);
  }
}
GPU_DEVICE void sumTileOf(const Output& out, int tile, TileSum* shared) {
  if (threadIndex() == 0) *shared = {0, 0};
  meet();
  if (out.over_bits)
    sumTileOfKind<true>(out, tile, shared);
  else
    sumTileOfKind<false>(out, tile, shared);
  meet();
}

GPU_DEVICE void tileSumsBody(const Output& out, std::uint64_t* sums) {
  GPU_SHARED TileSum shared;
  const int tile = blockIndex();
  sumTileOf(out, tile, &shared);
  if (threadIndex() == 0) sums[tile] = shared.sum;
}

GPU_DEVICE void checkTilesBody(const Output& out, const std::uint64_t* golden,
                               unsigned long long product, TileReport* report) {
  GPU_SHARED TileSum shared;
  GPU_SHARED unsigned long long place;
  const int tile = blockIndex(), side = out.n / kTile;
  sumTileOf(out, tile, &shared);
  if (shared.odd == 0 && shared.sum == golden[tile]) return;
  if (threadIndex() == 0) {
    place = addTo(&report->bad, 1ULL);
    if (place < kFirstBad) report->first[place] = {tile, thisUnit(), product, shared.odd};
  }
  meet();
  if (place != 0) return;
  for (int i = threadIndex(); i < kTile * kTile; i += kThreads) {
    const int row = tile / side * kTile + i / kTile, column = tile % side * kTile + i % kTile;
    report->values[i] =
        numberAt(out.kind, out.c,
                 static_cast<std::uint64_t>(column) * static_cast<std::uint64_t>(out.n) + row);
  }
}

/// A sum of floats with what rounding took from it (Knuth's two-sum): as exact as a double for 128
/// values, and FP64 is used once a sum.
struct FloatSum {
  float sum = 0, rest = 0;
  GPU_DEVICE void add(float value) {
    const float next = sum + value, part = next - sum;
    rest += (sum - (next - part)) + (value - part);
    sum = next;
  }
  GPU_DEVICE double total() const { return static_cast<double>(sum) + static_cast<double>(rest); }
};
struct DoubleSum {
  double sum = 0;
  GPU_DEVICE void add(double value) { sum += value; }
  GPU_DEVICE double total() const { return sum; }
};

template <OutputKind kKind, class Sum>
GPU_DEVICE double lineSum(const Output& out, std::uint64_t first, std::uint64_t step) {
  const auto* values = static_cast<const typename OutputFormat<kKind>::Bits*>(out.c);
  Sum sum;
  for (int k = 0; k < kTile; ++k)
    sum.add(OutputFormat<kKind>::number(values[first + static_cast<std::uint64_t>(k) * step]));
  return sum.total();
}

GPU_DEVICE void sideSumsBody(const Output& out, double* rows, double* columns) {
  const int side = out.n / kTile, tile = blockIndex(), thread = threadIndex();
  const int first_row = tile / side * kTile, first_column = tile % side * kTile;
  const auto n = static_cast<std::uint64_t>(out.n);
  const bool of_row = thread < kTile;
  const std::uint64_t first =
      of_row ? static_cast<std::uint64_t>(first_column) * n + first_row + thread
             : static_cast<std::uint64_t>(first_column + thread - kTile) * n + first_row;
  const std::uint64_t step = of_row ? n : 1;
  double sum = 0;
  if (out.kind == OutputKind::Float)
    sum = lineSum<OutputKind::Float, FloatSum>(out, first, step);
  else if (out.kind == OutputKind::Half)
    sum = lineSum<OutputKind::Half, FloatSum>(out, first, step);
  else if (out.kind == OutputKind::Double)
    sum = lineSum<OutputKind::Double, DoubleSum>(out, first, step);
  if (of_row)
    rows[static_cast<std::uint64_t>(first_row + thread) * side + tile % side] = sum;
  else
    columns[static_cast<std::uint64_t>(tile / side) * n + first_column + thread - kTile] = sum;
}

/// Two words a load. `count` is even.
struct alignas(kVectorBytes) TwoWords {
  std::uint64_t words[2];
};
/// Words 2·at and 2·at + 1 as they are without inversion. Two draws of the same seed are one
/// multiplication apart.
template <Pattern kPattern>
GPU_DEVICE TwoWords makeWords(std::uint64_t at, std::uint64_t seed) {
  if (kPattern == Pattern::Random) {
    const std::uint64_t first = seed + (2 * at + 1) * kDrawStep;
    return {{mix(first), mix(first + kDrawStep)}};
  }
  return {
      {patternWord(kPattern, false, 2 * at, seed), patternWord(kPattern, false, 2 * at + 1, seed)}};
}

GPU_DEVICE void noteWord(std::uint64_t index, std::uint64_t expected, std::uint64_t seen,
                         WordReport* report) {
  const auto place = addTo(&report->wrong, 1ULL);
  if (place < kFirstBad) report->first[place] = {index, expected, seen, thisUnit()};
}

GPU_DEVICE void compareWords(const TwoWords& seen, const TwoWords& expected, std::uint64_t at,
                             WordReport* report) {
  for (int half = 0; half < 2; ++half) {
    if (seen.words[half] == expected.words[half]) continue;
    noteWord(2 * at + static_cast<std::uint64_t>(half), expected.words[half], seen.words[half],
             report);
  }
}

/// A step reads and writes one pattern, inverted or not, so each word is made once. Each thread has
/// kInFlight loads under way before it compares the first. No word is touched by two threads.
template <Pattern kPattern, bool kReads, bool kWrites>
GPU_DEVICE void walkBody(const Walk& walk, TwoWords* pairs, std::uint64_t count, std::uint64_t seed,
                         WordReport* report) {
  const std::uint64_t all = count / 2, step = gridSize(), read_mask = walk.read.inverse ? ~0ULL : 0,
                      write_mask = walk.write.inverse ? ~0ULL : 0;
  for (auto first = firstIndex(); first < all; first += kInFlight * step) {
    TwoWords seen[kInFlight];
    if (kReads) {
#pragma unroll
      for (int i = 0; i < kInFlight; ++i)
        if (const auto at = first + static_cast<std::uint64_t>(i) * step; at < all)
          seen[i] = pairs[walk.downwards ? all - 1 - at : at];
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const auto from_start = first + static_cast<std::uint64_t>(i) * step;
      if (from_start >= all) break;
      const auto at = walk.downwards ? all - 1 - from_start : from_start;
      const auto made = makeWords<kPattern>(at, seed);
      if (kReads)
        compareWords(seen[i], {{made.words[0] ^ read_mask, made.words[1] ^ read_mask}}, at, report);
      if (kWrites) pairs[at] = {{made.words[0] ^ write_mask, made.words[1] ^ write_mask}};
    }
  }
}

/// Each word is written by one thread and read by another of its block, kCacheReads times: nothing
/// but the cache holds it in between.
template <Pattern kPattern>
GPU_DEVICE void probeCacheBy(const CacheProbe& probe, bool inverse, std::uint64_t* words,
                             CacheReport* report) {
  const std::uint64_t seed = probe.seed + static_cast<std::uint64_t>(blockIndex());
  for (int i = threadIndex(); i < probe.words; i += blockSize())
    words[i] = patternWord(kPattern, inverse, static_cast<std::uint64_t>(i), seed);
  meet();
  if (probe.fault_word >= 0 && blockIndex() == 0 && threadIndex() == 0)
    words[probe.fault_word % probe.words] ^= 1ULL << (probe.fault_bit % 64);
  meet();
  for (int read = 0; read < kCacheReads; ++read) {
    for (int i = threadIndex(); i < probe.words; i += blockSize()) {
      const int other = probe.words - 1 - i;
      const auto expected = patternWord(kPattern, inverse, static_cast<std::uint64_t>(other), seed);
      const auto seen = words[other];
      if (seen != expected)
        noteWord(static_cast<std::uint64_t>(other), expected, seen, &report->bad);
    }
    asm volatile("" ::: "memory");  // each time anew
  }
  meet();
}
GPU_DEVICE void probeCacheBody(const CacheProbe& probe, std::uint64_t* words, CacheReport* report) {
  for (int inverse = 0; inverse < 2; ++inverse) {
    probeCacheBy<Pattern::Checkerboard>(probe, inverse != 0, words, report);
    probeCacheBy<Pattern::WalkingOne>(probe, inverse != 0, words, report);
    probeCacheBy<Pattern::Address>(probe, inverse != 0, words, report);
    probeCacheBy<Pattern::Random>(probe, inverse != 0, words, report);
  }
  if (threadIndex() == 0)
    addTo(&report->words[thisUnit()],
          static_cast<unsigned long long>(probe.words) * kCacheReads * 8);
}

GPU_DEVICE void blockCrcsBody(const std::uint64_t* words, std::uint64_t count,
                              std::uint32_t* crcs) {
  const std::uint64_t blocks = (count + kCopyBlockWords - 1) / kCopyBlockWords;
  for (auto block = firstIndex(); block < blocks; block += gridSize()) {
    std::uint32_t crc = 0;
    for (auto i = block * kCopyBlockWords; i < count && i < (block + 1) * kCopyBlockWords; ++i)
      crc = crcWord(crc, words[i]);
    crcs[block] = crc;
  }
}

/// One warp or wavefront a block. Matrix units against integer units of the same SM or CU.
GPU_DEVICE void probeBody(std::uint64_t seed, UnitReport* report) {
  constexpr int kLimit = 31, kValues = kEdge * kEdge;
  GPU_SHARED HalfBits a[kValues], b[kValues];
  GPU_SHARED float c[kValues];
  const int unit = thisUnit();
  for (int round = 0; round < kProbeRounds; ++round) {
    const auto from = (static_cast<std::uint64_t>(blockIndex()) * kProbeRounds +
                       static_cast<std::uint64_t>(round)) *
                      kValues;
    for (int i = threadIndex(); i < kValues; i += kLanes) {
      a[i] = static_cast<HalfBits>(
          encodeFloat(kHalf, static_cast<float>(integerOperand(streamA(seed), from + i, kLimit))));
      b[i] = static_cast<HalfBits>(
          encodeFloat(kHalf, static_cast<float>(integerOperand(streamB(seed), from + i, kLimit))));
    }
    meetLanes();
    multiplyByMatrixUnit(a, b, c);
    meetLanes();
    bool wrong = false;
    for (int i = threadIndex(); i < kValues; i += kLanes) {
      std::int64_t exact = 0;
      for (int k = 0; k < kEdge; ++k)
        exact += integerOperand(streamA(seed), from + i / kEdge * kEdge + k, kLimit) *
                 integerOperand(streamB(seed), from + i % kEdge * kEdge + k, kLimit);
      wrong = wrong || !(c[i] == static_cast<float>(exact));
    }
    const bool bad = anyLane(wrong);
    if (threadIndex() == 0) {
      addTo(&report->products[unit], 1ULL);
      if (bad) addTo(&report->wrong[unit], 1ULL);
    }
    meetLanes();
  }
}

GPU_DEVICE void flipBitBody(unsigned char* at, int bytes, int bit) {
  bit %= bytes * 8;
  at[bit / 8] ^= static_cast<unsigned char>(1u << (bit % 8));
}
GPU_DEVICE void setNanBody(unsigned char* at, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = i == bytes - 1 ? 0x7f : 0xff;
}

}  // namespace muster::burn::gpu
