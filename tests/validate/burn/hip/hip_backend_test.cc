// SPDX-License-Identifier: Apache-2.0
// The HIP back end's host logic over a HIP runtime and a hipBLASLt of the tests, loaded as ROCm's
// are: names, layouts, formats, handles, the kernels' arguments, faults. No GPU is needed, and none
// is proven.
#include "validate/burn/hip/hip_backend.h"
#include "tests/fakes/hip/code_object.h"
#include "tests/fakes/hip/fake_hip.h"
#include "tests/paths.h"
#include "tests/run_async.h"
#include "tests/validate/burn/gpu/tiny_options.h"
#include "validate/burn/backends.h"
#include "validate/burn/hip/amd_board.h"
#include "validate/burn/self_test.h"

#include "base/embedded.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

namespace muster::burn {
namespace hip {
std::span<const EmbeddedFile> burnCodeObjects();
}  // namespace hip
namespace {

using test::fakeHip;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

void write(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

class Hip : public testing::Test {
 protected:
  Hip() {
    const auto library = test::binFolder() / "libfake_hip.so";
    setenv("MUSTER_HIP", library.c_str(), 1);
    setenv("MUSTER_HIPBLASLT", library.c_str(), 1);
    setenv("MUSTER_PCI_DEVICES", folder_.path().c_str(), 1);
    fakeHip() = {};
  }
  ~Hip() override {
    for (const char* name : {"MUSTER_HIP", "MUSTER_HIPBLASLT", "MUSTER_PCI_DEVICES"})
      unsetenv(name);
  }
  test::TempFolder folder_;
};

class HipBackEnd : public Hip {
 protected:
  HipBackEnd() {
    auto opened = hip::openHip();
    EXPECT_TRUE(opened) << opened.error().str();
    if (opened) devices_ = std::move(*opened);
  }
  ~HipBackEnd() override {
    devices_.clear();
    EXPECT_EQ(fakeHip().taken, 0u) << "memory that was not given back";
    EXPECT_EQ(fakeHip().handles, 0) << "handles that were not given back";
  }
  Devices devices_;
};

TEST_F(HipBackEnd, everyStageOfAGoodGpuPasses) {
  auto options = tinyOptions();
  options.stages = usualStages(*devices_.front(), {});
  const auto report = burn(devices_, options);
  EXPECT_EQ(report.outcome(), Outcome::Pass) << toText(report);
  EXPECT_EQ(report.devices.front().stages.size(), 8u * 2 - 1 + 4)
      << "eight formats, of which INT8 has no random data; memory, copy, units, caches";
  EXPECT_EQ(report.devices.front().identity.kind, "hip");
  EXPECT_EQ(report.devices.front().identity.place, "0000:a0:00.0") << "as the kernel writes it";
  EXPECT_EQ(report.devices.front().identity.library, "hipBLASLt 1.0.0");
  EXPECT_GT(fakeHip().launches, 100);
}

TEST_F(HipBackEnd, catchesEveryKindOfFault) {
  const auto result = selfTest(devices_, 0, false);
  EXPECT_TRUE(result.good()) << result.missed();
  EXPECT_GE(result.rows.size(), 80u);
}

TEST_F(HipBackEnd, bitsAreComparedByOneAlgorithmAndRatesAreMeasuredByTheFastest) {
  auto options = tinyOptions();
  options.stages = {{StageKind::Gemm, Dtype::Bf16, Operands::Random, {}}};
  std::set<std::string> references;
  for (const int slow : {1, 2}) {
    fakeHip().slow_algorithm = slow;
    const auto report = burn(devices_, options);
    EXPECT_EQ(report.outcome(), Outcome::Pass) << toText(report);
    EXPECT_EQ(fakeHip().last_algorithm, 1);
    references.insert(report.devices.front().stages.front().reference);
  }
  EXPECT_EQ(references.size(), 1u);
  options.stages.front().operands = Operands::Integer;
  for (const int slow : {1, 2}) {
    fakeHip().slow_algorithm = slow;
    EXPECT_EQ(burn(devices_, options).outcome(), Outcome::Pass);
    EXPECT_EQ(fakeHip().last_algorithm, 3 - slow) << "never 3, which splits the sum";
  }
}

TEST_F(HipBackEnd, aFindingSaysThatTheUnitIsTheOneThatChecked) {
  auto options = tinyOptions();
  options.stages = {{StageKind::Gemm, Dtype::Bf16, Operands::Integer, {}}};
  devices_.front()->inject(Fault{FaultKind::OutputBit, 0, 30});
  const auto report = burn(devices_, options);
  EXPECT_THAT(report.devices.front().stages.front().findings.front(),
              HasSubstr("(multiplied on any unit, checked on unit 0): tile 0"));
}

TEST_F(HipBackEnd, cachesNameTheirUnitAndTheLastOneIsHalfFilled) {
  auto options = tinyOptions();
  options.stages = {{StageKind::Caches, Dtype::Fp32, Operands::Integer, {}}};
  const auto good = burn(devices_, options).devices.front().stages.front();
  EXPECT_EQ(good.outcome, Outcome::Pass) << testing::PrintToString(good.findings);
  EXPECT_EQ(good.values.at("cache_shared_memory_units"), 4);
  EXPECT_EQ(good.values.at("cache_L1_units"), 4);
  EXPECT_EQ(good.values.at("cache_last_mib"), 1) << "of two";
  devices_.front()->inject(Fault{FaultKind::CacheBit, 5, 35});
  const auto bad = burn(devices_, options).devices.front().stages.front();
  EXPECT_EQ(bad.outcome, Outcome::Fail);
  EXPECT_THAT(bad.findings.front(), AllOf(HasSubstr("shared memory, read by unit 0, at byte 0x28"),
                                          HasSubstr("differing bits 0x0000000800000000")));
  devices_.front()->inject(Fault{FaultKind::MemoryBit, 5, 35});
  EXPECT_THAT(burn(devices_, options).devices.front().stages.front().findings.front(),
              HasSubstr("the last cache, read by unit"));
}

TEST_F(HipBackEnd, aFormatWithoutAnAlgorithmIsAnError) {
  fakeHip().no_algorithm = true;
  auto options = tinyOptions();
  options.stages = {{StageKind::Gemm, Dtype::Bf16, Operands::Integer, {}}};
  const auto report = burn(devices_, options);
  EXPECT_EQ(report.outcome(), Outcome::Error);
  EXPECT_THAT(report.devices.front().stages.front().findings.front(),
              AllOf(HasSubstr("product of bf16"), HasSubstr("no algorithm")));
}

TEST_F(HipBackEnd, withoutMemoryItSaysSo) {
  EXPECT_EQ(devices_.front()->prepareMemory(1ULL << 40).error().code(), ErrorCode::Unavailable);
  EXPECT_EQ(devices_.front()->prepareMemory(8).error().code(), ErrorCode::InvalidInput);
}

TEST_F(HipBackEnd, theKernelSaysWhatTheBoardDraws) {
  const auto device = folder_.path() / "0000:a0:00.0";
  write(device / "hwmon/hwmon7/power1_input", "412000000\n");
  write(device / "hwmon/hwmon7/power1_cap", "750000000\n");
  write(device / "hwmon/hwmon7/temp1_label", "junction\n");
  write(device / "hwmon/hwmon7/temp1_input", "63000\n");
  write(device / "hwmon/hwmon7/freq1_input", "2100000000\n");
  write(device / "ras/umc_err_count", "ue: 0\nce: 3\n");
  write(device / "ras/gfx_err_count", "ue: 2\nce: 1\n");
  const auto seen = devices_.front()->sample();
  EXPECT_EQ(seen.watts, 412.0);
  EXPECT_EQ(seen.limit_watts, 750.0);
  EXPECT_EQ(seen.temperature_c, 63.0);
  EXPECT_EQ(seen.clock_mhz, 2100.0);
  EXPECT_EQ(seen.ecc_uncorrected, 2u);
  EXPECT_EQ(seen.ecc_corrected, 4u);
  EXPECT_FALSE(seen.throttle_thermal_ns) << "no gpu_metrics: not known, not zero";
}

/// The kernel is asked where the page lies: this host's only node, or the nearest of several.
TEST_F(Hip, theHostsEndOfACopyLiesOnTheMemoryNodeOfItsGpu) {
  for (const char* named : {"0\n", "-1\n", "900\n"}) {
    write(folder_.path() / "0000:a0:00.0/numa_node", named);
    auto devices = hip::openHip();
    ASSERT_TRUE(devices) << devices.error().str();
    for (const char* route : {"host to device", "device to host"}) {
      const auto round = devices->front()->copy(route, 1 << 20, 3);
      ASSERT_TRUE(round) << round.error().str();
      EXPECT_EQ(round->bad_blocks, 0u) << "a node that is not there is no reason to copy nothing";
      if (std::string_view(named) == "0\n" && round->host_node) EXPECT_EQ(*round->host_node, 0);
    }
  }
}

TEST_F(Hip, copiesGoToEveryOtherGpu) {
  fakeHip().gpus = 3;
  auto devices = hip::openHip();
  ASSERT_TRUE(devices) << devices.error().str();
  EXPECT_THAT((*devices)[1]->routes(),
              ElementsAre("host to device", "device to host", "device to 0000:a0:00.0",
                          "device to 0000:a2:00.0"));
  (*devices)[1]->inject(Fault{FaultKind::CopyBit, 5, 5});
  for (const auto& route : (*devices)[1]->routes())
    EXPECT_EQ((*devices)[1]->copy(route, 1 << 16, 1)->bad_blocks, 1u) << route;
  (*devices)[1]->inject(std::nullopt);
  for (const auto& route : (*devices)[1]->routes())
    EXPECT_EQ((*devices)[1]->copy(route, 1 << 16, 1)->bad_blocks, 0u) << route;
}

// The fake's modules and handles hold for the device that they were made on, as HIP's do.
TEST_F(Hip, everyGpuHasItsOwnModuleAndItsOwnLibraryHandle) {
  fakeHip().gpus = 2;
  auto devices = hip::openHip();
  ASSERT_TRUE(devices) << devices.error().str();
  Options options;
  options.n = kTile;
  options.stages = {{StageKind::Gemm, Dtype::Fp8, Operands::Integer, {}}};
  const auto report = burn(*devices, options);
  EXPECT_EQ(report.outcome(), Outcome::Pass) << toText(report);
  EXPECT_EQ(report.devices.size(), 2u);
  EXPECT_EQ(report.devices[0].stages[0].golden, report.devices[1].stages[0].golden);
}

TEST_F(Hip, fp8IsOfTheArchitecturesOwnKind) {
  for (const auto& [architecture, formats] :
       std::map<std::string, std::size_t>{{"gfx90a:sramecc+:xnack-", 5}, {"gfx942", 8}}) {
    fakeHip() = {};
    fakeHip().architecture = architecture;
    auto devices = hip::openHip();
    ASSERT_TRUE(devices) << devices.error().str();
    EXPECT_EQ(devices->front()->dtypes().size(), formats) << architecture;
    Options options;
    options.n = kTile;
    for (const auto dtype : devices->front()->dtypes())
      for (const auto operands : {Operands::Integer, Operands::Random})
        if (operands == Operands::Integer || rowOf(dtype).unit_roundoff > 0)
          options.stages.push_back({StageKind::Gemm, dtype, operands, {}});
    const auto report = burn(*devices, options);
    EXPECT_EQ(report.outcome(), Outcome::Pass) << architecture << '\n' << toText(report);
  }
}

/// CDNA 4, whose kernels a clang of 20 and later compiles.
class Cdna4 : public Hip {
 protected:
  void SetUp() override {
    const auto files = hip::burnCodeObjects();
    if (std::ranges::none_of(files, [](const auto& file) { return file.name == "gfx950"; }))
      GTEST_SKIP() << "no clang here compiles kernels for gfx950: clang-20 or later, with its lld";
    fakeHip().architecture = "gfx950:sramecc+:xnack-";
  }
  static Options mxfp8() {
    Options options;
    options.n = 2 * kTile;
    for (const auto operands : {Operands::Integer, Operands::Random})
      options.stages.push_back({StageKind::Gemm, Dtype::Mxfp8, operands, {}});
    return options;
  }
};

TEST_F(Cdna4, multipliesFp8WithAScaleForEachBlock) {
  auto devices = hip::openHip();
  ASSERT_TRUE(devices) << devices.error().str();
  const auto report = burn(*devices, mxfp8());
  EXPECT_EQ(report.outcome(), Outcome::Pass) << toText(report);
  EXPECT_EQ(report.devices.front().stages.size(), 2u);
  EXPECT_GT(fakeHip().products, 0);
  for (const auto& stage : usualStages(*devices->front(), {}))
    EXPECT_NE(stage.dtype, Dtype::Mxfp8) << "only where it is asked for by name";
}

/// `muster-burn --self-test --every-bit` has every bit of it, in minutes by this back end.
TEST_F(Cdna4, catchesFaultsInValuesAndScales) {
  auto devices = hip::openHip();
  ASSERT_TRUE(devices) << devices.error().str();
  auto options = mxfp8();
  options.stages.pop_back();
  for (const auto& fault : {Fault{FaultKind::ScaleBit, 9, 0}, Fault{FaultKind::ScaleBit, 9, 7},
                            Fault{FaultKind::InputBit, 77, 0}, Fault{FaultKind::InputBit, 77, 7},
                            Fault{FaultKind::NotANumber, 0, 0}}) {
    devices->front()->inject(fault);
    const auto report = burn(*devices, options);
    EXPECT_EQ(report.outcome(), Outcome::Fail)
        << static_cast<int>(fault.kind) << " bit " << fault.bit << ": " << toText(report);
  }
}

TEST_F(Cdna4, anOlderLibraryHasNoScales) {
  fakeHip().blas_version = 1'200;  // 0.12, of ROCm 6.4
  auto devices = hip::openHip();
  ASSERT_TRUE(devices) << devices.error().str();
  const auto formats = devices->front()->dtypes();
  EXPECT_EQ(std::ranges::find(formats, Dtype::Mxfp8), formats.end());
}

TEST_F(Hip, saysWhatIsMissing) {
  fakeHip().gpus = 0;
  EXPECT_THAT(hip::openHip().error().str(),
              AllOf(HasSubstr("HIP sees no GPU"), HasSubstr("/dev/kfd")));
  fakeHip() = {};
  fakeHip().architecture = "gfx1100";
  EXPECT_THAT(hip::openHip().error().str(), HasSubstr("architecture gfx1100"));
  fakeHip() = {};
  fakeHip().blas_version = 700;
  EXPECT_THAT(hip::openHip().error().str(), AllOf(HasSubstr("0.7.0"), HasSubstr("ROCm 6.2")));
  setenv("MUSTER_HIPBLASLT", "/nonexistent/libhipblaslt.so", 1);
  EXPECT_EQ(hip::openHip().error().code(), ErrorCode::NotFound);
  setenv("MUSTER_HIP", "libm.so.6", 1);
  EXPECT_EQ(hip::openHip().error().code(), ErrorCode::Corrupt);
  EXPECT_THAT(hip::openHip().error().str(), HasSubstr("has no hipGetDeviceCount"));
  unsetenv("MUSTER_HIP");
  if (const auto opened = openDevices("hip", 0, "/"); !opened)
    EXPECT_THAT(opened.error().str(), AllOf(HasSubstr("libamdhip64.so.7"), HasSubstr("ROCm")));
}

TEST(HipCodeObjects, everyArchitectureHasEveryKernelWithTheSameArguments) {
  const auto files = hip::burnCodeObjects();
  ASSERT_FALSE(files.empty());
  std::map<std::string, unsigned> machines{
      {"gfx90a", test::kMachGfx90a}, {"gfx942", test::kMachGfx942}, {"gfx950", test::kMachGfx950}};
  const auto first = test::readCodeObject(files.front().content);
  EXPECT_EQ(first.kernels.size(), 14u + 5 * 3) << "fourteen, and a walk a pattern and kind";
  for (const auto& file : files) {
    const auto code = test::readCodeObject(file.content);
    EXPECT_EQ(code.machine, machines.at(std::string(file.name)));
    ASSERT_EQ(code.kernels.size(), first.kernels.size());
    for (const auto& [name, kernel] : code.kernels) {
      EXPECT_EQ(kernel.wavefront, 64u) << "the probe's layout is of 64 lanes";
      EXPECT_EQ(kernel.spilled, 0u) << file.name << ' ' << name << " spills registers";
      const auto& other = first.kernels.at(name).arguments;
      ASSERT_EQ(kernel.arguments.size(), other.size()) << name;
      for (std::size_t i = 0; i < other.size(); ++i)
        EXPECT_EQ(kernel.arguments[i].size, other[i].size) << name;
    }
  }
}

/// gpu_metrics of version 1.`revision`, of which this writes the head. Source: kgd_pp_interface.h
std::string metrics(int revision, std::uint64_t clock_ns, std::uint32_t cycles, std::uint32_t board,
                    std::uint32_t power, std::uint32_t socket, std::uint32_t regulator,
                    std::uint32_t hbm) {
  std::string bytes(200, '\0');
  bytes[2] = 1, bytes[3] = static_cast<char>(revision);
  const std::size_t clock_at = revision == 6 ? 24 : 32;
  std::memcpy(bytes.data() + clock_at, &clock_ns, sizeof clock_ns);
  const std::uint32_t counters[] = {cycles, board, power, socket, regulator, hbm};
  std::memcpy(bytes.data() + clock_at + 8, counters, sizeof counters);
  return bytes;
}

TEST(AmdBoard, throttlingIsTimeSinceTheFirstLook) {
  for (const int revision : {6, 7, 8}) {
    test::TempFolder folder;
    const auto file = folder.path() / "0000:a0:00.0/gpu_metrics";
    hip::AmdBoard board(folder.path(), "0000:a0:00.0");
    write(file, metrics(revision, 1'000'000'000, 1000, 7, 500, 20, 30, 40));
    EXPECT_EQ(board.sample().throttle_thermal_ns, 0u) << "what was before is not this run's";
    write(file, metrics(revision, 2'000'000'000, 2000, 7, 600, 21, 32, 43));
    const auto seen = board.sample();
    EXPECT_EQ(seen.throttle_thermal_ns, 6'000'000u)
        << "six cycles of a millisecond, in revision " << revision;
    EXPECT_EQ(seen.throttle_power_ns, 100'000'000u);
    EXPECT_EQ(seen.throttle_hardware_ns, 0u);
  }
}

TEST(AmdBoard, countersGoRoundAndUnknownTablesSayNothing) {
  test::TempFolder folder;
  const auto file = folder.path() / "0000:a0:00.0/gpu_metrics";
  hip::AmdBoard board(folder.path(), "0000:a0:00.0");
  write(file, metrics(8, 1'000'000'000, 0xfffffff0, 0, 0, 0xfffffffe, 0, 0));
  (void)board.sample();
  write(file, metrics(8, 1'000'100'000, 0x10, 0, 0, 2, 0, 0));
  EXPECT_EQ(board.sample().throttle_thermal_ns, 4u * 100'000 / 32);
  for (const int revision : {5, 9})
    EXPECT_FALSE(hip::parseResidencies(metrics(revision, 1, 1, 1, 1, 1, 1, 1)));
  EXPECT_FALSE(hip::parseResidencies(metrics(8, 1, 0xffffffff, 0, 0, 0, 0, 0))) << "not offered";
  EXPECT_FALSE(hip::parseResidencies(metrics(8, 1, 1, 1, 1, 1, 1, 1).substr(0, 60))) << "cut";
  EXPECT_FALSE(hip::parseResidencies(""));
}

TEST(Backends, theBusSaysWhichBackEndFits) {
  test::TempFolder folder;
  const auto add = [&](const char* place, const char* vendor, const char* kind) {
    write(folder.path() / place / "vendor", vendor);
    write(folder.path() / place / "class", kind);
  };
  EXPECT_EQ(backendOf(folder.path()).error().code(), ErrorCode::NotFound);
  add("0000:00:00.0", "0x1022\n", "0x060000\n");
  add("0000:01:00.0", "0x1002\n", "0x120000\n");
  EXPECT_EQ(*backendOf(folder.path()), "hip");
  add("0000:02:00.0", "0x10de\n", "0x030200\n");
  EXPECT_THAT(backendOf(folder.path()).error().str(), HasSubstr("--backend cuda or --backend hip"));
  std::filesystem::remove_all(folder.path() / "0000:01:00.0");
  EXPECT_EQ(*backendOf(folder.path()), "cuda");
}

}  // namespace
}  // namespace muster::burn
