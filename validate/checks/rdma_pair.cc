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
#include "wire/task_params.h"

#include <fmt/ranges.h>

#include <thread>

namespace muster::validate {
namespace {

using wire::CheckStatus;
constexpr std::chrono::milliseconds kConnectRetry{500};

using PairParams = wire::RdmaPairParams;

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
  if (p.role == wire::PairRole::Client) command.args.push_back(p.peer);
  command.timeout = left;
  return command;
}

Verdict evaluate(const PairParams& p, const io::ProcessExit& done) {
  Verdict verdict;
  const auto rate = parseWriteBandwidth(done.out, p.message_bytes);
  const auto against =
      (p.role == wire::PairRole::Server) ? std::string("as server") : "against " + p.peer;
  if (done.code != 0)
    verdict = failed(fmt::format("ib_write_bw {} ended with {}: {}", against, done.code,
                                 lastLine(done.err.empty() ? done.out : done.err)));
  else if (!rate)
    verdict = noData(rate.error().str());
  else if (!(p.role == wire::PairRole::Server) && !(rate->average_gbits >= p.min_gbits))
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
    const bool refused = !(p.role == wire::PairRole::Server) && done->code != 0 &&
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

/// Hosts without RDMA.
Verdict runTcp(const PairParams& p) {
  const bool server = p.role == wire::PairRole::Server;
  const double floor = p.min_gbits;
  collective::TcpPair pair;
  if (!server) pair.peer = p.peer;
  pair.port = p.port;
  pair.streams = p.streams;
  pair.seed = p.seed;
  pair.bytes = static_cast<std::uint64_t>(p.mebibytes) << 20;
  pair.limit = p.limit;
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
  const auto order = wire::parseRdmaPairParams(params);
  if (!order)
    verdict = checkError(order.error().str());
  else
    verdict = order->engine == wire::PairEngine::Tcp ? runTcp(*order) : runPair(*order);
  result.status = verdict.status;
  result.text = std::move(verdict.text);
  result.values = std::move(verdict.values);
  result.evidence = verdict.evidence.is_null() ? "" : jsonText(verdict.evidence);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace muster::validate
