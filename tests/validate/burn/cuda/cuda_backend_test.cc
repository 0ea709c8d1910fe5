// SPDX-License-Identifier: Apache-2.0
// The CUDA back end's host logic over a CUDA runtime of the tests: layouts, formats, handles,
// faults. No GPU is needed, and none is proven.
#include "tests/fakes/cuda/fake_cuda.h"
#include "tests/fakes/gpu/narrow_floats.h"
#include "tests/paths.h"
#include "tests/validate/burn/gpu/tiny_options.h"
#include "validate/burn/backends.h"
#include "validate/burn/self_test.h"

#include <cuda_fp8.h>
#include <cuda_runtime_api.h>
#if CUDART_VERSION >= 12080
#include <cuda_fp4.h>
#endif
#include <gtest/gtest.h>

#include <cmath>
#include <set>

extern "C" void muster_burn_open_cuda(muster::burn::Devices& devices, muster::Result<void>& answer);

namespace muster::burn {
namespace {

using test::fakeCuda;

Result<void> openCuda(Devices& devices) {
  Result<void> answer;
  muster_burn_open_cuda(devices, answer);
  return answer;
}

class CudaBackEnd : public testing::Test {
 protected:
  CudaBackEnd() {
    setenv("MUSTER_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
    fakeCuda() = {};
    EXPECT_TRUE(openCuda(devices_));
  }
  ~CudaBackEnd() override {
    devices_.clear();
    EXPECT_EQ(fakeCuda().taken, 0u) << "memory that was not given back";
    EXPECT_EQ(fakeCuda().handles, 0) << "handles that were not given back";
    unsetenv("MUSTER_NVML");
  }
  Devices devices_;
};

TEST_F(CudaBackEnd, everyStageOfAGoodGpuPasses) {
  auto options = tinyOptions();
  options.stages = usualStages(*devices_.front(), {});
  const auto report = burn(devices_, options);
  EXPECT_EQ(report.outcome(), Outcome::Pass) << toText(report);
  EXPECT_EQ(report.devices.front().stages.size(), 8u * 2 - 1 + 4)
      << "eight formats, of which INT8 has no random data; memory, copy, units, caches";
  EXPECT_EQ(report.devices.front().identity.place, "0000:01:00.0");
}

TEST_F(CudaBackEnd, catchesEveryKindOfFault) {
  const auto result = selfTest(devices_, 0, false);
  EXPECT_TRUE(result.good()) << result.missed();
  EXPECT_GE(result.rows.size(), 60u);
}

class Blackwell : public CudaBackEnd {
 protected:
  Blackwell() {
    devices_.clear();
    fakeCuda() = {};
    fakeCuda().major = 10;
    EXPECT_TRUE(openCuda(devices_));
  }
};

TEST_F(Blackwell, multipliesFormatsWithScalesOfEveryBlock) {
  auto options = tinyOptions();
  options.n = 2 * kTile;  // more than one tile of scales
  for (const auto dtype : {Dtype::Mxfp8, Dtype::Nvfp4})
    for (const auto operands : {Operands::Integer, Operands::Random})
      options.stages.push_back({StageKind::Gemm, dtype, operands, {}});
  const auto report = burn(devices_, options);
  EXPECT_EQ(report.outcome(), Outcome::Pass) << toText(report);
}

TEST_F(Blackwell, catchesEveryKindOfFaultInThem) {
  const auto result = selfTest(devices_, 0, false);
  EXPECT_TRUE(result.good()) << result.missed();
  for (const char* name : {"mxfp8 scale bit 0", "nvfp4 scale bit 7", "nvfp4 input bit 4"})
    EXPECT_TRUE(std::any_of(result.rows.begin(), result.rows.end(), [name](const auto& row) {
      return row.fault == name;
    })) << name;
}

TEST_F(CudaBackEnd, sparseProductsAreVerifiedWhereTheyAreAskedFor) {
  auto options = tinyOptions();
  options.n = 2 * kTile;
  options.stages = productStages(Dtype::Bf16Sparse, {});
  const auto report = burn(devices_, options);
  EXPECT_EQ(report.outcome(), Outcome::Pass) << toText(report);
  ASSERT_EQ(report.devices.front().stages.size(), 2u);
  EXPECT_EQ(report.devices.front().stages[0].name, "gemm bf16sparse integer");
  EXPECT_EQ(report.devices.front().stages[0].golden.size(), 64u);
  for (const auto& stage : usualStages(*devices_.front(), {}))
    EXPECT_FALSE(rowOf(stage.dtype).sparse) << "not in a gate's burn";
}

/// Each bit of the places, of a value and of a result, injected by the self-test of every bit.
TEST_F(CudaBackEnd, faultsInSparseProductsAreCaught) {
  auto options = tinyOptions();
  for (const auto& fault :
       {Fault{FaultKind::PlaceBit, 9, 0}, Fault{FaultKind::PlaceBit, 9, 1},
        Fault{FaultKind::PlaceBit, 9, 2}, Fault{FaultKind::PlaceBit, 9, 3},
        Fault{FaultKind::InputBit, 77, 3}, Fault{FaultKind::OutputBit, 5, 31}}) {
    devices_.front()->inject(fault);
    for (const auto& stage : productStages(Dtype::Bf16Sparse, {})) {
      options.stages = {stage};
      const auto report = burn(devices_, options);
      EXPECT_EQ(report.outcome(), Outcome::Fail) << stage.name() << " bit " << fault.bit << "\n"
                                                 << toText(report);
      if (fault.kind == FaultKind::PlaceBit && stage.operands == Operands::Integer)
        EXPECT_NE(toText(report).find("bad tiles"), std::string::npos)
            << "places that were changed change what is multiplied";
    }
  }
}

TEST_F(CudaBackEnd, hopperHasNoUnitForScales) {
  for (const auto dtype : devices_.front()->dtypes()) EXPECT_EQ(rowOf(dtype).scale_block, 0);
}

TEST_F(CudaBackEnd, goldensAreThoseOfEveryOtherBackEnd) {
  auto options = tinyOptions();
  options.stages = {{StageKind::Gemm, Dtype::Fp8, Operands::Integer, {}},
                    {StageKind::Gemm, Dtype::Fp8, Operands::Random, {}}};
  const auto first = burn(devices_, options), second = burn(devices_, options);
  for (const int stage : {0, 1}) {
    const auto& one = first.devices.front().stages[static_cast<std::size_t>(stage)];
    const auto& two = second.devices.front().stages[static_cast<std::size_t>(stage)];
    EXPECT_EQ(one.golden, two.golden);
    EXPECT_EQ(one.reference, two.reference);
  }
}

// Which algorithm is the fastest may differ between two GPUs of a kind by chance; what they compute
// must not.
TEST_F(CudaBackEnd, bitsAreComparedByOneAlgorithmAndRatesAreMeasuredByTheFastest) {
  auto options = tinyOptions();
  options.stages = {{StageKind::Gemm, Dtype::Bf16, Operands::Random, {}}};
  std::set<std::string> references;
  for (const int slow : {1, 2}) {
    fakeCuda().slow_algorithm = slow;
    const auto report = burn(devices_, options);
    EXPECT_EQ(report.outcome(), Outcome::Pass) << toText(report);
    EXPECT_EQ(fakeCuda().last_algorithm, 1);
    references.insert(report.devices.front().stages.front().reference);
  }
  EXPECT_EQ(references.size(), 1u);
  options.stages.front().operands = Operands::Integer;
  for (const int slow : {1, 2}) {
    fakeCuda().slow_algorithm = slow;
    EXPECT_EQ(burn(devices_, options).outcome(), Outcome::Pass);
    EXPECT_EQ(fakeCuda().last_algorithm, 3 - slow);
  }
}

TEST_F(CudaBackEnd, theReportSaysWithWhatItsBitsAreComparable) {
  auto options = tinyOptions();
  options.stages = {{StageKind::Gemm, Dtype::Bf16, Operands::Random, {}}};
  const auto report = burn(devices_, options);
  EXPECT_EQ(report.devices.front().identity.library, "cuBLASLt 130100");
  EXPECT_EQ(report.devices.front().stages.front().product,
            fmt::format("n {}, seed 6d7573746572", kTile));
}

TEST_F(CudaBackEnd, aFormatWithoutAnAlgorithmIsAnError) {
  fakeCuda().no_algorithm = true;
  auto options = tinyOptions();
  options.stages = {{StageKind::Gemm, Dtype::Bf16, Operands::Integer, {}}};
  const auto report = burn(devices_, options);
  EXPECT_EQ(report.outcome(), Outcome::Error);
  EXPECT_NE(report.devices.front().stages.front().findings.front().find("product of bf16"),
            std::string::npos);
}

TEST_F(CudaBackEnd, withoutMemoryItSaysSo) {
  EXPECT_EQ(devices_.front()->prepareMemory(1ULL << 40).error().code(), ErrorCode::Unavailable);
  EXPECT_EQ(devices_.front()->prepareMemory(8).error().code(), ErrorCode::InvalidInput);
}

TEST(CudaPeers, copiesGoToEveryOtherGpu) {
  fakeCuda() = {};
  fakeCuda().gpus = 3;
  Devices devices;
  ASSERT_TRUE(openCuda(devices));
  EXPECT_EQ(devices[1]->routes(),
            (std::vector<std::string>{"host to device", "device to host", "device to 0000:01:00.0",
                                      "device to 0000:03:00.0"}));
  devices[1]->inject(Fault{FaultKind::CopyBit, 5, 5});
  for (const auto& route : devices[1]->routes())
    EXPECT_EQ(devices[1]->copy(route, 1 << 16, 1)->bad_blocks, 1u) << route;
  devices[1]->inject(std::nullopt);
  for (const auto& route : devices[1]->routes())
    EXPECT_EQ(devices[1]->copy(route, 1 << 16, 1)->bad_blocks, 0u) << route;
  EXPECT_FALSE(devices[1]->copy("to the moon", 1 << 16, 1));
}

/// What the tests decode by, and with it all that is encoded, against an implementation of others.
TEST(CudaFormats, theDecodersOfTheTestsAgreeWithNvidiasHeaders) {
  const auto same = [](double ours, float theirs) {
    return std::isnan(ours) ? std::isnan(theirs) : ours == static_cast<double>(theirs);
  };
  for (unsigned bits = 0; bits < 256; ++bits) {
    __nv_fp8_e4m3 e4m3;
    __nv_fp8_e5m2 e5m2;
    e4m3.__x = e5m2.__x = static_cast<unsigned char>(bits);
    EXPECT_TRUE(same(test::narrow::e4m3(bits), static_cast<float>(e4m3))) << bits;
    EXPECT_TRUE(same(test::narrow::e5m2(bits), static_cast<float>(e5m2))) << bits;
#if CUDART_VERSION >= 12080
    __nv_fp8_e8m0 e8m0;
    e8m0.__x = static_cast<unsigned char>(bits);
    EXPECT_TRUE(same(test::narrow::e8m0(bits), static_cast<float>(e8m0))) << bits;
    if (bits >= 16) continue;
    __nv_fp4_e2m1 e2m1;
    e2m1.__x = static_cast<unsigned char>(bits);
    EXPECT_TRUE(same(test::narrow::e2m1(bits), static_cast<float>(e2m1))) << bits;
#endif
  }
}

TEST(CudaBackEndFile, loadsAndSaysWhetherThereIsAGpu) {
  const auto opened = openDevices("cuda", 0, test::binFolder());
  if (opened) GTEST_SKIP() << "a GPU is here: ./run gpu-test";
  EXPECT_EQ(opened.error().code(), ErrorCode::NotFound) << opened.error().str();
  EXPECT_NE(opened.error().str().find("CUDA sees no GPU"), std::string::npos)
      << opened.error().str();
}

TEST(CudaBackEndFile, isMissedWithWords) {
  const auto opened = openDevices("cuda", 0, "/nonexistent");
  EXPECT_EQ(opened.error().code(), ErrorCode::NotFound);
  EXPECT_NE(opened.error().str().find("CUDA toolkit"), std::string::npos) << opened.error().str();
  EXPECT_EQ(openDevices("tpu", 0, "/").error().code(), ErrorCode::InvalidInput);
}

}  // namespace
}  // namespace muster::burn
