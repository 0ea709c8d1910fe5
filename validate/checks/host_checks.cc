// host.gemm and host.memory: the verdicts over the two engines, each of which first proves that it can see a fault.
#include "base/io/memory.h"
#include "validate/checks/catalogue.h"
#include "validate/checks/host_gemm.h"
#include "validate/checks/host_memory.h"

#include <algorithm>
#include <thread>

namespace muster::validate {
namespace {

constexpr std::uint64_t kSeed = 0x6d7573746572;  // replayable: it is in the evidence
constexpr int kCanaryN = 32;
constexpr int kMinMebibytes = 1, kMaxMebibytes = 1 << 20;

bool gemmSeesFaults() {
  using std::chrono::milliseconds;
  for (const auto fault : {GemmFault::FlipOutputBit, GemmFault::FlipInputBit, GemmFault::NotANumber}) {
    const auto report = runHostGemm(kCanaryN, 1, kSeed, milliseconds(0), fault);
    if (report.wrong_values == 0) return false;
    if (fault == GemmFault::FlipInputBit && report.corrupt_inputs == 0) return false;
  }
  return runHostGemm(kCanaryN, 1, kSeed, milliseconds(0)).wrong_values == 0;
}

bool memorySeesFaults() {
  std::vector<std::uint64_t> words(1024);
  const auto flip = [](std::span<std::uint64_t> region) { region[500] ^= 1u << 7; };
  const auto report = runMemoryPatterns(words, kSeed, std::chrono::seconds(1), flip);
  return report.wrong_words == static_cast<std::uint64_t>(report.passes);
}

}  // namespace

Verdict checkHostGemm(const nlohmann::json& params) {
  const int n = params.value("n", 256);
  const double seconds = params.value("seconds", 5.0);
  const double min_gflops = params.value("min_gflops", 0.0);
  if (n < 16 || n > 4096 || n % 16 != 0) return brokenTest(fmt::format("n = {} is not a multiple of 16 between 16 and 4096", n));
  if (!gemmSeesFaults()) return brokenTest("the test does not see its own injected faults: it cannot be trusted");
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  const auto report = runHostGemm(n, threads, kSeed, std::chrono::milliseconds(static_cast<long>(seconds * 1000)));
  Verdict verdict = pass(fmt::format("{} products of {}x{} on {} threads, all bits right, {:.2f} GFLOP/s", report.products, n, n, threads, report.gflops));
  if (report.wrong_values || report.corrupt_inputs)
    verdict = failed(fmt::format("{} wrong values, {} corrupted inputs in {} products; first: {}", report.wrong_values, report.corrupt_inputs,
                                 report.products, report.first_error));
  else if (report.products == 0)
    verdict = noData("no product was computed");
  else if (!(report.gflops >= min_gflops))
    verdict = failed(fmt::format("{:.2f} GFLOP/s, expected at least {:.2f}", report.gflops, min_gflops));
  verdict.values = {{"gemm_gflops", report.gflops}, {"products", static_cast<double>(report.products)}};
  verdict.evidence = {{"seed", kSeed}, {"n", n}, {"threads", threads}, {"first_error", report.first_error}};
  return verdict;
}

Verdict checkHostMemory(const nlohmann::json& params) {
  const int percent = params.value("percent_of_available", 0);
  const int mebibytes = percent > 0 ? static_cast<int>(io::availableMemoryBytes() >> 20) / 100 * std::min(percent, 90) : params.value("mebibytes", 64);
  const double seconds = params.value("seconds", 30.0);
  if (mebibytes < kMinMebibytes || mebibytes > kMaxMebibytes) return brokenTest(fmt::format("{} MiB is out of range", mebibytes));
  if (!memorySeesFaults()) return brokenTest("the test does not see its own injected faults: it cannot be trusted");
  std::vector<std::uint64_t> words((static_cast<std::size_t>(mebibytes) << 20) / sizeof(std::uint64_t));
  const auto report = runMemoryPatterns(words, kSeed, std::chrono::milliseconds(static_cast<long>(seconds * 1000)));
  Verdict verdict = pass(fmt::format("{} patterns over {} MiB, all words right", report.passes, mebibytes));
  if (report.wrong_words)
    verdict = failed(fmt::format("{} wrong words in {} patterns over {} MiB; first: {}", report.wrong_words, report.passes, mebibytes, report.first_error));
  else if (report.passes < report.patterns)
    verdict = {agent::CheckStatus::Timeout, fmt::format("only {} of {} patterns in {:.0f} s", report.passes, report.patterns, seconds), {}, {}};
  verdict.values = {{"memory_tested_mib", static_cast<double>(mebibytes)}, {"patterns", static_cast<double>(report.passes)}};
  verdict.evidence = {{"seed", kSeed}, {"first_error", report.first_error}};
  return verdict;
}

}  // namespace muster::validate
