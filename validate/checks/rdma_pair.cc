// SPDX-License-Identifier: Apache-2.0
// One side of an RDMA test between two nodes: perftest's ib_write_bw and ib_write_lat, their tables
// read strictly.
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

/// perftest's own default, which published figures are of.
constexpr int kLatencyBytes = 2;
/// A server waits so long for its client's latency test: one whose bandwidth test broke off does
/// not come.
constexpr std::chrono::seconds kLatencyWait{20};

using Clock = std::chrono::steady_clock;

struct Attempt {
  const Host& host;
  const PairParams& params;
  Clock::time_point end;

  bool isServer() const { return params.role == wire::PairRole::Server; }
  std::string against() const { return isServer() ? "as server" : "against " + params.peer; }
  io::Command command(std::string program, int port, int bytes, int iterations) const {
    io::Command command;
    command.program = std::move(program);
    command.args = {"-d", params.device,         "-p", std::to_string(port),
                    "-s", std::to_string(bytes), "-n", std::to_string(iterations),
                    "-F"};
    return command;
  }
  io::Command toPeer(io::Command command) const {
    if (params.gpu >= 0) {
      command.args.push_back(fmt::format("--use_cuda={}", params.gpu));
      command.env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
    }
    if (!isServer()) command.args.push_back(params.peer);
    return command;
  }
  /// The client may be there before the server listens: a refused connection is tried again until
  /// the time is up.
  Result<io::ProcessExit> run(io::Command command) const {
    for (;;) {
      command.timeout = std::chrono::duration_cast<std::chrono::seconds>(end - Clock::now());
      if (command.timeout.count() < 1)
        return fail(ErrorCode::Timeout, fmt::format("the server at {} did not listen within {} s",
                                                    params.peer, params.limit.count()));
      TRY(done, host.run(command));
      if (isServer() || done.code == 0 ||
          (done.out + done.err).find("Couldn't connect") == std::string::npos)
        return done;
      std::this_thread::sleep_for(kConnectRetry);
    }
  }
  Verdict ended(const std::string& program, const io::ProcessExit& done) const {
    return failed(fmt::format("{} {} ended with {}: {}", program, against(), done.code,
                              lastLine(done.err.empty() ? done.out : done.err)));
  }
};

Verdict broke(const Error& error) {
  return {error.code() == ErrorCode::Timeout ? CheckStatus::Timeout : CheckStatus::Error,
          error.str(),
          {},
          {}};
}

Verdict evaluate(const Attempt& attempt, const io::ProcessExit& done) {
  const auto& p = attempt.params;
  Verdict verdict;
  const auto rate = parseWriteBandwidth(done.out, {p.message_bytes, p.iterations, p.device});
  if (done.code != 0)
    verdict = attempt.ended("ib_write_bw", done);
  else if (!rate)
    verdict = noData(rate.error().str());
  else if (!attempt.isServer() && !(rate->average_gbits >= p.min_gbits))
    verdict = failed(fmt::format("{:.3f} Gb/s {}, expected at least {:.3f}", rate->average_gbits,
                                 attempt.against(), p.min_gbits));
  else
    verdict = pass(fmt::format("{:.3f} Gb/s {} on {}{}", rate->average_gbits, attempt.against(),
                               p.device, p.gpu < 0 ? "" : fmt::format(" from GPU {}", p.gpu)));
  if (rate)
    verdict.values = {{"rdma_write_gbits", rate->average_gbits},
                      {"iterations", static_cast<double>(rate->iterations)}};
  verdict.evidence = {{"peer", p.peer},
                      {"device", p.device},
                      {"gpu", p.gpu},
                      {"output", cutToBytes(done.out, 4000)}};
  return verdict;
}

Verdict evaluateLatency(const Attempt& attempt, const io::ProcessExit& done) {
  const auto& p = attempt.params;
  const auto read = parseWriteLatency(done.out, kLatencyBytes, p.latency_iterations);
  Verdict verdict;
  if (done.code != 0)
    verdict = attempt.ended("ib_write_lat", done);
  else if (!read)
    verdict = noData(read.error().str());
  else if (!attempt.isServer() && p.max_us > 0 && !(read->typical_us <= p.max_us))
    verdict = failed(fmt::format("{:.2f} µs one way {}, expected at most {:.2f}", read->typical_us,
                                 attempt.against(), p.max_us));
  else
    verdict = pass(fmt::format("{:.2f} µs one way{}", read->typical_us,
                               p.max_us > 0 ? "" : " (no ceiling is known)"));
  if (read) {
    verdict.values["rdma_latency_us"] = read->typical_us;
    verdict.values["rdma_latency_average_us"] = read->average_us;
    if (read->p99_us) verdict.values["rdma_latency_p99_us"] = *read->p99_us;
  }
  verdict.evidence = cutToBytes(done.out, 4000);
  return verdict;
}

/// What is worse counts; the words of both are there.
void add(Verdict& all, Verdict latency) {
  if (all.status == CheckStatus::Pass) all.status = latency.status;
  all.text += (all.text.empty() ? "" : ", ") + latency.text;
  all.values.merge(latency.values);
  all.evidence["latency_output"] = std::move(latency.evidence);
}

Verdict runPair(const PairParams& p, const Host& host) {
  Attempt attempt{host, p, Clock::now() + p.limit};
  auto bandwidth = attempt.command("ib_write_bw", p.port, p.message_bytes, p.iterations);
  bandwidth.args.push_back("--report_gbits");
  const LinkWatch links(host, p.device, steadySeconds);
  const auto done = attempt.run(attempt.toPeer(std::move(bandwidth)));
  if (!done) return broke(done.error());
  auto verdict = evaluate(attempt, *done);
  // A link that is too slow is measured to its end as well: its server waits for that.
  if (p.latency_iterations > 0 && done->code == 0) {
    if (attempt.isServer()) attempt.end = std::min(attempt.end, Clock::now() + kLatencyWait);
    const auto again = attempt.run(attempt.toPeer(
        attempt.command("ib_write_lat", p.port + 1, kLatencyBytes, p.latency_iterations)));
    add(verdict, again ? evaluateLatency(attempt, *again) : broke(again.error()));
  }
  // A fast link with errors moves data too: the load is what shows them.
  if (const auto bad = links.complaints(); !bad.empty() && verdict.status == CheckStatus::Pass) {
    verdict.status = CheckStatus::Fail;
    verdict.text += fmt::format(", but {}", fmt::join(bad, "; "));
  }
  return verdict;
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

wire::CheckResult runRdmaPair(const std::string& params) { return runRdmaPair(params, Host{}); }

wire::CheckResult runRdmaPair(const std::string& params, const Host& host) {
  wire::CheckResult result;
  result.id = "rdma.pair";
  const auto start = std::chrono::steady_clock::now();
  Verdict verdict;
  const auto order = wire::parseRdmaPairParams(params);
  if (!order)
    verdict = checkError(order.error().str());
  else
    verdict = order->engine == wire::PairEngine::Tcp ? runTcp(*order) : runPair(*order, host);
  result.status = verdict.status;
  result.text = std::move(verdict.text);
  result.values = std::move(verdict.values);
  result.evidence = verdict.evidence.is_null() ? "" : jsonText(verdict.evidence);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace muster::validate
