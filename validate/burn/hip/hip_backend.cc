// SPDX-License-Identifier: Apache-2.0
// The burn back end over HIP: kernels of kernels.hip, products by hipBLASLt, sensors by the kernel.
#include "validate/burn/hip/hip_backend.h"

#include "validate/burn/gpu/backend.h"
#include "validate/burn/gpu/gpu_device.h"
#include "validate/burn/gpu/host_buffer.h"
#include "validate/burn/hip/amd_board.h"
#include "validate/burn/hip/hip_calls.h"
#include "validate/burn/hip/hip_kernels.h"
#include "validate/burn/hip/hipblaslt_product.h"

#include <array>
#include <cstdlib>

namespace muster::burn::hip {
namespace {

/// What the matrix units of an architecture multiply. Source: AMD's CDNA 2, 3 and 4 ISA; XF32 is
/// CDNA 3's alone.
struct ArchitectureRow {
  std::string_view name;
  bool tf32, fp8, mx;
  gpu::Float8 float8;
};
constexpr std::array kArchitectures{
    ArchitectureRow{"gfx90a", false, false, false, gpu::Float8::Fnuz},  // MI210, MI250
    ArchitectureRow{"gfx942", true, true, false, gpu::Float8::Fnuz},    // MI300, MI325
    ArchitectureRow{"gfx950", false, true, true, gpu::Float8::Ocp},     // MI350, MI355
};

/// What is kept of one GPU.
struct Gpu {
  explicit Gpu(const std::string& pci, const std::filesystem::path& devices)
      : board(devices, pci) {}
  AmdBoard board;
  BlasHandle blas = nullptr;
};

class HipBackend final : public HipCalls<gpu::Backend> {
 public:
  HipBackend(const HipApi& hip, const HipBlasLtApi& blas, std::filesystem::path devices)
      : HipCalls(hip), blas_(blas), devices_(std::move(devices)), kernels_(hip) {}
  ~HipBackend() override {
    for (const auto& [device, gpu] : gpus_)
      if (gpu->blas && select(device)) (void)blas_.destroy(gpu->blas);
  }
  HipBackend(const HipBackend&) = delete;
  HipBackend& operator=(const HipBackend&) = delete;

  Result<gpu::GpuFacts> facts(int device) const override {
    DeviceProperties properties{};
    TRY_OK(ok(hip_.getDeviceProperties(&properties, device), "hipGetDeviceProperties"));
    TRY(row, rowOf(properties));
    TRY(gpu, gpuOf(device));
    TRY(pci, pciOf(device));
    TRY_OK(select(device));
    TRY(blas, blasOf(*gpu));
    int version = 0;
    TRY_OK(blas_.ok(blas_.getVersion(blas, &version), "hipblasLtGetVersion"));
    if (version < kOldestHipBlasLt)
      return fail(
          ErrorCode::Corrupt,
          fmt::format("hipBLASLt is of version {}, and at least 0.8 is needed: install ROCm "
                      "6.2 or later",
                      versionText(version)));
    gpu::GpuFacts facts;
    facts.model = properties.name, facts.serial = gpu->board.serial(), facts.pci = pci;
    facts.units = properties.units;
    facts.shared_bytes = static_cast<int>(properties.shared_bytes_a_block);
    facts.last_cache_bytes = static_cast<std::uint64_t>(properties.l2_bytes);
    facts.dtypes = {Dtype::Bf16, Dtype::Fp16, Dtype::Fp32, Dtype::Int8, Dtype::Fp64};
    if (row.tf32) facts.dtypes.push_back(Dtype::Tf32);
    if (row.fp8) facts.dtypes.insert(facts.dtypes.end(), {Dtype::Fp8, Dtype::Fp8E5m2});
    if (row.mx && version >= kHipBlasLtWithScales)
      facts.dtypes.push_back(Dtype::Mxfp8), facts.by_name = {Dtype::Mxfp8};
    facts.memory_node = gpu::memoryNodeOf(devices_, pci);
    facts.float8 = row.float8;
    facts.library = "hipBLASLt " + versionText(version);
    return facts;
  }

  Telemetry sample(int device) override {
    const auto gpu = gpuOf(device);
    return gpu ? (*gpu)->board.sample() : Telemetry{};
  }

  gpu::Kernels& kernels() override { return kernels_; }
  gpu::ScaleLayout scaleLayout() const override { return gpu::ScaleLayout::Rows; }

  Result<std::unique_ptr<gpu::Product>> prepareProduct(int device, Dtype dtype,
                                                       int n) const override {
    DeviceProperties properties{};
    TRY_OK(ok(hip_.getDeviceProperties(&properties, device), "hipGetDeviceProperties"));
    TRY(row, rowOf(properties));
    TRY(gpu, gpuOf(device));
    TRY(blas, blasOf(*gpu));
    return makeHipBlasLtProduct(blas_, blas, dtype, row.float8, n);
  }

 private:
  static std::string versionText(int version) {
    return fmt::format("{}.{}.{}", version / 100'000, version / 100 % 1'000, version % 100);
  }

  static Result<ArchitectureRow> rowOf(const DeviceProperties& properties) {
    const auto name = architectureOf(properties);
    for (const auto& row : kArchitectures)
      if (row.name == name) return row;
    return fail(ErrorCode::NotFound,
                fmt::format("{} is a GPU of architecture {}, which muster-burn does not know; it "
                            "knows gfx90a, gfx942 and gfx950",
                            properties.name, name));
  }

  /// Never moved once it is made.
  Result<Gpu*> gpuOf(int device) const {
    TRY(pci, pciOf(device));
    const std::scoped_lock lock(mutex_);
    auto& gpu = gpus_[device];
    if (!gpu) gpu = std::make_unique<Gpu>(pci, devices_);
    return gpu.get();
  }
  /// Of the device that the thread has selected.
  Result<BlasHandle> blasOf(Gpu& gpu) const {
    const std::scoped_lock lock(mutex_);
    if (!gpu.blas) TRY_OK(blas_.ok(blas_.create(&gpu.blas), "hipblasLtCreate"));
    return gpu.blas;
  }

  const HipBlasLtApi blas_;
  const std::filesystem::path devices_;
  HipKernels kernels_;
  mutable std::mutex mutex_;
  mutable std::map<int, std::unique_ptr<Gpu>> gpus_;
};

}  // namespace

Result<Devices> openHip() {
  TRY(hip, HipApi::open());
  TRY(blas, HipBlasLtApi::open());
  return gpu::openGpus(std::make_shared<HipBackend>(hip, blas, gpu::pciDevices()));
}

}  // namespace muster::burn::hip
