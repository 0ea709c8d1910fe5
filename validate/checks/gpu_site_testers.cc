// SPDX-License-Identifier: Apache-2.0
// The site's own testers: dcgmi diag, nccl-tests. Their exit status alone proves nothing, and
// neither do their words: each GPU must have passed each test.
#include "base/utf8.h"
#include "validate/checks/expectations.h"
#include "validate/checks/external_program.h"
#include "validate/checks/gpu_snapshot.h"
#include "validate/collective/dcgm.h"
#include "validate/collective/nccl_tests.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

namespace muster::validate {
namespace {

/// "a,b c": words of a gate's parameter.
std::set<std::string> wordsOf(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream from(text);
  return {std::istream_iterator<std::string>(from), std::istream_iterator<std::string>()};
}

}  // namespace

Verdict checkGpuDcgm(const nlohmann::json& params, const Host& host) {
  collective::DcgmExpected expected{params.value("level", 2), 0,
                                    wordsOf(params.value("may_skip", std::string()))};
  if (params.contains("gpus")) {
    expected.gpus = params.at("gpus").get<std::size_t>();
  } else {
    const auto look = readGpus();
    if (!look) return noData("how many GPUs dcgmi must test is unknown: " + look.error().str());
    expected.gpus = look->gpus.size();
  }
  if (expected.gpus == 0) return noData("NVML sees no GPU");
  const auto done = runProgram(host, "dcgmi", {"diag", "-r", std::to_string(expected.level), "-j"},
                               params.value("limit_seconds", 1800.0));
  if (!done) return broken(done.error());
  const auto report = collective::parseDcgmDiag(done->out);
  if (!report)
    return noData(fmt::format("dcgmi: {} (exit {}): {}", report.error().str(), done->code,
                              cutToBytes(done->err, 300)));
  auto wrong = collective::shortcomings(*report, expected);
  if (done->code != 0) wrong.push_back(fmt::format("dcgmi ended with {}", done->code));
  const auto skipped = report->skipped.empty()
                           ? std::string()
                           : fmt::format("; not run: {}", fmt::join(report->skipped, ", "));
  auto verdict = wrong.empty()
                     ? pass(fmt::format("DCGM {} level {}: {} results passed, all tests on each of "
                                        "{} GPUs{}",
                                        report->version, expected.level, report->passed,
                                        expected.gpus, skipped))
                     : failed(fmt::format("{}", fmt::join(wrong, "; ")));
  verdict.evidence = {{"output", done->out.substr(0, kEvidenceBytes)}};
  return verdict;
}

namespace {

/// The table's floor is of all-reduce over all GPUs of the usual node.
std::optional<double> busbwFloor(const nlohmann::json& params, const std::string& program,
                                 const std::string& model, std::size_t gpus) {
  constexpr std::size_t kFloorsGpus = 8;
  if (params.contains("min_busbw_gbytes_per_s"))
    return params.at("min_busbw_gbytes_per_s").get<double>();
  const auto* sku = Skus::builtIn().find(model);
  if (!sku || gpus != kFloorsGpus || program.find("all_reduce") == std::string::npos)
    return std::nullopt;
  const auto row = sku->expect.find("nccl_min_busbw_gbytes_per_s");
  return row == sku->expect.end() ? std::nullopt : std::optional(row->second.value);
}

Verdict verdictOfNccl(const collective::NcclTest& test, std::size_t gpus,
                      std::optional<double> floor) {
  const double busbw = test.bestBusbw();
  const auto wrong_values = test.wrongValues();
  auto verdict = pass(fmt::format("{:.1f} GB/s of bus bandwidth, data right{}", busbw,
                                  floor ? "" : "; nothing was expected of this model"));
  if (wrong_values)
    verdict = failed(fmt::format("{} values are wrong", wrong_values));
  else if (test.devices.empty())
    verdict = noData("it does not say which GPUs took part");
  else if (test.gpus() != gpus)
    verdict = failed(fmt::format("{} of {} GPUs took part", test.gpus(), gpus));
  else if (!test.checked)
    verdict = noData("the data was not checked");
  else if (floor && !(busbw >= *floor))
    verdict = failed(fmt::format("{:.1f} GB/s of bus bandwidth, expected {:.1f}", busbw, *floor));
  verdict.values = {{"nccl_busbw_gbytes_per_s", busbw}};
  return verdict;
}

}  // namespace

Verdict checkGpuNcclTests(const nlohmann::json& params, const Host& host) {
  const auto program = params.value("program", "all_reduce_perf");
  const auto look = params.contains("model") ? Result<GpuSnapshot>(GpuSnapshot{})
                                             : readGpus();  // AMD's: the profile says what there is
  const auto gpus = params.value("gpus", look ? look->gpus.size() : 0);
  if (gpus < 1) return noData(look ? "NVML sees no GPU" : look.error().str());
  const auto model =
      params.value("model", look && !look->gpus.empty() ? look->gpus.front().identity.model : "");
  const auto done = runProgram(host, program,
                               {"-b", "8", "-e", params.value("max_bytes", "8G"), "-f", "2", "-g",
                                std::to_string(gpus), "-c", "1"},
                               params.value("limit_seconds", 600.0));
  if (!done) return broken(done.error());
  const auto test = collective::parseNcclTests(
      done->out, std::string_view(program).substr(program.rfind('/') + 1));
  if (!test)
    return noData(fmt::format("{}: {} (exit {}): {}", program, test.error().str(), done->code,
                              cutToBytes(done->err, 300)));
  auto verdict = verdictOfNccl(*test, gpus, busbwFloor(params, program, model, gpus));
  if (done->code != 0) {
    verdict.status = wire::CheckStatus::Fail;
    verdict.text = fmt::format("{} ended with {}: {}", program, done->code, verdict.text);
  }
  verdict.evidence = {{"output", done->out.substr(0, kEvidenceBytes)}};
  return verdict;
}

}  // namespace muster::validate
