// SPDX-License-Identifier: Apache-2.0
// GPU checks that our own programs do: muster-burn, muster-collective. Their exit status alone
// proves nothing, and neither do their words.
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/utf8.h"
#include "validate/checks/amd.h"
#include "validate/checks/burn_floors.h"
#include "validate/checks/expectations.h"
#include "validate/checks/external_program.h"
#include "validate/checks/gpu_snapshot.h"
#include "validate/collective/collective.h"
#include "validate/history/fingerprint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace muster::validate {
namespace {

constexpr std::size_t kFingerprintDigits = 12;  // 48 bits: a double holds them exactly
constexpr double kPowerShare = 0.75;  ///< of the board's limit, as a mean. Source: DCGM's targeted
                                      ///< power asks that of its highest sample
constexpr std::chrono::seconds kAfterLimit{
    10};  ///< muster-collective ends itself at its limit, with words

constexpr std::string_view kAllStages = "gemm,memory,copy,units,caches,power";

/// What a GPU computed on random data, as a number that the fleet's history keeps: the same on all
/// GPUs of a model, product and library.
void addFingerprint(std::map<std::string, double>& values, std::size_t gpu,
                    const nlohmann::json& device, const nlohmann::json& stage) {
  const auto digest = stage.value("reference", ""), library = device.value("library", ""),
             product = stage.value("product", "");
  std::uint64_t bits = 0;
  const auto* end = digest.data() + std::min(digest.size(), kFingerprintDigits);
  if (library.empty() || product.empty() || digest.size() < kFingerprintDigits ||
      std::from_chars(digest.data(), end, bits, 16).ptr != end)
    return;
  values[fmt::format("gpu{}.{}{} ({}, {})", gpu, history::kFingerprint, stage.value("name", "?"),
                     product, library)] = static_cast<double>(bits);
}

/// One device that is said to have failed, or to have passed without having been evaluated, fails.
Verdict verdictOfBurn(const nlohmann::json& report, std::size_t gpus) {
  if (!report.is_object() || report.value("format", "") != "muster-burn/1" ||
      !report.contains("devices"))
    return noData("muster-burn printed no report");
  Verdict verdict = pass("");
  std::vector<std::string> wrong;
  std::size_t at = 0;
  for (const auto& device : report["devices"]) {
    for (const auto& stage : device.value("stages", nlohmann::json::array())) {
      if (stage.value("outcome", "") != "pass")
        wrong.push_back(fmt::format(
            "GPU {} (serial {}) {} {}: {}", device.value("place", "?"), device.value("serial", "?"),
            stage.value("name", "?"), stage.value("outcome", "no outcome"),
            fmt::join(stage.value("findings", std::vector<std::string>{}), ", ")));
      const auto values = stage.value("values", nlohmann::json::object());
      for (const auto& [key, value] : values.items())
        if (value.is_number())
          verdict.values[fmt::format("gpu{}.{}", at, key)] = value.get<double>();
      addFingerprint(verdict.values, at, device, stage);
    }
    if (device.value("outcome", "") != "pass" && wrong.empty())
      wrong.push_back(fmt::format("GPU {}: {}", device.value("place", "?"),
                                  device.value("outcome", "no outcome")));
    ++at;
  }
  if (at != gpus) wrong.push_back(fmt::format("{} of {} GPUs were burnt", at, gpus));
  if (report.value("outcome", "") != "pass" && wrong.empty())
    wrong.push_back("the report as a whole has not passed");
  verdict.text = wrong.empty()
                     ? fmt::format("{} GPUs burnt, every result right, nothing below its floor", at)
                     : fmt::format("{}", fmt::join(wrong, "; "));
  if (!wrong.empty()) verdict.status = wire::CheckStatus::Fail;
  return verdict;
}

/// Beside the agent, or by PATH.
std::string ownProgram(const Host& host, const char* name) {
  std::error_code error;
  const auto beside = host.programs / name;
  return std::filesystem::exists(beside, error) ? beside.string() : name;
}

/// What is to be burnt, and by which back end.
struct BurnTarget {
  std::string backend, model;
  std::size_t gpus = 0;
  std::string sensors;
};

/// AMD's GPUs where the gate names their model, else those that NVML sees.
Result<BurnTarget> burnTarget(const nlohmann::json& params, const Host& host) {
  if (params.contains("model")) {
    TRY(gpus, lookAtAmd(host));
    if (gpus.empty()) return fail(ErrorCode::NotFound, "no AMD GPU is seen");
    // The driver tells no reasons of throttling: its times are evaluated where it has them.
    return BurnTarget{"hip", gpus.front().model, gpus.size(), "watts,ecc"};
  }
  TRY(look, readGpus());
  if (look.gpus.empty()) return fail(ErrorCode::NotFound, "NVML sees no GPU");
  return BurnTarget{"cuda", look.gpus.front().identity.model, look.gpus.size(),
                    "watts,ecc,throttle"};
}

}  // namespace

