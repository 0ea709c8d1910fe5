// SPDX-License-Identifier: Apache-2.0
// The kernels' own code on the host's threads, against sums and searches that are written in
// another way. What only a GPU has (matrix units, its barriers) is the device_code.h of the tests.
#define MUSTER_DEVICE_CODE "tests/fakes/gpu/device_code_host.h"
#include "validate/burn/gpu/sparse_bodies.h"

#include "tests/fakes/gpu/kernels_host.h"
#include "tests/fakes/gpu/narrow_floats.h"
#include "validate/burn/golden.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace muster::burn::gpu {
namespace {

constexpr int kN = 2 * kTile, kValues = kN * kN, kTiles = 4;

/// A column-major product of whole numbers, in the format's own bits.
struct Product {
  explicit Product(OutputKind output, bool over_bits) : kind(output), bits(over_bits) {
    for (int i = 0; i < kN; ++i) {
      rows.push_back(weight(11, static_cast<std::uint64_t>(i)));
      columns.push_back(weight(12, static_cast<std::uint64_t>(i)));
    }
    for (int i = 0; i < kValues; ++i)
      set(i, static_cast<double>(integerOperand(7, static_cast<std::uint64_t>(i), 1500)));
  }
  void set(int index, double value) {
    auto* at = memory.data() + index * bytesOf(kind);
    const auto put = [at](auto narrow) { std::memcpy(at, &narrow, sizeof narrow); };
    if (kind == OutputKind::Double) put(value);
    if (kind == OutputKind::Float) put(static_cast<float>(value));
    if (kind == OutputKind::Half) put(static_cast<_Float16>(value));
    if (kind == OutputKind::Int32) put(static_cast<std::int32_t>(value));
  }
  Output view() const { return {memory.data(), kind, bits, kN, rows.data(), columns.data()}; }

