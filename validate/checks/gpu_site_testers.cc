// SPDX-License-Identifier: Apache-2.0
// The site's own testers: dcgmi diag, nccl-tests. Their exit status alone proves nothing, and
// neither do their words: each GPU must have passed each test.
#include "base/utf8.h"
#include "validate/checks/expectations.h"
#include "validate/checks/external_program.h"
#include "validate/checks/gpu_snapshot.h"
#include "validate/collective/dcgm.h"
#include "validate/collective/nccl_channels.h"
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
  const auto not_run = collective::notRun(*report, expected);
  const auto skipped =
      not_run.empty() ? std::string() : fmt::format("; not run: {}", fmt::join(not_run, ", "));
  auto verdict =
      wrong.empty()
          ? pass(fmt::format("DCGM {} level {}: {} results passed, all {} on each of "
                             "{} GPUs{}",
                             report->version, expected.level, report->passed,
                             not_run.empty() ? "tests" : "other tests", expected.gpus, skipped))
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

constexpr const char* kLargestMessage = "8G";

/// Sizes are rounded down to what the ranks share evenly, and a small message says nothing of the
/// rate of a large one. Empty: the largest that was asked for is there.
std::string whatIsMissing(const collective::NcclTest& test, const nlohmann::json& params) {
  constexpr double kRoundedDown = 0.5;
  const auto asked = params.value("max_bytes", std::string(kLargestMessage));
  if (static_cast<double>(test.largestBytes()) >=
      kRoundedDown * collective::messageBytes(asked).value_or(0))
    return {};
  return fmt::format("messages up to {} were asked for, and the largest result is of {} bytes",
                     asked, test.largestBytes());
}

Verdict verdictOfNccl(const collective::NcclTest& test, const nlohmann::json& params,
                      std::size_t gpus, std::optional<double> floor) {
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
  else if (const auto missing = whatIsMissing(test, params); !missing.empty())
    verdict = noData(missing);
  else if (floor && !(busbw >= *floor))
    verdict = failed(fmt::format("{:.1f} GB/s of bus bandwidth, expected {:.1f}", busbw, *floor));
  verdict.values = {{"nccl_busbw_gbytes_per_s", busbw}};
  return verdict;
}

}  // namespace

namespace {

/// Azure's node health checks ask for 18 GB/s over HCAs of 25 (A100, HDR) and 37 over 50 (H100,
/// NDR), each with as many HCAs as GPUs.
constexpr double kLoopbackShare = 0.72;
constexpr double kBitsOfByte = 8;
constexpr const char* kLeastLoopback = "64M";  ///< smaller messages say nothing of the HCAs

/// GPUs that share an HCA share its rate.
std::optional<double> loopbackFloor(const nlohmann::json& params, std::size_t gpus) {
  if (params.contains("min_busbw_gbytes_per_s"))
    return params.at("min_busbw_gbytes_per_s").get<double>();
  const auto hcas = params.value("devices", nlohmann::json::array()).size();
  if (!params.contains("port_gbits") || hcas == 0) return std::nullopt;
  const double share = std::min(1.0, static_cast<double>(hcas) / static_cast<double>(gpus));
  return kLoopbackShare * share * params.at("port_gbits").get<double>() / kBitsOfByte;
}

/// No way but the network, no network but these HCAs, and each channel said in INFO.
std::map<std::string, std::string> loopbackEnvironment(const nlohmann::json& params) {
  std::map<std::string, std::string> out{
      {"NCCL_P2P_DISABLE", "1"},         {"NCCL_SHM_DISABLE", "1"},
      {"NCCL_NVLS_ENABLE", "0"},         {"NCCL_NET", "IB"},
      {"NCCL_IB_DISABLE", "0"},          {"NCCL_DEBUG", "INFO"},
      {"NCCL_DEBUG_SUBSYS", "INIT,NET"}, {"NCCL_DEBUG_FILE", "/dev/stderr"}};
  const auto devices = params.value("devices", std::vector<std::string>());
  // "=": exactly these names, and not all that begin so.
  if (!devices.empty()) out["NCCL_IB_HCA"] = fmt::format("={}", fmt::join(devices, ","));
  if (params.contains("gid_index"))
    out["NCCL_IB_GID_INDEX"] = std::to_string(params.at("gid_index").get<int>());
  if (params.contains("traffic_class"))
    out["NCCL_IB_TC"] = std::to_string(params.at("traffic_class").get<int>());
  return out;
}

/// HCAs that no channel used, where NCCL says their names.
std::vector<std::string> idleHcas(const nlohmann::json& params,
                                  const collective::NcclChannels& channels) {
  std::set<std::string> used;
  for (const int device : channels.devices) {
    const auto name = channels.names.find(device);
    if (name == channels.names.end()) return {};  // several ports are one device: nothing is known
    used.insert(name->second);
  }
  std::vector<std::string> out;
  for (const auto& hca : params.value("devices", std::vector<std::string>()))
    if (!used.contains(hca)) out.push_back(hca);
  return out;
}

/// A rate over another way says nothing of the HCAs.
Verdict verdictOfLoopback(const collective::NcclTest& test,
                          const collective::NcclChannels& channels, const nlohmann::json& params,
                          std::size_t gpus) {
  const auto hcas = channels.over("IB");
  std::size_t others = 0;
  for (const auto& [name, count] : channels.network) others += name == "IB" ? 0 : count;
  if (channels.direct > 0)
    return noData(
        fmt::format("{} channels went by NVLink, PCIe or shared memory, although NCCL was "
                    "told not to: this NCCL does not test the HCAs",
                    channels.direct));
  if (others > 0)
    return failed(fmt::format("{} channels went over {} instead of RDMA", others,
                              channels.network.begin()->first == "IB"
                                  ? std::next(channels.network.begin())->first
                                  : channels.network.begin()->first));
  if (hcas == 0)
    return noData("NCCL does not say that its data went over the HCAs (no channel \"via NET/IB\")");
  auto verdict = verdictOfNccl(test, params, gpus, loopbackFloor(params, gpus));
  verdict.text += fmt::format("; {} of {} channels straight to the GPU's memory (GPUDirect RDMA)",
                              channels.gdr, hcas);
  if (const auto idle = idleHcas(params, channels); !idle.empty())
    verdict.text += fmt::format("; no data by {}", fmt::join(idle, ", "));
  const auto busbw = verdict.values.at("nccl_busbw_gbytes_per_s");
  verdict.values = {{"nccl_loopback_busbw_gbytes_per_s", busbw},
                    {"gdr_share", static_cast<double>(channels.gdr) / static_cast<double>(hcas)}};
  return verdict;
}

/// "NCCL WARN …", the first: why it did not come to numbers.
std::string firstWarning(std::string_view text) {
  constexpr std::string_view kWarning = "NCCL WARN ";
  const auto at = text.find(kWarning);
  if (at == std::string_view::npos) return std::string(cutToBytes(text, 300));
  const auto line = text.substr(at + kWarning.size());
  return std::string(cutToBytes(line.substr(0, line.find('\n')), 300));
}

}  // namespace

