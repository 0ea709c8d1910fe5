// SPDX-License-Identifier: Apache-2.0
// The host's burn back end against plain OpenBLAS on all cores in the same run, and every bit of a
// value flipped.
#include "bench/bench.h"
#include "validate/burn/cpu/cpu_device.h"
#include "validate/burn/engine.h"
#include "validate/burn/self_test.h"

#include <dlfcn.h>

#include <thread>

namespace {

using namespace muster;
using namespace muster::burn;

constexpr int kN = 2048;   ///< plain OpenBLAS is near its best here
constexpr int kTurns = 5;  ///< of each, alternating: the fastest counts
constexpr std::chrono::milliseconds kStage{1500};

/// Plain OpenBLAS with its own threads, GFLOP/s of one product.
struct Plain {
  void (*threads)(int) = nullptr;
  void (*sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                float*, int) = nullptr;
  void (*dgemm)(int, int, int, int, int, int, double, const double*, int, const double*, int,
                double, double*, int) = nullptr;

  static std::optional<Plain> load() {
    void* library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!library) return std::nullopt;
    Plain plain;
    plain.threads =
        reinterpret_cast<decltype(plain.threads)>(dlsym(library, "openblas_set_num_threads"));
    plain.sgemm = reinterpret_cast<decltype(plain.sgemm)>(dlsym(library, "cblas_sgemm"));
    plain.dgemm = reinterpret_cast<decltype(plain.dgemm)>(dlsym(library, "cblas_dgemm"));
    return plain;
  }
  template <class Value, class Gemm>
  double gflops(Gemm gemm) const {
    std::vector<Value> a(kN * kN, Value(0.5)), b(a), c(a);
    threads(static_cast<int>(std::thread::hardware_concurrency()));
    const double seconds = bench::fastestSeconds(3, [&] {
      gemm(101, 111, 112, kN, kN, kN, 1, a.data(), kN, b.data(), kN, 0, c.data(), kN);
    });
    threads(1);
    return 2e-9 * kN * double(kN) * kN / seconds;
  }
};

double verified(const Devices& devices, Dtype dtype) {
  Options options;
  options.stages = {{StageKind::Gemm, dtype, Operands::Integer, kStage}};
  const auto report = burn::burn(devices, options);
  const auto& stage = report.devices.front().stages.front();
  return report.outcome() == Outcome::Pass
             ? stage.values.at(fmt::format("gemm_{}_gflops", rowOf(dtype).name))
             : 0;
}

void products(bench::Report& report, const Devices& devices) {
  const auto plain = Plain::load();
  if (!plain) {
    fmt::print(stderr, "no OpenBLAS on this machine: its figures are left out\n");
    return;
  }
  for (const auto dtype : {Dtype::Fp32, Dtype::Fp64}) {
    double best_plain = 0, best_verified = 0;
    for (int turn = 0; turn < kTurns; ++turn) {
      best_plain = std::max(best_plain, dtype == Dtype::Fp32 ? plain->gflops<float>(plain->sgemm)
                                                             : plain->gflops<double>(plain->dgemm));
      best_verified = std::max(best_verified, verified(devices, dtype));
    }
    const auto* name = rowOf(dtype).name;
    report.record({fmt::format("cpu {} verified products", name), best_verified, "GFLOP/s",
                   std::nullopt, bench::Bar::AtLeast, best_plain});
    report.record({fmt::format("cpu {} share of plain OpenBLAS", name), best_verified / best_plain,
                   "", 0.8, bench::Bar::AtLeast, std::nullopt});
  }
}

void memory(bench::Report& report, const Devices& devices) {
  Options options;
  options.memory_bytes = 1u << 30;
  options.stages = {{StageKind::Memory}};
  const auto stage = burn::burn(devices, options).devices.front().stages.front();
  report.record({"host memory patterns", stage.values.at("memory_gbytes_per_s"), "GB/s",
                 std::nullopt, bench::Bar::AtLeast, stage.values.at("memory_copy_gbytes_per_s")});
}

void faults(bench::Report& report, Devices& devices) {
  const auto result = selfTest(devices, 0, true);
  const auto missed = std::count_if(result.rows.begin(), result.rows.end(),
                                    [](const auto& row) { return !row.caught; });
  if (missed) fmt::print(stderr, "missed: {}\n", result.missed());
  report.record({"injected faults", static_cast<double>(result.rows.size()), "", std::nullopt,
                 bench::Bar::AtLeast, std::nullopt});
  report.record({"injected faults missed", static_cast<double>(missed), "", 0, bench::Bar::AtMost,
                 std::nullopt});
}

}  // namespace

int main() {
  bench::Report report("burn");
  Devices devices;
  devices.push_back(makeCpuDevice());
  products(report, devices);
  memory(report, devices);
  faults(report, devices);
  return report.exitCode();
}
