// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/group_runner.h"

#include "base/async/await_all.h"
#include "base/json_output.h"
#include "wire/task_params.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace muster::validate::isolate {
namespace {

using std::chrono::seconds;
using wire::CheckStatus;

constexpr int kFirstPort = 41'000, kPortsOfRound = 2'048,
              kRoundsOfPorts = 8;  ///< a late rank of the round before must not meet this one's
constexpr seconds kLeastLimit{60}, kLeastTcpLimit{20}, kSlack{30};
constexpr double kBitsOfByte = 8;
constexpr std::string_view kCheck = "gpu.collective";
constexpr std::uint64_t kNcclBytes = 256u << 20, kTcpBytes = 3u << 20;
/// Two nodes alone: about five seconds at 400 Gb/s, so that the tests of a round load the fabric
/// together. In larger groups every pair has its turn.
constexpr int kNcclPairIterations = 800;
constexpr int kNcclIterations = 20, kTcpIterations = 5;

/// What every group of a round has in common.
collective::Job commonOf(const Engine& engine, seconds expected) {
  collective::Job job;
  const bool nccl = engine.kind == EngineKind::Nccl;
  job.transport = nccl ? collective::Transport::Nccl : collective::Transport::Tcp;
  job.min_bytes = job.max_bytes = nccl ? kNcclBytes : kTcpBytes;
  job.limit =
      nccl ? std::max(kLeastLimit, 3 * expected + kSlack) : std::max(kLeastTcpLimit, 3 * expected);
  return job;
}

int iterationsOf(const Engine& engine, Collective kind) {
  if (engine.kind != EngineKind::Nccl) return kTcpIterations;
  return kind == Collective::Pair ? kNcclPairIterations : kNcclIterations;
}

std::vector<collective::Operation> operationsOf(Collective kind) {
  using enum collective::Operation;
  switch (kind) {
    case Collective::Pair:
      return {Pair};
    case Collective::AllToAll:
      return {AllToAll, Pair};
    case Collective::AllReduce:
      return {AllReduce};
  }
  return {};
}

}  // namespace

int GroupRunner::railOf(int rank) const {
  return rank % engine_.ranks_per_node * site_.layout.rails / engine_.ranks_per_node;
}

Task<RoundResult> GroupRunner::run(Round round) {
  said_.clear();
  std::vector<std::vector<Answer>> answers(round.groups.size());
  std::vector<Task<void>> asking;
  auto common = commonOf(engine_, round.expected);
  const int first_port = kFirstPort + round.number % kRoundsOfPorts * kPortsOfRound;
  for (std::size_t g = 0; g < round.groups.size(); ++g) {
    const auto& members = round.groups[g].members;
    answers[g].resize(members.size());
    common.operations = operationsOf(round.groups[g].kind);
    common.iterations = iterationsOf(engine_, round.groups[g].kind);
    collective::Group group{fmt::format("{}/{}/{}", run_id_, round.number, g),
                            {},
                            site_.nodes[static_cast<std::size_t>(members[0])].address,
                            engine_.ranks_per_node};
    for (const int node : members)
      group.nodes.push_back(site_.nodes[static_cast<std::size_t>(node)].name.str());
    const auto jobs =
        collective::placeGroups({group}, common, first_port + static_cast<int>(g % kPortsOfRound));
    if (!jobs) {
      said_[g] = jobs.error().str();
      continue;
    }
    for (std::size_t i = 0; i < members.size(); ++i)
      asking.push_back(
          ask(members[i], (*jobs)[i].job, fmt::format("{}/{}", group.name, i), answers[g][i]));
  }
  co_await async::awaitAll(std::move(asking));
  RoundResult result;
  for (std::size_t g = 0; g < round.groups.size(); ++g)
    result.push_back(gather(g, round.groups[g], answers[g]));
  co_return result;
}

