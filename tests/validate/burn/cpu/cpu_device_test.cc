// SPDX-License-Identifier: Apache-2.0
// The host's back end: goldens against products by definition, both kernels, memory, copies,
// sensors.
#include "validate/burn/cpu/cpu_device.h"
#include "validate/burn/cpu/blas.h"
#include "validate/burn/cpu/cpu_sensors.h"
#include "validate/burn/cpu/kernels.h"
#include "validate/burn/golden.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>

namespace muster::burn {
namespace {

/// A·Bᵀ of integer operands by definition, in integers.
std::vector<std::int64_t> byDefinition(const GemmPlan& plan) {
  const auto n = static_cast<std::size_t>(plan.n);
  const auto limit = rowOf(plan.dtype).integer_limit;
  std::vector<std::int64_t> c(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t k = 0; k < n; ++k)
        c[i * n + j] += integerOperand(streamA(plan.seed), i * n + k, limit) *
                        integerOperand(streamB(plan.seed), j * n + k, limit);
  return c;
}

TEST(Golden, isTheWeightedSumOfTheProductByDefinition) {
  const GemmPlan plan{Dtype::Fp64, Operands::Integer, 2 * kTile, 42};
  const auto c = byDefinition(plan);
  const auto golden = goldenSums(plan);
  ASSERT_EQ(golden.size(), 4u);
  for (int tile = 0; tile < 4; ++tile) {
    std::uint64_t sum = 0;
    for (int i = tile / 2 * kTile; i < (tile / 2 + 1) * kTile; ++i)
      for (int j = tile % 2 * kTile; j < (tile % 2 + 1) * kTile; ++j)
        sum += weight(streamRows(42), static_cast<std::uint64_t>(i)) *
               weight(streamColumns(42), static_cast<std::uint64_t>(j)) *
               static_cast<std::uint64_t>(c[static_cast<std::size_t>(i * plan.n + j)]);
    EXPECT_EQ(golden[static_cast<std::size_t>(tile)], sum) << tile;
  }
  const auto exact = exactTile(plan, 3);
  EXPECT_EQ(exact[5 * kTile + 7], c[static_cast<std::size_t>((kTile + 5) * plan.n + kTile + 7)]);
}

TEST(Golden, noSumOfAnyFormatCanLeaveItsAccumulator) {
  for (const auto dtype :
       {Dtype::Fp64, Dtype::Fp32, Dtype::Tf32, Dtype::Bf16, Dtype::Fp16, Dtype::Int8}) {
    const auto& row = rowOf(dtype);
    const double most =
        static_cast<double>(row.integer_limit) * static_cast<double>(row.integer_limit) * row.max_n;
    EXPECT_LE(most, dtype == Dtype::Fp64   ? 0x1p53
                    : dtype == Dtype::Int8 ? 0x1p31
                                           : 0x1p24)
        << row.name;
    EXPECT_LE(static_cast<double>(row.integer_limit), std::ldexp(1, row.significant_bits))
        << row.name << ": the operand itself is exact";
  }
}

template <class Value>
void expectOwnKernelIsRight() {
  constexpr int kN = 384;  // more than one panel deep
  const GemmPlan plan{Dtype::Fp32, Operands::Integer, kN, 7};
  std::vector<Value> a(kN * kN), b(kN * kN), c(kN * kN, Value{9});
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<Value>(integerOperand(streamA(7), i, 31)),
    b[i] = static_cast<Value>(integerOperand(streamB(7), i, 31));
  cpu::multiply(a.data(), b.data(), c.data(), kN);
  const auto expected = byDefinition(plan);
  for (std::size_t i = 0; i < c.size(); ++i)
    ASSERT_EQ(static_cast<std::int64_t>(c[i]), expected[i]) << i;
  std::fill(c.begin(), c.end(), Value{9});
  cpu::Blas::ofThisHost().multiply(a.data(), b.data(), c.data(), kN);
  for (std::size_t i = 0; i < c.size(); ++i)
    ASSERT_EQ(static_cast<std::int64_t>(c[i]), expected[i]) << cpu::Blas::ofThisHost().name();
}
TEST(CpuKernels, floatProductsAreExact) { expectOwnKernelIsRight<float>(); }
TEST(CpuKernels, doubleProductsAreExact) { expectOwnKernelIsRight<double>(); }

TEST(CpuKernels, aValueThatIsNoIntegerIsOdd) {
  std::vector<std::uint64_t> ones(kTile, 1);
  std::vector<float> tile(kTile * kTile, 3);
  EXPECT_EQ(cpu::integerSum(tile.data(), kTile, ones.data(), ones.data()).sum, 3u * kTile * kTile);
  EXPECT_EQ(cpu::integerSum(tile.data(), kTile, ones.data(), ones.data()).odd, 0u);
  const float kInfinity = std::numeric_limits<float>::infinity(),
              kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {kNan, kInfinity, -kInfinity, 3.5f, 1e30f, -0x1p31f}) {
    tile[777] = bad;
    EXPECT_EQ(cpu::integerSum(tile.data(), kTile, ones.data(), ones.data()).odd, 1u) << bad;
  }
  tile[777] = -3;
  EXPECT_EQ(cpu::integerSum(tile.data(), kTile, ones.data(), ones.data()).sum,
            3u * kTile * kTile - 6);
}

TEST(CpuKernels, twoInfinitiesDoNotCancelOut) {  // Inf − Inf is no difference to whoever subtracts
  std::vector<std::uint64_t> ones(kTile, 1);
  std::vector<float> tile(kTile * kTile, std::numeric_limits<float>::infinity());
  EXPECT_EQ(cpu::integerSum(tile.data(), kTile, ones.data(), ones.data()).odd,
            static_cast<std::uint32_t>(kTile * kTile));
}

TEST(CpuKernels, theTableIsTheCrcBitByBit) {
  std::uint32_t table = 0, bits = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    table = cpu::crcOfWord(table, draw(1, i)), bits = crcWord(bits, draw(1, i));
    ASSERT_EQ(table, bits) << i;
  }
}

