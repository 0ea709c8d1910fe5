// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cpu/cpu_device.h"

#include "base/io/memory.h"
#include "validate/burn/cpu/blas.h"
#include "validate/burn/cpu/cpu_gemm.h"
#include "validate/burn/cpu/cpu_memory.h"
#include "validate/burn/cpu/cpu_sensors.h"
#include "validate/burn/cpu/lanes.h"
#include "validate/burn/golden.h"

#include <fstream>

namespace muster::burn {
namespace {

constexpr int kPreferredN = 1024;
constexpr const char* kRoute = "memory to memory";

std::string processorName(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      return line.substr(std::min(line.size(), line.find(": ") + 2));
  return "processor without a name";
}

class CpuDevice final : public Device {
 public:
  CpuDevice(int threads, std::filesystem::path root)
      : root_(std::move(root)), cpus_(cpu::allowedCpus()), sensors_(root_) {
    if (threads > 0 && static_cast<std::size_t>(threads) < cpus_.size())
      cpus_.resize(static_cast<std::size_t>(threads));
  }

  Identity identity() const override {
    return {"cpu", fmt::format("{} ({})", processorName(root_), cpu::Blas::ofThisHost().name()),
            cpu::firstLine(root_ / "sys/class/dmi/id/product_serial"), "host",
            static_cast<int>(cpus_.size())};
  }
  std::vector<Dtype> dtypes() const override { return {Dtype::Fp32, Dtype::Fp64}; }
  int preferredN(Dtype) const override { return kPreferredN; }

  Result<std::unique_ptr<GemmWork>> prepareGemm(const GemmPlan& plan) override {
    return cpu::makeCpuGemm(plan, cpus_, fault_);
  }

  std::uint64_t freeBytes() const override { return io::availableMemoryBytes(root_); }
  Result<std::unique_ptr<MemoryWork>> prepareMemory(std::uint64_t bytes) override {
    return cpu::makeCpuMemory(bytes, cpus_, fault_);
  }

  std::vector<std::string> routes() const override { return {kRoute}; }
  Result<CopyRound> copy(const std::string& route, std::uint64_t bytes,
                         std::uint64_t seed) override {
    if (route != kRoute) return fail(ErrorCode::InvalidInput, "the host has no route " + route);
    return cpu::copyMemory(bytes, seed, cpus_, fault_);
  }

  /// One verified product a core.
  Result<std::vector<UnitResult>> probeUnits(std::uint64_t seed) override {
    const GemmPlan plan{Dtype::Fp64, Operands::Integer, kTile, seed};
    TRY(work, prepareGemm(plan));
    TRY_OK(work->setGolden(goldenSums(plan)));
    TRY(round, work->multiply(cpus_.size(), true));
    std::vector<UnitResult> units;
    for (const int cpu : cpus_) units.push_back({cpu, 1, 0});
    for (const auto& bad : round.first)
      for (auto& unit : units)
        if (unit.unit == bad.unit) ++unit.wrong;
    return units;
  }

  Telemetry sample() override { return sensors_.sample(); }
  void inject(std::optional<Fault> fault) override { fault_ = fault; }

 private:
  const std::filesystem::path root_;
  std::vector<int> cpus_;
  cpu::CpuSensors sensors_;
  std::optional<Fault> fault_;
};

}  // namespace

std::unique_ptr<Device> makeCpuDevice(int threads, std::filesystem::path root) {
  return std::make_unique<CpuDevice>(threads, std::move(root));
}

}  // namespace muster::burn