  OutputKind kind;
  bool bits;
  std::vector<std::uint64_t> rows, columns;
  alignas(16) std::array<char, kValues * 8> memory{};
};

class EveryOutput : public testing::TestWithParam<OutputKind> {};

TEST_P(EveryOutput, tileSumsAreThoseOfTheDefinition) {
  for (const bool bits : {false, true}) {
    auto product = std::make_unique<Product>(GetParam(), bits);
    std::vector<std::uint64_t> seen(kTiles), expected(kTiles);
    const auto view = product->view();
    onHost(kTiles, kThreads, [&] { tileSumsBody(view, seen.data()); });
    test::kernels::tileSums(view, expected.data());
    EXPECT_EQ(seen, expected) << "over bits: " << bits;
  }
}

TEST_P(EveryOutput, aChangedValueIsFoundWithItsTileAndItsNeighboursAreGood) {
  auto product = std::make_unique<Product>(GetParam(), false);
  std::vector<std::uint64_t> golden(kTiles);
  test::kernels::tileSums(product->view(), golden.data());
  const int row = 200, column = 77, index = column * kN + row;
  product->set(index, 1999);
  auto report = std::make_unique<TileReport>();
  *report = {};
  const auto view = product->view();
  onHost(kTiles, kThreads, [&] { checkTilesBody(view, golden.data(), 41, report.get()); });
  ASSERT_EQ(report->bad, 1u);
  EXPECT_EQ(report->first[0].tile, 2) << "row-major: second row of tiles, first column";
  EXPECT_EQ(report->first[0].product, 41u);
  EXPECT_EQ(report->first[0].odd, 0u);
  EXPECT_EQ(report->values[(row - kTile) * kTile + column], 1999.0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOutput,
                         testing::Values(OutputKind::Double, OutputKind::Float, OutputKind::Half,
                                         OutputKind::Int32));

TEST(KernelBodies, whatIsNoWholeNumberIsOddInEveryFloat) {
  for (const auto kind : {OutputKind::Double, OutputKind::Float, OutputKind::Half})
    for (const double value : {0.5, std::nan(""), std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity()}) {
      auto product = std::make_unique<Product>(kind, false);
      product->set(0, 0);
      std::vector<std::uint64_t> golden(kTiles);
      test::kernels::tileSums(product->view(), golden.data());
      product->set(0, value);
      auto report = std::make_unique<TileReport>();
      *report = {};
      const auto view = product->view();
      onHost(kTiles, kThreads, [&] { checkTilesBody(view, golden.data(), 0, report.get()); });
      EXPECT_EQ(report->bad, 1u) << value;
      EXPECT_EQ(report->first[0].odd, 1u) << value;
    }
}

/// Sums of 128 floats without FP64 are as good as with it: what is compared is the rounding of the
/// product, which is a thousand times larger.
TEST(KernelBodies, sideSumsWithoutDoublesAreThoseOfDoubles) {
  for (const auto kind : {OutputKind::Float, OutputKind::Half, OutputKind::Double}) {
    auto product = std::make_unique<Product>(kind, true);
    for (int i = 0; i < kValues; ++i)
      product->set(i, randomOperand(5, static_cast<std::uint64_t>(i), 24) *
                          std::ldexp(1, i % 11));  // of many sizes: much to lose
    std::vector<double> rows(2 * kN), columns(2 * kN), right_rows(2 * kN), right_columns(2 * kN);
    const auto view = product->view();
    onHost(kTiles, kThreads, [&] { sideSumsBody(view, rows.data(), columns.data()); });
    test::kernels::sideSums(view, right_rows.data(), right_columns.data());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_NEAR(rows[i], right_rows[i], 1e-9) << i;
      EXPECT_NEAR(columns[i], right_columns[i], 1e-9) << i;
    }
  }
}

template <Pattern kPattern>
void walkAllWays(std::uint64_t count) {
  for (const bool downwards : {false, true})
    for (const bool inverse : {false, true}) {
      std::vector<TwoWords> words(count / 2);
      auto* flat = reinterpret_cast<std::uint64_t*>(words.data());
      const MemoryWord one{kPattern, inverse}, other{kPattern, !inverse};
      WordReport report{};
      const auto run = [&](const Walk& walk) {
        onHost(3, kThreads, [&] {
          if (walk.reads && walk.writes)
            walkBody<kPattern, true, true>(walk, words.data(), count, 99, &report);
          else if (walk.reads)
            walkBody<kPattern, true, false>(walk, words.data(), count, 99, &report);
          else
            walkBody<kPattern, false, true>(walk, words.data(), count, 99, &report);
        });
      };
      run({downwards, false, true, {}, one});
      for (std::uint64_t i = 0; i < count; ++i)
        ASSERT_EQ(flat[i], patternWord(kPattern, inverse, i, 99)) << i << " of " << count;
      run({downwards, true, true, one, other});
      EXPECT_EQ(report.wrong, 0u);
      const auto broken = count - 3;
      flat[broken] ^= 1ULL << 40;
      run({downwards, true, false, other, {}});
      ASSERT_EQ(report.wrong, 1u);
      EXPECT_EQ(report.first[0].index, broken);
      EXPECT_EQ(report.first[0].expected ^ report.first[0].seen, 1ULL << 40);
    }
}

TEST(KernelBodies, walksTouchEveryWordOnceInEveryPattern) {
  for (const std::uint64_t count : {8ULL, 1024ULL, 2 * 256 * 3 * 4 + 10ULL}) {
    walkAllWays<Pattern::Zeros>(count);
    walkAllWays<Pattern::Checkerboard>(count);
    walkAllWays<Pattern::Address>(count);
    walkAllWays<Pattern::WalkingOne>(count);
    walkAllWays<Pattern::Random>(count);
  }
}

TEST(KernelBodies, operandsAreTheirRulesInEveryEncodingAndAChangedOneIsCounted) {
  constexpr std::uint64_t kCount = 5000;
  for (const auto encoding :
       {Encoding::Double, Encoding::Float, Encoding::Brain, Encoding::Half, Encoding::E4m3,
        Encoding::E5m2, Encoding::E4m3Fnuz, Encoding::E5m2Fnuz, Encoding::E2m1, Encoding::Int8}) {
    const OperandRule rule{true, 2, 3, 77, 0, 0};
    std::vector<std::uint64_t> memory(kCount);
    auto* bytes = reinterpret_cast<unsigned char*>(memory.data());
    unsigned long long wrong = 0;
    onHost(2, kThreads, [&] { fillOperandsBody(encoding, rule, bytes, kCount); });
    onHost(2, kThreads, [&] { countWrongOperandsBody(encoding, rule, bytes, kCount, &wrong); });
    EXPECT_EQ(wrong, 0u);
    bytes[offsetOf(encoding, 4321)] ^= 4;
    onHost(2, kThreads, [&] { countWrongOperandsBody(encoding, rule, bytes, kCount, &wrong); });
    EXPECT_EQ(wrong, 1u);
  }
}

/// A pattern of scales in a plain table, brought into the layout by copying blocks of 32 lines, as
/// a library of tensors does it with views.
std::vector<std::uint8_t> inTiles(const std::vector<std::uint8_t>& plain, std::size_t lines,
                                  std::size_t blocks) {
  std::vector<std::uint8_t> tiles;
  for (std::size_t line = 0; line < lines; line += 128)
    for (std::size_t block = 0; block < blocks; block += 4)
      for (std::size_t row = 0; row < 32; ++row)
        for (std::size_t part = 0; part < 4; ++part)
          for (std::size_t column = 0; column < 4; ++column)
            tiles.push_back(plain[(line + part * 32 + row) * blocks + block + column]);
  return tiles;
}

TEST(KernelBodies, scalesLieInTilesAndMultiplyTheirBlocks) {
  for (const auto& [encoding, block] :
       {std::pair{ScaleEncoding::E8m0, 32}, std::pair{ScaleEncoding::E4m3, 16}}) {
    const ScaleRule rule{{true, 1, 4, 31, block, 0}, encoding, ScaleLayout::Tiles, kN};
    std::vector<std::uint8_t> plain(rule.count()), seen(rule.count());
    for (std::uint64_t i = 0; i < rule.count(); ++i) plain[i] = rule.at(i);
    onHost(2, kThreads, [&] { fillScalesBody(rule, seen.data()); });
    EXPECT_EQ(seen, inTiles(plain, kN, kN / static_cast<std::size_t>(block)));
    unsigned long long wrong = 0;
    onHost(2, kThreads, [&] { countWrongScalesBody(rule, seen.data(), &wrong); });
    EXPECT_EQ(wrong, 0u);
    seen[777] ^= 1;
    onHost(2, kThreads, [&] { countWrongScalesBody(rule, seen.data(), &wrong); });
    EXPECT_EQ(wrong, 1u);
  }
}

TEST(KernelBodies, scalesOfHipBlasLtLieRowByRow) {
  const ScaleRule rule{{true, 1, 4, 31, 32, 0}, ScaleEncoding::E8m0, ScaleLayout::Rows, kN};
  std::vector<std::uint8_t> plain(rule.count()), seen(rule.count());
  for (std::uint64_t i = 0; i < rule.count(); ++i) plain[i] = rule.at(i);
  onHost(2, kThreads, [&] { fillScalesBody(rule, seen.data()); });
  EXPECT_EQ(seen, plain);
}

/// Element times scale, decoded by the definitions, is what goldens and sums are made of.
TEST(FloatFormats, elementsTimesScalesAreTheOperandsOfTheGolden) {
  for (const bool integer : {true, false})
    for (const int block : {32, 16}) {
      const bool four = block == 16;
      const int bits = four ? 2 : 4;
      const OperandRule rule{integer, 1, bits, 5, block, four && !integer ? 2 : 0};
      std::set<double> scales;
      for (std::uint64_t i = 0; i < 4096; ++i) {
        const auto stored = static_cast<std::uint32_t>(
            encode(four ? Encoding::E2m1 : Encoding::E4m3, rule.element(i)));
        const auto scale =
            encodeScale(four ? ScaleEncoding::E4m3 : ScaleEncoding::E8m0, rule.exponent(i));
        const double element = four ? test::narrow::e2m1(stored) : test::narrow::e4m3(stored);
        const double factor = four ? test::narrow::e4m3(scale) : test::narrow::e8m0(scale);
        scales.insert(factor);
        EXPECT_EQ(element * factor, integer ? static_cast<double>(scaledInteger(5, i, 1, block))
                                            : scaledRandom(5, i, bits, block))
            << i;
      }
      EXPECT_EQ(scales.size(), 2u) << "scales that never change would not show that they are used";
    }
}

TEST(KernelBodies, crcsAreCastagnolisAndOneABlock) {
  // "123456789" padded with zeros to two words: by the bytes, from the published table's
  // polynomial.
  const std::uint64_t words[] = {0x3837363534333231ULL, 0x39};
  std::uint32_t by_bytes = 0;
  for (const auto byte : std::bit_cast<std::array<unsigned char, 16>>(words)) {
    by_bytes ^= byte;
    for (int bit = 0; bit < 8; ++bit)
      by_bytes = by_bytes & 1 ? by_bytes >> 1 ^ 0x82f63b78u : by_bytes >> 1;
  }
  std::uint32_t seen = 0;
  onHost(1, kThreads, [&] { blockCrcsBody(words, 2, &seen); });
  EXPECT_EQ(seen, by_bytes);
  std::vector<std::uint64_t> many(3 * kCopyBlockWords, 42);
  many[kCopyBlockWords + 5] = 43;
  std::uint32_t crcs[3] = {};
  onHost(1, kThreads, [&] { blockCrcsBody(many.data(), many.size(), crcs); });
  EXPECT_EQ(crcs[0], crcs[2]);
  EXPECT_NE(crcs[0], crcs[1]);
}

TEST(KernelBodies, cachesAreReadByOtherThreadsThanWroteThemAndFaultsHaveTheirPlace) {
  constexpr int kWords = 1000, kBlocks = 3;
  for (const std::int64_t fault : {std::int64_t{-1}, std::int64_t{kWords + 7}}) {
    const CacheProbe probe{17, kWords, fault, 35};
    auto report = std::make_unique<CacheReport>();
    *report = {};
    onHost(kBlocks, kThreads, [&] { probeCacheBody(probe, sharedWords(), report.get()); });
    for (int unit = 0; unit < kBlocks; ++unit)
      EXPECT_EQ(report->words[unit], static_cast<unsigned>(kWords * kCacheReads * 8));
    if (fault < 0) {
      EXPECT_EQ(report->bad.wrong, 0u);
      continue;
    }
    EXPECT_EQ(report->bad.wrong, static_cast<unsigned>(kCacheReads * 8))
        << "every pattern, every read, one block";
    EXPECT_EQ(report->bad.first[0].index, 7u);
    EXPECT_EQ(report->bad.first[0].expected ^ report->bad.first[0].seen, 1ULL << 35);
    EXPECT_EQ(report->bad.first[0].unit, 0);
  }
}

TEST(KernelBodies, probesCountEveryProductAndEveryWrongOne) {
  for (const int fault : {0, 1}) {
    g_matrix_fault = fault;
    auto report = std::make_unique<UnitReport>();
    *report = {};
    onHost(4, kLanes, [&] { probeBody(3, report.get()); });
    for (int unit = 0; unit < 4; ++unit) {
      EXPECT_EQ(report->products[unit], static_cast<unsigned>(kProbeRounds));
      EXPECT_EQ(report->wrong[unit], fault ? static_cast<unsigned>(kProbeRounds) : 0u);
    }
  }
  g_matrix_fault = 0;
}

/// Every whole number and fraction that operands are made of comes back from its bits, by decoders
/// that share nothing with the encoder.
TEST(FloatFormats, whatIsEncodedIsDecodedByTheDefinition) {
  using Decoder = double (*)(std::uint32_t);
  struct Row {
    Encoding encoding;
    int bits;
    Decoder decode;
  };
  for (const auto& row :
       {Row{Encoding::Half, 11, test::narrow::half}, Row{Encoding::Brain, 8, test::narrow::brain},
        Row{Encoding::E4m3, 4, test::narrow::e4m3}, Row{Encoding::E5m2, 3, test::narrow::e5m2},
        Row{Encoding::E4m3Fnuz, 4, test::narrow::e4m3Fnuz},
        Row{Encoding::E5m2Fnuz, 3, test::narrow::e5m2Fnuz}}) {
    const int most = 1 << row.bits;
    for (int whole = -most; whole <= most; ++whole)
      for (const double scale : {1.0, std::ldexp(1, -row.bits)}) {
        const double value = whole * scale;
        EXPECT_EQ(row.decode(static_cast<std::uint32_t>(encode(row.encoding, value))), value)
            << static_cast<int>(row.encoding);
      }
    EXPECT_EQ(row.decode(static_cast<std::uint32_t>(encode(row.encoding, -0.0))), 0.0)
        << "a negative zero is a NaN where there is one zero only";
  }
}

TEST(FloatFormats, knownBitsOfEachFormat) {  // Source: IEEE 754; OCP OFP8; CDNA 3 ISA
  EXPECT_EQ(encode(Encoding::Brain, 1.0), 0x3f80u);
  EXPECT_EQ(encode(Encoding::Brain, -31.0), 0xc1f8u);
  EXPECT_EQ(encode(Encoding::Half, 1.0), 0x3c00u);
  EXPECT_EQ(encode(Encoding::Half, -0.5), 0xb800u);
  EXPECT_EQ(encode(Encoding::E4m3, 1.0), 0x38u);
  EXPECT_EQ(encode(Encoding::E4m3, 3.0), 0x44u);
  EXPECT_EQ(encode(Encoding::E4m3, -0.9375), 0xb7u);
  EXPECT_EQ(encode(Encoding::E4m3, 0.0), 0u);
  EXPECT_EQ(encode(Encoding::E5m2, 1.0), 0x3cu);
  EXPECT_EQ(encode(Encoding::E5m2, -1.75), 0xbfu);
  EXPECT_EQ(encode(Encoding::E4m3Fnuz, 1.0), 0x40u);
  EXPECT_EQ(encode(Encoding::E5m2Fnuz, 1.0), 0x40u);
  EXPECT_EQ(encode(Encoding::E2m1, 1.0), 2u);
  EXPECT_EQ(encode(Encoding::E2m1, -3.0), 13u);
  EXPECT_EQ(encodeScale(ScaleEncoding::E8m0, 0), 127u);
  EXPECT_EQ(encodeScale(ScaleEncoding::E4m3, 1), 0x40u);
  EXPECT_EQ(encode(Encoding::Int8, -127.0), 0x81u);
}

/// A and B of a plan, as they lie in a GPU's memory.
struct SparseProblem {
  SparseProblem(int edge, Operands operands)
      : plan{Dtype::Bf16Sparse, operands, edge, 77},
        of_a{operands == Operands::Integer, 31, 8, streamA(plan.seed), 0, 0, true},
        of_b{operands == Operands::Integer, 31, 8, streamB(plan.seed), 0, 0, false},
        values(static_cast<std::size_t>(edge) * static_cast<std::size_t>(edge)),
        a(values / 2 + 8),
        b(values + 8),
        places(values / 32),
        c(values, -1) {
    test::kernels::fillOperands(Encoding::Brain, of_a, aligned(a), values / 2);
    test::kernels::fillOperands(Encoding::Brain, of_b, aligned(b), values);
    onHost(2, kThreads, [this] { fillPlacesBody(of_a, places.data(), places.size()); });
  }
  /// Loads are of 16 bytes.
  static std::uint16_t* aligned(std::vector<std::uint16_t>& memory) {
    return reinterpret_cast<std::uint16_t*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 15) /
                                            16 * 16);
  }
  SparseFactors factors() { return {aligned(a), places.data(), aligned(b), c.data(), plan.n}; }

  GemmPlan plan;
  OperandRule of_a, of_b;
  std::size_t values;
  std::vector<std::uint16_t> a, b;
  std::vector<std::uint32_t> places;
  std::vector<float> c;
};

