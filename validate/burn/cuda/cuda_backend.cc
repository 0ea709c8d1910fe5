// SPDX-License-Identifier: Apache-2.0
// The burn back end over CUDA: kernels of kernels.cu, products by cuBLASLt, sensors by NVML.
#include "validate/burn/backends.h"
#include "validate/burn/cuda/cublaslt_product.h"
#include "validate/burn/cuda/cuda_calls.h"
#include "validate/burn/cuda/kernels.h"
#include "validate/burn/cuda/nvml_board.h"
#include "validate/burn/gpu/gpu_device.h"
#include "validate/burn/gpu/host_buffer.h"

#include <map>
#include <mutex>

namespace muster::burn::cuda {
namespace {

using gpu::StreamHandle;

constexpr int kAmpere = 8, kHopper = 9, kBlackwell = 10;

class CudaKernels final : public gpu::Kernels {
 public:
  Result<void> fillOperands(StreamHandle stream, gpu::Encoding encoding, gpu::OperandRule rule,
                            void* to, std::uint64_t count) override {
    return cuda::fillOperands(own(stream), encoding, rule, to, count), launched("fillOperands");
  }
  Result<void> countWrongOperands(StreamHandle stream, gpu::Encoding encoding,
                                  gpu::OperandRule rule, const void* from, std::uint64_t count,
                                  unsigned long long* wrong) override {
    return cuda::countWrongOperands(own(stream), encoding, rule, from, count, wrong),
           launched("countWrongOperands");
  }
  Result<void> fillScales(StreamHandle stream, const gpu::ScaleRule& rule,
                          std::uint8_t* to) override {
    return cuda::fillScales(own(stream), rule, to), launched("fillScales");
  }
  Result<void> countWrongScales(StreamHandle stream, const gpu::ScaleRule& rule,
                                const std::uint8_t* from, unsigned long long* wrong) override {
    return cuda::countWrongScales(own(stream), rule, from, wrong), launched("countWrongScales");
  }
  Result<void> fillPlaces(StreamHandle stream, const gpu::OperandRule& rule, std::uint32_t* to,
                          std::uint64_t words) override {
    return cuda::fillPlaces(own(stream), rule, to, words), launched("fillPlaces");
  }
  Result<void> countWrongPlaces(StreamHandle stream, const gpu::OperandRule& rule,
                                const std::uint32_t* from, std::uint64_t words,
                                unsigned long long* wrong) override {
    return cuda::countWrongPlaces(own(stream), rule, from, words, wrong),
           launched("countWrongPlaces");
  }
  Result<void> multiplySparse(StreamHandle stream, const gpu::SparseFactors& factors) override {
    return cuda::multiplySparse(own(stream), factors), launched("multiplySparse");
  }
  Result<void> fillWeights(StreamHandle stream, std::uint64_t seed, std::uint64_t* to,
                           int count) override {
    return cuda::fillWeights(own(stream), seed, to, count), launched("fillWeights");
  }
  Result<void> tileSums(StreamHandle stream, const gpu::Output& out, std::uint64_t* sums) override {
    return cuda::tileSums(own(stream), out, sums), launched("tileSums");
  }
  Result<void> checkTiles(StreamHandle stream, const gpu::Output& out, const std::uint64_t* golden,
                          unsigned long long product, gpu::TileReport* report) override {
    return cuda::checkTiles(own(stream), out, golden, product, report), launched("checkTiles");
  }
  Result<void> sideSums(StreamHandle stream, const gpu::Output& out, double* rows,
                        double* columns) override {
    return cuda::sideSums(own(stream), out, rows, columns), launched("sideSums");
  }
  Result<void> walkMemory(StreamHandle stream, const gpu::Walk& walk, std::uint64_t* words,
                          std::uint64_t count, std::uint64_t seed,
                          gpu::WordReport* report) override {
    return cuda::walkMemory(own(stream), walk, words, count, seed, report), launched("walkMemory");
  }
  Result<void> blockCrcs(StreamHandle stream, const std::uint64_t* words, std::uint64_t count,
                         std::uint32_t* crcs) override {
    return cuda::blockCrcs(own(stream), words, count, crcs), launched("blockCrcs");
  }
  Result<void> probeUnits(StreamHandle stream, std::uint64_t seed, int blocks,
                          gpu::UnitReport* report) override {
    return cuda::probeUnits(own(stream), seed, blocks, report), launched("probeUnits");
  }
  Result<void> probeShared(StreamHandle stream, const gpu::CacheProbe& probe, int blocks,
                           gpu::CacheReport* report) override {
    return cuda::probeShared(own(stream), probe, blocks, report), launched("probeShared");
  }
  Result<void> probeL1(StreamHandle stream, const gpu::CacheProbe& probe, int blocks,
                       std::uint64_t* to, gpu::CacheReport* report) override {
    return cuda::probeL1(own(stream), probe, blocks, to, report), launched("probeL1");
  }
  Result<void> flipBit(StreamHandle stream, void* at, int bytes, int bit) override {
    return cuda::flipBit(own(stream), at, bytes, bit), launched("flipBit");
  }
  Result<void> setNan(StreamHandle stream, void* at, int bytes) override {
    return cuda::setNan(own(stream), at, bytes), launched("setNan");
  }
};

/// What is kept of one GPU.
struct Gpu {
  explicit Gpu(std::string pci) : board(std::move(pci)) {}
  NvmlBoard board;
  std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, Freed<cublasLtDestroy>> blas;
};

class CudaBackend final : public CudaCalls<gpu::Backend> {
 public:
  Result<gpu::GpuFacts> facts(int device) const override {
    cudaDeviceProp properties{};
    TRY_OK(ok(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"));
    TRY(pci, pciOf(device));
    TRY(gpu, gpuOf(device));
    gpu::GpuFacts facts;
    facts.model = properties.name, facts.serial = gpu->board.serial(), facts.pci = pci;
    facts.units = properties.multiProcessorCount;
    facts.shared_bytes = static_cast<int>(properties.sharedMemPerBlockOptin);
    facts.last_cache_bytes = static_cast<std::uint64_t>(properties.l2CacheSize);
    facts.dtypes = {Dtype::Bf16, Dtype::Fp16, Dtype::Tf32, Dtype::Fp32, Dtype::Int8, Dtype::Fp64};
    if (properties.major >= kHopper)  // 8.9 has it too, but not in a datacentre's GPU
      facts.dtypes.insert(facts.dtypes.end(), {Dtype::Fp8, Dtype::Fp8E5m2});
    if (properties.major >= kBlackwell && kHasScales)
      facts.dtypes.insert(facts.dtypes.end(), {Dtype::Mxfp8, Dtype::Nvfp4});
    if (properties.major >= kAmpere) facts.dtypes.push_back(Dtype::Bf16Sparse);
    facts.memory_node = gpu::memoryNodeOf(gpu::pciDevices(), pci);
    facts.library = fmt::format("cuBLASLt {}", cublasLtGetVersion());
    return facts;
  }

  Telemetry sample(int device) override {
    const auto gpu = gpuOf(device);
    return gpu ? (*gpu)->board.sample() : Telemetry{};
  }

  gpu::Kernels& kernels() override { return kernels_; }

  Result<std::unique_ptr<gpu::Product>> prepareProduct(int device, Dtype dtype,
                                                       int n) const override {
    TRY(gpu, gpuOf(device));
    {
      const std::scoped_lock lock(mutex_);
      if (!gpu->blas) {
        cublasLtHandle_t blas = nullptr;
        TRY_OK(ok(cublasLtCreate(&blas), "cublasLtCreate"));
        gpu->blas.reset(blas);
      }
    }
    return makeCublasLtProduct(gpu->blas.get(), dtype, n);
  }

 private:
  /// Never moved once it is made.
  Result<Gpu*> gpuOf(int device) const {
    TRY(pci, pciOf(device));
    const std::scoped_lock lock(mutex_);
    auto& gpu = gpus_[device];
    if (!gpu) gpu = std::make_unique<Gpu>(pci);
    return gpu.get();
  }

  CudaKernels kernels_;
  mutable std::mutex mutex_;
  mutable std::map<int, std::unique_ptr<Gpu>> gpus_;
};

}  // namespace
}  // namespace muster::burn::cuda

extern "C" __attribute__((visibility("default"))) void muster_burn_open_cuda(
    muster::burn::Devices& devices, muster::Result<void>& answer) {
  auto opened = muster::burn::gpu::openGpus(std::make_shared<muster::burn::cuda::CudaBackend>());
  if (opened)
    devices = std::move(*opened);
  else
    answer = muster::fail(std::move(opened.error()));
}
