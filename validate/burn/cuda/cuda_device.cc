// SPDX-License-Identifier: Apache-2.0
// One GPU as a burn device: CUDA for the work, NVML for what the board says meanwhile.
#include "validate/burn/backends.h"
#include "validate/burn/cuda/cuda_gemm.h"
#include "validate/burn/cuda/cuda_memory.h"
#include "validate/burn/cuda/kernels.h"
#include "validate/checks/nvml.h"

#include <algorithm>
#include <array>

namespace muster::burn::cuda {
namespace {

constexpr std::uint64_t kSpareBytes = 1ULL << 30;  ///< for reports, workspaces and the driver
constexpr int kProbeBlocksPerUnit = 8;
constexpr int kHopper = 9;

/// NVML's answer for one GPU, found by its PCI address.
class Board {
 public:
  explicit Board(std::string pci) : pci_(std::move(pci)), nvml_(validate::Nvml::open()) {}

  /// Found once among all GPUs, then asked alone.
  std::optional<validate::GpuHealth> look() {
    if (!nvml_) return std::nullopt;
    if (index_) {
      auto gpu = nvml_->gpu(*index_);
      if (gpu && tail(gpu->identity.pci) == tail(pci_)) return std::move(*gpu);
      index_.reset();
    }
    const auto gpus = nvml_->gpus();
    if (!gpus) return std::nullopt;
    for (std::size_t i = 0; i < gpus->size(); ++i) {
      if (tail((*gpus)[i].identity.pci) != tail(pci_)) continue;
      index_ = static_cast<unsigned>(i);
      return (*gpus)[i];
    }
    return std::nullopt;
  }

 private:
  /// "00000000:3B:00.0" and "0000:3b:00.0" are the same place.
  static std::string tail(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return text.size() > 12 ? text.substr(text.size() - 12) : text;
  }
  const std::string pci_;
  const Result<validate::Nvml> nvml_;
  std::optional<unsigned> index_;
};

constexpr std::array kHostRoutes = std::to_array<std::pair<std::string_view, CopyDirection>>(
    {{"host to device", CopyDirection::HostToDevice},
     {"device to host", CopyDirection::DeviceToHost}});

struct Peer {
  int number;
  std::string route;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int number, const cudaDeviceProp& properties, std::string pci, BlasHandle blas,
             std::vector<Peer> peers)
      : number_(number),
        units_(properties.multiProcessorCount),
        major_(properties.major),
        model_(properties.name),
        pci_(pci),
        blas_(std::move(blas)),
        peers_(std::move(peers)),
        board_(std::move(pci)) {
    if (const auto seen = board_.look()) serial_ = seen->identity.serial;
  }

  Identity identity() const override {
    return {"cuda", model_, serial_,
            pci_,   units_, fmt::format("cuBLASLt {}", cublasLtGetVersion())};
  }

  std::vector<Dtype> dtypes() const override {
    std::vector<Dtype> dtypes{Dtype::Bf16, Dtype::Fp16, Dtype::Tf32, Dtype::Int8, Dtype::Fp64};
    if (major_ >= kHopper)
      dtypes.push_back(Dtype::Fp8);  // 8.9 has it too, but not in a datacentre's GPU
    return dtypes;
  }
  /// The larger, the less a check of n² values weighs against n³ products.
  int preferredN(Dtype dtype) const override {
    return std::min(rowOf(dtype).max_n,
                    dtype == Dtype::Fp64 || dtype == Dtype::Tf32 ? 8192 : 16384);
  }

  Result<std::unique_ptr<GemmWork>> prepareGemm(const GemmPlan& plan) override {
    TRY_OK(here());
    return makeCudaGemm(plan, number_, blas_.get(), fault_);
  }

