// SPDX-License-Identifier: Apache-2.0
// One side of an RDMA bandwidth test between two nodes: perftest's ib_write_bw, its table read
// strictly.
#include "base/io/process.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/utf8.h"
#include "validate/checks/check_row.h"
#include "validate/checks/rdma_links.h"
#include "validate/checks/rdma_output.h"
#include "validate/collective/tcp_pair.h"

#include <fmt/ranges.h>

#include <thread>

namespace muster::validate {
namespace {

using wire::CheckStatus;
constexpr std::chrono::milliseconds kConnectRetry{500};

struct PairParams {
  bool server = false;
  std::string peer, device;
  int port = 18515, iterations = 200, message_bytes = 65536;
  double min_gbits = 0;
  int gpu = -1;  ///< whose memory is used; -1: the host's
  std::chrono::seconds limit{60};
};

PairParams read(const nlohmann::json& json) {
  PairParams p;
  p.server = json.at("role").get<std::string>() == "server";
  if (!p.server) p.peer = json.at("peer").get<std::string>();
  p.device = json.at("device").get<std::string>();
  p.port = json.value("port", p.port);
  p.iterations = json.value("iterations", p.iterations);
  p.message_bytes = json.value("message_bytes", p.message_bytes);
  p.min_gbits = json.at("min_gbits").get<double>();
  p.gpu = json.value("gpu", p.gpu);
  p.limit = std::chrono::seconds(json.value("limit_seconds", 60));
  return p;
}

io::Command commandOf(const PairParams& p, std::chrono::seconds left) {
  io::Command command;
  command.program = "ib_write_bw";
  command.args = {"-d", p.device,
                  "-p", std::to_string(p.port),
                  "-s", std::to_string(p.message_bytes),
                  "-n", std::to_string(p.iterations),
                  "-F", "--report_gbits"};
  if (p.gpu >= 0) {
    command.args.push_back(fmt::format("--use_cuda={}", p.gpu));
    command.env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  }
  if (!p.server) command.args.push_back(p.peer);
  command.timeout = left;
  return command;
}

Verdict evaluate(const PairParams& p, const io::ProcessExit& done) {
  Verdict verdict;
  const auto rate = parseWriteBandwidth(done.out, p.message_bytes);
  const auto against = p.server ? std::string("as server") : "against " + p.peer;
  if (done.code != 0)
    verdict = failed(fmt::format("ib_write_bw {} ended with {}: {}", against, done.code,
                                 lastLine(done.err.empty() ? done.out : done.err)));
  else if (!rate)
    verdict = noData(rate.error().str());
  else if (!p.server && !(rate->average_gbits >= p.min_gbits))
    verdict = failed(fmt::format("{:.3f} Gb/s {}, expected at least {:.3f}", rate->average_gbits,
                                 against, p.min_gbits));
  else
    verdict = pass(fmt::format("{:.3f} Gb/s {} on {}{}", rate->average_gbits, against, p.device,
                               p.gpu < 0 ? "" : fmt::format(" from GPU {}", p.gpu)));
  if (rate)
    verdict.values = {{"rdma_write_gbits", rate->average_gbits},
                      {"iterations", static_cast<double>(rate->iterations)}};
  verdict.evidence = {{"peer", p.peer},
                      {"device", p.device},
                      {"gpu", p.gpu},
                      {"output", cutToBytes(done.out, 4000)}};
  return verdict;
}

/// The client may be there before the server listens: a refused connection is tried again until the
/// time is up.
Verdict runPair(const PairParams& p) {
  const auto end = std::chrono::steady_clock::now() + p.limit;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::seconds>(end - std::chrono::steady_clock::now());
    if (left.count() < 1)
      return {CheckStatus::Timeout,
              fmt::format("the server at {} did not listen within {} s", p.peer, p.limit.count()),
              {},
              {}};
    const LinkWatch links(Host{}, p.device, steadySeconds);
    const auto done = io::runBlocking(commandOf(p, left));
    if (!done) {
      const auto status =
          done.error().code() == ErrorCode::Timeout ? CheckStatus::Timeout : CheckStatus::Error;
      return {status, done.error().str(), {}, {}};
    }
    const bool refused = !p.server && done->code != 0 &&
                         (done->out + done->err).find("Couldn't connect") != std::string::npos;
    if (refused) {
      std::this_thread::sleep_for(kConnectRetry);
      continue;
    }
    auto verdict = evaluate(p, *done);
    // A fast link with errors moves data too: the load is what shows them.
    if (const auto bad = links.complaints(); !bad.empty() && verdict.status == CheckStatus::Pass) {
      verdict.status = CheckStatus::Fail;
      verdict.text += fmt::format(", but {}", fmt::join(bad, "; "));
    }
    return verdict;
  }
}

/// Hosts without RDMA: {engine: tcp, role, peer, port, streams, mebibytes, seed, min_gbits,
/// limit_seconds}.
Verdict runTcp(const nlohmann::json& json) {
  collective::TcpPair pair;
  const bool server = json.at("role").get<std::string>() == "server";
  if (!server) pair.peer = json.at("peer").get<std::string>();
  pair.port = json.at("port").get<int>();
  pair.streams = json.value("streams", pair.streams), pair.seed = json.value("seed", pair.seed);
  pair.bytes = json.value("mebibytes", pair.bytes >> 20) << 20;
  pair.limit = std::chrono::seconds(json.value("limit_seconds", 60));
  const double floor = json.at("min_gbits").get<double>();
  const auto measured = collective::runTcpPair(pair);
  if (!measured)
    return {
        measured.error().code() == ErrorCode::Timeout ? CheckStatus::Timeout : CheckStatus::Error,
        measured.error().str(),
        {},
        {}};
  Verdict verdict = pass(fmt::format("{:.2f} Gb/s over {} TCP streams, every block right",
                                     measured->gbits, pair.streams));
  if (measured->wrong_blocks)
    verdict = failed(fmt::format("{} blocks are not what was sent", measured->wrong_blocks));
  else if (!server && !(measured->gbits >= floor))
    verdict = failed(
        fmt::format("{:.2f} Gb/s over TCP, expected at least {:.2f}", measured->gbits, floor));
  verdict.values = {{"tcp_gbits", measured->gbits}};
  return verdict;
}

}  // namespace

wire::CheckResult runRdmaPair(const std::string& params) {
  wire::CheckResult result;
  result.id = "rdma.pair";
  const auto start = std::chrono::steady_clock::now();
  Verdict verdict;
  try {
    const auto json = jsonOrNone(params, kOrderJson);
    verdict = json.value("engine", "perftest") == "tcp" ? runTcp(json) : runPair(read(json));
  } catch (const std::exception& error) {
    verdict = checkError(error.what());
  }
  result.status = verdict.status;
  result.text = std::move(verdict.text);
  result.values = std::move(verdict.values);
  result.evidence = verdict.evidence.is_null() ? "" : jsonText(verdict.evidence);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace muster::validate