Task<void> GroupRunner::ask(int node, collective::Job job, std::string task, Answer& answer) {
  const auto& asked = site_.nodes[static_cast<std::size_t>(node)];
  const auto& name = asked.name;
  job.hcas = asked.hcas;  // else NCCL would use the HCAs of the storage fabric, too
  const auto deadline = job.limit + kSlack;
  const auto report = co_await agents_.runTask(
      name, {task, wire::TaskKind::RunChecks,
             toJson(oneCheck(kCheck, collective::toJson(job), deadline)), deadline + kSlack});
  if (!report) {  // an agent that is gone is the node's failure
    answer.failed = true;
    answer.words = report.error().str();
    co_return;
  }
  const auto results = wire::parseCheckResults(report->result);
  if (!results || results->size() != 1) {
    answer.words = results ? "the agent's answer is not one check result" : results.error().str();
    co_return;
  }
  const auto& check = results->front();
  answer.failed = check.status == CheckStatus::Fail || check.status == CheckStatus::Timeout;
  if (check.status != CheckStatus::Pass) answer.words = check.text;
  if (auto read = collective::parseReport(check.evidence, job))
    answer.report = std::move(*read);
  else if (check.status == CheckStatus::Pass)
    answer.words = read.error().str();
}

GroupResult GroupRunner::gather(std::size_t g, const Group& asked,
                                const std::vector<Answer>& answers) {
  const auto m = asked.members.size(), rails = static_cast<std::size_t>(site_.layout.rails);
  const double nothing = std::nan("");
  bool failed = false, complete = true;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    failed = failed || answers[i].failed, complete = complete && answers[i].report;
    if (!answers[i].words.empty())
      said_[g] += fmt::format("{}{}: {}", said_[g].empty() ? "" : "; ",
                              site_.nodes[static_cast<std::size_t>(asked.members[i])].name.str(),
                              answers[i].words.substr(0, 500));
  }
  GroupResult out;
  std::vector<double> of_pair(rails * m * m, 0),
      of_node(rails * m, 0);  // [rail][i][j] as i saw it; [rail][i]: all its ranks
  std::vector<int> pair_ranks(of_pair.size()), node_ranks(of_node.size());
  for (const auto& answer : answers) {
    if (!answer.report) continue;
    for (const auto& row : answer.report->rows) {
      const auto i = static_cast<std::size_t>(row.rank / engine_.ranks_per_node),
                 rail = static_cast<std::size_t>(railOf(row.rank));
      const bool pair = row.operation == collective::Operation::Pair;
      const auto at =
          pair ? (rail * m + i) * m + static_cast<std::size_t>(row.peer / engine_.ranks_per_node)
               : rail * m + i;
      auto& sum = pair ? of_pair[at] : of_node[at];
      auto& ranks = pair ? pair_ranks[at] : node_ranks[at];
      const double rate = kBitsOfByte * row.busbw_gbytes_per_s;
      ++ranks;
      sum = row.wrong ? -std::numeric_limits<double>::infinity()
                      : sum + rate;  // wrong data stays wrong, whatever is added
    }
  }
  const int share = std::max(engine_.ranks_per_node / site_.layout.rails, 1);
  const auto rateOf = [&](double sum, int ranks) {
    return ranks < share ? nothing : std::isfinite(sum) || std::isnan(sum) ? sum : 0;
  };
  const auto wayOf = [&](std::size_t rail, std::size_t i, std::size_t j) {
    const auto there = (rail * m + i) * m + j, back = (rail * m + j) * m + i;
    const double a = rateOf(of_pair[there], pair_ranks[there]),
                 b = rateOf(of_pair[back], pair_ranks[back]);
    return std::isnan(a) ? b : std::isnan(b) ? a : std::min(a, b);
  };
  if (asked.kind == Collective::AllToAll && complete)
    out.peer_gbits.assign(rails * m * m, std::nanf(""));
  for (std::size_t rail = 0; rail < rails; ++rail) {
    double least = asked.kind == Collective::Pair ? wayOf(rail, 0, 1) : nothing;
    for (std::size_t i = 0; i < m && asked.kind != Collective::Pair; ++i) {
      const double own = rateOf(of_node[rail * m + i], node_ranks[rail * m + i]);
      least = std::isnan(own) ? own : i == 0 ? own : std::min(least, own);
      if (std::isnan(own)) break;
    }
    out.rail_gbits.push_back(std::isnan(least) && failed ? 0 : least);
    for (std::size_t i = 0; i < m && !out.peer_gbits.empty(); ++i)
      for (std::size_t j = i + 1; j < m; ++j)
        out.peer_gbits[(rail * m + i) * m + j] = static_cast<float>(wayOf(rail, i, j));
  }
  return out;
}

std::string GroupRunner::said(std::size_t group, int) const {
  const auto found = said_.find(group);
  return found == said_.end() ? "" : found->second;
}

}  // namespace muster::validate::isolate