TEST(SparsePlaces, twoOfEachFourAreKeptAndEveryPairOccurs) {
  std::map<std::uint32_t, int> seen;
  for (std::uint64_t group = 0; group < 6'000; ++group) {
    int kept = 0;
    for (std::uint64_t i = 0; i < 4; ++i) kept += isKept(5, 4 * group + i);
    ASSERT_EQ(kept, 2) << group;
    const auto first = keptIndex(5, 2 * group), second = keptIndex(5, 2 * group + 1);
    EXPECT_LT(first, second) << "hardware wants places in order";
    EXPECT_TRUE(isKept(5, first) && isKept(5, second));
    EXPECT_EQ(first / 4, group);
    EXPECT_EQ(second / 4, group);
    ++seen[keptPlaces(5, group)];
    EXPECT_EQ(keptPlacesWord(5, group / 8) >> (group % 8 * 4) & 15, keptPlaces(5, group));
  }
  ASSERT_EQ(seen.size(), 6u);
  for (const auto& [places, count] : seen) {
    EXPECT_LT(places & 3, places >> 2);
    EXPECT_NEAR(count, 1'000, 150) << places;
  }
}

/// The golden knows neither fragments nor compression: sums of a matrix of which half is zero.
TEST(SparseBodies, everyTileOfAProductIsExactlyTheGolden) {
  SparseProblem problem(2 * kTile, Operands::Integer);
  const auto factors = problem.factors();
  onHost(4, kThreads, [&] { multiplySparseBody(factors); });
  std::vector<std::uint64_t> rows, columns, seen(4);
  for (std::uint64_t i = 0; i < 2 * kTile; ++i) {
    rows.push_back(weight(streamRows(problem.plan.seed), i));
    columns.push_back(weight(streamColumns(problem.plan.seed), i));
  }
  test::kernels::tileSums(
      {problem.c.data(), OutputKind::Float, false, 2 * kTile, rows.data(), columns.data()},
      seen.data());
  EXPECT_EQ(seen, goldenSums(problem.plan));
  const auto exact = exactTile(problem.plan, 1);  // rows from 0, columns from 128
  for (int row = 0; row < kTile; row += 17)
    for (int column = 0; column < kTile; column += 13)
      EXPECT_EQ(problem.c[static_cast<std::size_t>((kTile + column) * 2 * kTile + row)],
                static_cast<float>(exact[static_cast<std::size_t>(row * kTile + column)]));
}

TEST(SparseBodies, randomDataIsTheProductByDefinition) {
  SparseProblem problem(kTile, Operands::Random);
  const auto factors = problem.factors();
  onHost(1, kThreads, [&] { multiplySparseBody(factors); });
  const auto seen = problem.c;
  test::kernels::multiplySparse(factors);
  double most = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_NEAR(seen[i], problem.c[i], 1e-4) << i;
    most = std::max(most, std::abs(static_cast<double>(seen[i])));
  }
  EXPECT_GT(most, 4) << "there was something to compare";
}

TEST(SparseBodies, blocksOfAnyNumberOfTilesCoverEachTileOnce) {
  for (const int side : {1, 2, 7, 8, 9, 16, 21}) {
    std::map<std::pair<int, int>, int> seen;
    for (int block = 0; block < side * side; ++block) {
      const auto tile = sparseTileOf(block, side);
      ++seen[{tile.row, tile.column}];
      EXPECT_LE(tile.row, (side - 1) * kTile);
      EXPECT_LE(tile.column, (side - 1) * kTile);
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(side * side)) << side;
  }
}

TEST(SparseBodies, wrongPlacesAreCounted) {
  SparseProblem problem(kTile, Operands::Integer);
  unsigned long long wrong = 0;
  const auto count = [&] {
    onHost(2, kThreads, [&] {
      countWrongPlacesBody(problem.of_a, problem.places.data(), problem.places.size(), &wrong);
    });
  };
  count();
  EXPECT_EQ(wrong, 0u);
  problem.places[99] ^= 1u << 30;
  count();
  EXPECT_EQ(wrong, 1u);
}

}  // namespace
}  // namespace muster::burn::gpu