TEST(CpuMemory, everyStepReadsWhatTheOneBeforeWrote) {
  auto device = makeCpuDevice();
  auto memory = device->prepareMemory(1 << 20);
  ASSERT_TRUE(memory);
  EXPECT_EQ((*memory)->bytes(), 1u << 20);
  const MemoryWord zero{Pattern::Random, false}, one{Pattern::Random, true};
  ASSERT_EQ((*memory)->step({false, {}, zero, {}}, 5)->wrong_words, 0u);
  EXPECT_EQ((*memory)->step({true, zero, one, {}}, 5)->wrong_words, 0u);
  EXPECT_EQ((*memory)->step({false, one, {}, {}}, 5)->wrong_words, 0u);
  const auto other = (*memory)->step({false, zero, {}, {}}, 5);
  EXPECT_EQ(other->wrong_words, (1u << 20) / 8) << "the inverse is wrong everywhere";
  EXPECT_EQ(other->first.front().seen, ~other->first.front().expected);
  EXPECT_GT((*memory)->step({false, one, {}, {}}, 6)->wrong_words, 0u) << "another seed";
}

TEST(CpuMemory, moreThanThereIsIsRefused) {
  EXPECT_EQ(makeCpuDevice()->prepareMemory(1ULL << 60).error().code(), ErrorCode::Unavailable);
}

TEST(CpuGemm, sizesAndFormatsAreBounded) {
  auto device = makeCpuDevice();
  for (const int n : {0, 64, 200, 1 << 20})
    EXPECT_EQ(device->prepareGemm({Dtype::Fp32, Operands::Integer, n, 1}).error().code(),
              ErrorCode::InvalidInput)
        << n;
  EXPECT_EQ(device->prepareGemm({Dtype::Bf16, Operands::Integer, 256, 1}).error().code(),
            ErrorCode::InvalidInput);
  auto work = device->prepareGemm({Dtype::Fp32, Operands::Integer, 256, 1});
  EXPECT_EQ((*work)->multiply(1, true).error().code(), ErrorCode::Internal)
      << "nothing to verify against";
  EXPECT_FALSE((*work)->setGolden({1, 2, 3}));
}

TEST(CpuSensors, readsWhatLinuxSaysAndNothingElse) {
  const auto root =
      std::filesystem::temp_directory_path() / fmt::format("muster-sensors-{}", ::getpid());
  const auto write = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text << "\n";
  };
  write("sys/class/powercap/intel-rapl:0/energy_uj", "5000000");
  write("sys/class/powercap/intel-rapl:0:0/energy_uj", "999");
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2400000");
  write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2600000");
  write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_total_time_ms", "12");
  write("sys/devices/system/edac/mc/mc0/ce_count", "3");
  write("sys/devices/system/edac/mc/mc0/ue_count", "junk");
  cpu::CpuSensors sensors(root);
  auto first = sensors.sample();
  EXPECT_FALSE(first.watts) << "power needs two looks";
  EXPECT_DOUBLE_EQ(*first.clock_mhz, 2500);
  EXPECT_EQ(first.throttle_thermal_ns, 12'000'000u);
  EXPECT_EQ(first.ecc_corrected, 3u);
  EXPECT_FALSE(first.ecc_uncorrected) << "no number";
  EXPECT_FALSE(first.temperature_c);
  write("sys/class/powercap/intel-rapl:0/energy_uj", "6000000");
  EXPECT_GT(*sensors.sample().watts, 0);
  write("sys/class/powercap/intel-rapl:0/energy_uj", "100");
  EXPECT_FALSE(sensors.sample().watts) << "the counter wrapped";
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace muster::burn