  std::uint64_t freeBytes() const override {
    std::size_t free = 0, total = 0;
    if (!here() || cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
    return free > kSpareBytes ? free - kSpareBytes : 0;
  }
  Result<std::unique_ptr<MemoryWork>> prepareMemory(std::uint64_t bytes) override {
    return makeCudaMemory(bytes, number_, fault_);
  }

  std::vector<std::string> routes() const override {
    std::vector<std::string> routes;
    for (const auto& [route, direction] : kHostRoutes) routes.emplace_back(route);
    for (const auto& peer : peers_) routes.push_back(peer.route);
    return routes;
  }
  Result<CopyRound> copy(const std::string& route, std::uint64_t bytes,
                         std::uint64_t seed) override {
    for (const auto& [name, direction] : kHostRoutes)
      if (route == name) return copyOver(direction, number_, number_, bytes, seed, fault_);
    for (const auto& peer : peers_)
      if (route == peer.route)
        return copyOver(CopyDirection::DeviceToPeer, number_, peer.number, bytes, seed, fault_);
    return fail(ErrorCode::InvalidInput, "this GPU has no route " + route);
  }

  Result<std::vector<UnitResult>> probeUnits(std::uint64_t seed) override {
    TRY_OK(here());
    TRY(report, allocate(sizeof(UnitReport)));
    TRY(stream, makeStream());
    TRY_OK(
        ok(cudaMemsetAsync(report.get(), 0, sizeof(UnitReport), stream.get()), "cudaMemsetAsync"));
    cuda::probeUnits(stream.get(), seed, units_ * kProbeBlocksPerUnit, as<UnitReport>(report));
    TRY_OK(launched("probing units"));
    auto seen = std::make_unique<UnitReport>();
    TRY_OK(ok(cudaMemcpyAsync(seen.get(), report.get(), sizeof(UnitReport), cudaMemcpyDeviceToHost,
                              stream.get()),
              "cudaMemcpyAsync"));
    TRY_OK(ok(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize"));
    std::vector<UnitResult> units;
    for (int unit = 0; unit < kMaxUnits; ++unit)
      if (seen->products[unit]) units.push_back({unit, seen->products[unit], seen->wrong[unit]});
    return units;
  }

  Telemetry sample() override {
    Telemetry out;
    const auto seen = board_.look();
    if (!seen) return out;
    const auto number = [](const auto& value, double unit) {
      return value ? std::optional(static_cast<double>(*value) * unit) : std::nullopt;
    };
    out.watts = number(seen->power_mw, 1e-3), out.limit_watts = number(seen->power_limit_mw, 1e-3);
    out.clock_mhz = number(seen->sm_mhz, 1), out.temperature_c = number(seen->temperature_c, 1);
    out.throttle_power_ns = seen->throttle_power_ns,
    out.throttle_thermal_ns = seen->throttle_thermal_ns,
    out.throttle_reasons = seen->throttle_reasons;
    out.throttle_hardware_ns =
        seen->throttle_board_ns;  // not the reliability counter: at its highest clock a good chip
                                  // is held by its voltage
    out.ecc_corrected = seen->ecc_corrected_volatile,
    out.ecc_uncorrected = seen->ecc_uncorrected_volatile;
    return out;
  }

  void inject(std::optional<Fault> fault) override { fault_ = fault; }

 private:
  Result<void> here() const { return ok(cudaSetDevice(number_), "cudaSetDevice"); }

  const int number_, units_, major_;
  const std::string model_, pci_;
  std::string serial_;
  BlasHandle blas_;
  const std::vector<Peer> peers_;
  Board board_;
  std::optional<Fault> fault_;
};

Result<std::string> pciOf(int number) {
  char text[32] = {};
  TRY_OK(ok(cudaDeviceGetPCIBusId(text, sizeof text, number), "cudaDeviceGetPCIBusId"));
  return std::string(text);
}

/// Those that this one reaches without the host's memory in between.
Result<std::vector<Peer>> peersOf(int number, int count) {
  std::vector<Peer> peers;
  for (int other = 0; other < count; ++other) {
    int can = 0;
    if (other == number) continue;
    TRY_OK(ok(cudaDeviceCanAccessPeer(&can, number, other), "cudaDeviceCanAccessPeer"));
    if (!can) continue;
    const auto enabled = cudaDeviceEnablePeerAccess(other, 0);
    if (enabled != cudaErrorPeerAccessAlreadyEnabled)
      TRY_OK(ok(enabled, "cudaDeviceEnablePeerAccess"));
    TRY(pci, pciOf(other));
    peers.push_back({other, "device to " + pci});
  }
  cudaGetLastError();
  return peers;
}

Result<void> open(Devices& devices) {
  int count = 0;
  if (const auto code = cudaGetDeviceCount(&count); code != cudaSuccess)
    return fail(
        ErrorCode::NotFound,
        fmt::format(
            "CUDA sees no GPU: {}; is the NVIDIA driver loaded, and not older than this toolkit?",
            cudaGetErrorString(code)));
  for (int number = 0; number < count; ++number) {
    TRY_OK(ok(cudaSetDevice(number), "cudaSetDevice"));
    cudaDeviceProp properties{};
    TRY_OK(ok(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties"));
    TRY(pci, pciOf(number));
    TRY(peers, peersOf(number, count));
    cublasLtHandle_t blas = nullptr;
    TRY_OK(ok(cublasLtCreate(&blas), "cublasLtCreate"));
    devices.push_back(std::make_unique<CudaDevice>(number, properties, std::move(pci),
                                                   BlasHandle(blas), std::move(peers)));
  }
  return {};
}

}  // namespace
}  // namespace muster::burn::cuda

extern "C" __attribute__((visibility("default"))) void muster_burn_open_cuda(
    muster::burn::Devices& devices, muster::Result<void>& answer) {
  answer = muster::burn::cuda::open(devices);
}
