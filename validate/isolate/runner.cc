// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/runner.h"

#include "base/async/await_all.h"
#include "base/json_output.h"
#include "validate/gates.h"
#include "wire/task_params.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace muster::validate::isolate {
namespace {

constexpr std::chrono::seconds kPairLimit{45};
/// Agents begin the tests of a round within a second of each other: so long they load the fabric
/// together. A link at an eighth of its rate still ends within the limit.
constexpr std::chrono::seconds kLoad{5};
constexpr int kFirstPort = 18515;
constexpr std::string_view kRate = "rdma_write_gbits";

}  // namespace

Task<Verdict> isolateBy(Isolation& isolation, RoundRunner& runner, RoundSink sink) {
  while (auto round = isolation.next()) {
    if (sink) sink(*round, nullptr);
    const auto result = co_await runner.run(*round);
    if (sink) sink(*round, &result);
    isolation.learn(result);
  }
  co_return isolation.verdict();
}

std::string PairRunner::said(std::size_t group, int rail) const {
  const auto found = said_.find({group, rail});
  return found == said_.end() ? "" : found->second;
}

Task<RoundResult> PairRunner::run(Round round) {
  said_.clear();
  RoundResult result(round.groups.size());
  std::vector<Task<void>> tests;
  for (std::size_t g = 0; g < round.groups.size(); ++g) {
    result[g].rail_gbits.assign(static_cast<std::size_t>(site_.layout.rails), std::nan(""));
    for (int rail = 0; rail < site_.layout.rails; ++rail)
      tests.push_back(measure(g, round.groups[g].members[0], round.groups[g].members[1], rail,
                              fmt::format("{}/{}/{}/{}", run_id_, round.number, g, rail),
                              result[g].rail_gbits[static_cast<std::size_t>(rail)]));
  }
  co_await async::awaitAll(std::move(tests));
  co_return result;
}

/// A test that ran and failed is 0; one without a number, or that could not be started, says
/// nothing of the way between the two. An agent that is gone is the node's failure: its tests with
/// everybody fail.
Task<void> PairRunner::measure(std::size_t group, int a, int b, int rail, std::string task,
                               double& gbits) {
  const auto &client = site_.nodes[static_cast<std::size_t>(a)],
             &server = site_.nodes[static_cast<std::size_t>(b)];
  auto& said = said_[{group, rail}];
  const auto r = static_cast<std::size_t>(rail);
  const int iterations = rdmaIterations(rdmaFloorGbits(client.devices[r], site_.link), kLoad);
  wire::RdmaPairParams listening;
  listening.port = kFirstPort + rail;
  listening.limit = kPairLimit;
  listening.iterations = iterations;
  auto asking = listening;
  listening.device = server.devices[r];
  asking.role = wire::PairRole::Client;
  asking.device = client.devices[r];
  asking.peer = server.address;
  if (const auto served = agents_.submit(
          server.name, {task + "/server", wire::TaskKind::RdmaPair, toJson(listening), kPairLimit});
      !served) {
    said = fmt::format("{} did not take part: {}", server.name.str(), served.error().str());
    gbits = 0;
    co_return;
  }
  const auto report = co_await agents_.runTask(
      client.name, {task + "/client", wire::TaskKind::RdmaPair, toJson(asking), kPairLimit});
  if (!report) {
    said = report.error().str();
    gbits = 0;
    co_return;
  }
  const auto results = wire::parseCheckResults(report->result);
  if (!results || results->size() != 1) {
    said = results ? "the agent's answer is not one check result" : results.error().str();
    co_return;
  }
  const auto& answer = results->front();
  said = answer.text;
  const auto rate = answer.values.find(std::string(kRate));
  if (rate != answer.values.end() && std::isfinite(rate->second))
    gbits = rate->second;
  else if (answer.status == wire::CheckStatus::Fail || answer.status == wire::CheckStatus::Timeout)
    gbits = 0;
}

}  // namespace muster::validate::isolate