Verdict checkGpuBurn(const nlohmann::json& params, const Host& host) {
  const auto target = burnTarget(params, host);
  if (!target) return noData(target.error().str());
  const double seconds = params.value("seconds", 20.0),
               limit = params.value("limit_seconds", 3600.0);
  std::vector<std::string> args{"--backend", target->backend, "--json",
                                "-",         "--seconds",     fmt::format("{}", seconds),
                                "--require", target->sensors};
  const auto stages = params.value("stages", std::string(kAllStages));
  args.insert(args.end(), {"--stage", stages, "--min-power-share",
                           fmt::format("{}", params.value("min_power_share", kPowerShare))});
  if (params.contains("hold_seconds"))
    args.insert(args.end(),
                {"--hold-seconds", fmt::format("{}", params.at("hold_seconds").get<double>())});
  const auto& model = target->model;
  const auto floors = burnFloors(model, stages);
  if (!floors.empty())
    args.insert(args.end(), {"--min", fmt::format("{}", fmt::join(floors, ","))});
  const auto done = runProgram(host, ownProgram(host, "muster-burn"), args, limit);
  if (!done) return broken(done.error());
  auto report = jsonOrNone(done->out, kToolJson);
  auto verdict = verdictOfBurn(report, target->gpus);
  if (verdict.status == wire::CheckStatus::Pass && done->code != 0)
    verdict = failed(
        fmt::format("muster-burn ended with {}: {}", done->code, cutToBytes(done->err, 500)));
  if (done->code == 0) {
    compareGpusOfTheNode(verdict);
    evaluateCopiesAndNameTheRest(verdict, model, target->gpus, floors);
  }
  if (verdict.status == wire::CheckStatus::NoData)
    verdict.text += fmt::format(" and ended with {}: {}", done->code, cutToBytes(done->err, 500));
  if (floors.empty() && stages != "units" && stages != "power")
    verdict.text +=
        fmt::format("; {}: its rates were measured, not evaluated",
                    Skus::builtIn().find(model) ? "the table has no floor for these stages"
                                                : fmt::format("no table knows {}", model));
  if (report.is_object() && report.contains("devices"))
    for (auto& device : report["devices"]) device.erase("telemetry");
  verdict.evidence = report.is_object()
                         ? std::move(report)
                         : nlohmann::json{{"output", done->out.substr(0, kEvidenceBytes)}};
  return verdict;
}

Verdict checkCollectiveReady(const nlohmann::json&, const Host& host) {
  const auto done = runProgram(host, ownProgram(host, "muster-collective"), {"--probe"}, 30);
  if (!done) return broken(done.error());
  const auto probe = jsonOrNone(done->out, kToolJson);
  if (done->code != 0 || !probe.is_object() ||
      probe.value("format", "") != "muster-collective-probe/1" || !probe.contains("transports") ||
      !probe["transports"].is_array())
    return noData(fmt::format("muster-collective --probe ended with {}: {}", done->code,
                              cutToBytes(done->err, 300)));
  const auto has = [&probe](const char* name) {
    return std::find(probe["transports"].begin(), probe["transports"].end(), name) !=
           probe["transports"].end();
  };
  const bool nccl = has("nccl");
  auto verdict = has("tcp") || nccl
                     ? pass(nccl ? fmt::format("{} {} on {} GPUs", probe.value("library", "NCCL"),
                                               probe.value("nccl", "?"), probe.value("gpus", 0))
                                 : fmt::format("TCP alone: {}", probe.value("no_nccl", "no NCCL")))
                     : failed("muster-collective has no transport");
  verdict.values = {{"tcp", has("tcp") ? 1 : 0}, {"nccl_gpus", nccl ? probe.value("gpus", 0) : 0}};
  verdict.evidence = probe;
  return verdict;
}

Verdict checkGpuCollective(const nlohmann::json& params, const Host& host) {
  const auto job = collective::parseJob(jsonText(params));
  if (!job) return checkError(job.error().str());
  io::Command command;
  command.program = ownProgram(host, "muster-collective");
  command.stdin_text = jsonText(params);
  command.timeout = job->limit + kAfterLimit;
  const auto done = host.run(command);
  if (!done) return broken(done.error());
  const auto report = collective::parseReport(done->out, *job);
  if (!report)
    return noData(fmt::format("{} (exit {}): {}", report.error().str(), done->code,
                              cutToBytes(done->err, 500)));
  Verdict verdict = pass(fmt::format("{}: {} results of ranks {} to {}, data right", job->group,
                                     report->rows.size(), job->first_rank,
                                     job->first_rank + job->local_ranks - 1));
  if (!report->passed)
    verdict = failed(fmt::format("{}: {}", job->group, fmt::join(report->findings, "; ")));
  else if (done->code != 0)
    verdict = failed(fmt::format("{}: muster-collective ended with {}", job->group, done->code));
  for (const auto& row : report->rows)
    if (row.bytes == job->max_bytes && row.operation != collective::Operation::Pair)
      verdict.values[fmt::format("rank{}.{}_busbw_gbytes_per_s", row.rank,
                                 collective::toString(row.operation))] = row.busbw_gbytes_per_s;
  verdict.evidence = collective::toJson(*report);
  return verdict;
}

}  // namespace muster::validate