Verdict checkGpuNcclLoopback(const nlohmann::json& params, const Host& host) {
  const auto program = params.value("program", "all_reduce_perf");
  std::size_t gpus = params.value("gpus", std::size_t{0});
  if (gpus == 0) {
    const auto look = readGpus();
    if (!look) return noData(look.error().str());
    gpus = look->gpus.size();
  }
  if (gpus < 2) return noData("one GPU alone has nobody to send to");
  io::Command command{
      program,
      {"-b", kLeastLoopback, "-e", params.value("max_bytes", std::string(kLargestMessage)), "-f",
       "2", "-g", std::to_string(gpus), "-c", "1"}};
  command.env = loopbackEnvironment(params);
  command.timeout = std::chrono::seconds(static_cast<long>(params.value("limit_seconds", 600.0)));
  const auto done = host.run(command);
  if (!done) return broken(done.error());
  const auto test = collective::parseNcclTests(
      done->out, std::string_view(program).substr(program.rfind('/') + 1));
  if (!test)
    return noData(fmt::format("{}: {} (exit {}): {}", program, test.error().str(), done->code,
                              firstWarning(done->err + done->out)));
  auto verdict = verdictOfLoopback(
      *test, collective::readNcclChannels(done->err + "\n" + done->out), params, gpus);
  if (done->code != 0) {
    verdict.status = wire::CheckStatus::Fail;
    verdict.text = fmt::format("{} ended with {}: {}", program, done->code, verdict.text);
  }
  verdict.evidence = {{"output", done->out.substr(0, kEvidenceBytes)}};
  return verdict;
}

Verdict checkGpuNcclTests(const nlohmann::json& params, const Host& host) {
  const auto program = params.value("program", "all_reduce_perf");
  const auto look = params.contains("model") ? Result<GpuSnapshot>(GpuSnapshot{})
                                             : readGpus();  // AMD's: the profile says what there is
  const auto gpus = params.value("gpus", look ? look->gpus.size() : 0);
  if (gpus < 1) return noData(look ? "NVML sees no GPU" : look.error().str());
  const auto model =
      params.value("model", look && !look->gpus.empty() ? look->gpus.front().identity.model : "");
  const auto done =
      runProgram(host, program,
                 {"-b", "8", "-e", params.value("max_bytes", std::string(kLargestMessage)), "-f",
                  "2", "-g", std::to_string(gpus), "-c", "1"},
                 params.value("limit_seconds", 600.0));
  if (!done) return broken(done.error());
  const auto test = collective::parseNcclTests(
      done->out, std::string_view(program).substr(program.rfind('/') + 1));
  if (!test)
    return noData(fmt::format("{}: {} (exit {}): {}", program, test.error().str(), done->code,
                              cutToBytes(done->err, 300)));
  auto verdict = verdictOfNccl(*test, params, gpus, busbwFloor(params, program, model, gpus));
  if (done->code != 0) {
    verdict.status = wire::CheckStatus::Fail;
    verdict.text = fmt::format("{} ended with {}: {}", program, done->code, verdict.text);
  }
  verdict.evidence = {{"output", done->out.substr(0, kEvidenceBytes)}};
  return verdict;
}

}  // namespace muster::validate
