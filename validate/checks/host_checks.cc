// SPDX-License-Identifier: Apache-2.0
// host.gemm and host.memory: the burn engine over the host's own processors and memory. It first
// proves that it can see faults.
#include "validate/burn/cpu/cpu_device.h"
#include "validate/burn/self_test.h"
#include "validate/checks/check_row.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace muster::validate {
namespace {

constexpr double kMaxMebibytes = 1 << 24;
constexpr int kSmallN = 2 * burn::kTile;
constexpr double kShortestStage = 1;  ///< seconds

wire::CheckStatus statusOf(burn::Outcome outcome) {
  switch (outcome) {
    case burn::Outcome::Pass:
      return wire::CheckStatus::Pass;
    case burn::Outcome::Fail:
      return wire::CheckStatus::Fail;
    case burn::Outcome::Timeout:
    case burn::Outcome::Slow:
      return wire::CheckStatus::Timeout;
    case burn::Outcome::NoData:
      return wire::CheckStatus::NoData;
    case burn::Outcome::Error:
      return wire::CheckStatus::Error;
  }
  return wire::CheckStatus::Error;
}

/// The host, once its engine has seen every fault that was put into it: that is proven once in the
/// life of a process, not before each check, because a slow host needs a minute for it.
Result<burn::Devices> trustedHost() {
  static std::atomic<bool> proven = false;
  burn::Devices devices;
  devices.push_back(burn::makeCpuDevice());
  if (proven) return devices;
  const auto tested = burn::selfTest(devices, 0, false);
  if (!tested.good())
    return fail(ErrorCode::Internal,
                "the test does not see its own injected faults, so it cannot be trusted: " +
                    tested.missed());
  proven = true;
  return devices;
}

std::chrono::milliseconds durationOf(const nlohmann::json& params, double fallback) {
  const double seconds = params.value("seconds", fallback);
  return std::chrono::milliseconds(static_cast<long>(std::clamp(seconds, 0.0, 86400.0) * 1000));
}

/// The usual size of products, unless one alone would outlast its stage: an emulated processor
/// would need minutes for a quick check.
int sizeThatFits(burn::Device& host, std::chrono::milliseconds each) {
  const int usual = host.preferredN(burn::Dtype::Fp64);
  const burn::GemmPlan small{burn::Dtype::Fp64, burn::Operands::Integer, kSmallN,
                             burn::Options{}.seed};
  auto work = host.prepareGemm(small);
  if (!work) return usual;
  const auto round = (*work)->multiply(1, false);
  if (!round || round->products == 0) return usual;
  const double seconds = round->seconds / static_cast<double>(round->products),
               allowed = std::max(std::chrono::duration<double>(each).count(), kShortestStage);
  int n = usual;
  while (n > kSmallN && seconds * std::pow(static_cast<double>(n) / kSmallN, 3) > allowed) n /= 2;
  return n;
}

Verdict verdictOf(const burn::Report& report) {
  Verdict verdict{statusOf(report.outcome()), {}, {}, burn::toJson(report)};
  for (const auto& stage : report.devices.front().stages) {
    for (const auto& finding : stage.findings)
      verdict.text += (verdict.text.empty() ? "" : "; ") + finding;
    for (const auto& [key, value] : stage.values) verdict.values[key] = value;
  }
  verdict.evidence["devices"][0].erase(
      "telemetry");  // hours of seconds; the stages say what was in them
  return verdict;
}

}  // namespace

Verdict checkHostGemm(const nlohmann::json& params, const Host&) {
  burn::Options options;
  options.n = params.value("n", 0);
  const double min_gflops = params.value("min_gflops", 0.0);
  const auto each = durationOf(params, 5) / 4;
  const auto trusted = trustedHost();
  if (!trusted) return checkError(trusted.error().str());
  const auto& devices = *trusted;
  if (options.n == 0) options.n = sizeThatFits(*devices.front(), each);
  for (const auto& stage : burn::usualStages(*devices.front(), each))
    if (stage.kind == burn::StageKind::Gemm) options.stages.push_back(stage);
  const auto report = burn::burn(devices, options);
  auto verdict = verdictOf(report);
  double products = 0, best = 0;
  for (const auto& stage : report.devices.front().stages) {
    if (const auto count = stage.values.find("products"); count != stage.values.end())
      products += count->second;
    if (const auto rate = stage.values.find("gemm_fp32_gflops"); rate != stage.values.end())
      best = std::max(best, rate->second);
  }
  verdict.values["gemm_gflops"] = best;
  verdict.values["products"] = products;
  const auto words = fmt::format(
      "{0:.0f} products of {3}x{3} on {1} cores, all bits right, {2:.2f} GFLOP/s in fp32", products,
      report.devices.front().identity.units, best, options.n);
  if (verdict.status != wire::CheckStatus::Pass) return verdict;
  verdict.text = words;
  if (!(best >= min_gflops))
    verdict.status = wire::CheckStatus::Fail,
    verdict.text =
        fmt::format("{:.2f} GFLOP/s in fp32, expected at least {:.2f}", best, min_gflops);
  return verdict;
}

Verdict checkHostMemory(const nlohmann::json& params, const Host&) {
  burn::Options options;
  options.memory_percent = std::min(params.value("percent_of_available", 0), 90);
  const double mebibytes = params.value("mebibytes", 64.0);
  if (options.memory_percent <= 0 && !(mebibytes >= 1 && mebibytes <= kMaxMebibytes))
    return checkError(fmt::format("{} MiB is out of range", mebibytes));
  if (options.memory_percent <= 0)
    options.memory_bytes = static_cast<std::uint64_t>(mebibytes) << 20;
  options.hold =
      std::chrono::milliseconds(static_cast<long>(params.value("hold_seconds", 0.0) * 1000));
  const auto limit = durationOf(params, 30);
  options.stages = {{burn::StageKind::Memory, burn::Dtype::Fp32, burn::Operands::Integer,
                     std::max(limit, std::chrono::milliseconds(1))}};
  options.memory_limit = std::chrono::milliseconds(
      static_cast<long>(std::clamp(params.value("limit_seconds", 0.0), 0.0, 86400.0) * 1000));
  const auto trusted = trustedHost();
  if (!trusted) return checkError(trusted.error().str());
  const auto& devices = *trusted;
  auto verdict = verdictOf(burn::burn(devices, options));
  if (verdict.status != wire::CheckStatus::Pass) return verdict;
  verdict.text = fmt::format("{:.0f} rounds of patterns over {:.0f} MiB, all words right",
                             verdict.values["memory_rounds"], verdict.values["memory_tested_mib"]);
  const double meant = std::chrono::duration<double>(limit).count(),
               took = verdict.values["memory_round_seconds"];
  if (took > meant)
    verdict.text +=
        fmt::format("; slow: the first round took {:.1f} s, {:.1f} s were meant, {:.3f} GB/s", took,
                    meant, verdict.values["memory_gbytes_per_s"]);
  return verdict;
}

}  // namespace muster::validate
