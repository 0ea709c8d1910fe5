// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/isolation_run.h"

#include "base/log.h"
#include "validate/isolate/group_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::validate::isolate {
namespace {

using nlohmann::json;
constexpr double kDigits = 1e3;  ///< of a Gb/s, in evidence

json rateJson(double gbits) {
  return std::isfinite(gbits) ? json(std::round(gbits * kDigits) / kDigits) : json();
}

/// Every pair of an all-to-all: rows of the members' numbers, [rail][i][j - i - 1].
json matrixJson(const GroupResult& result, std::size_t m, int rails) {
  json out = json::array();
  for (std::size_t rail = 0; rail < static_cast<std::size_t>(rails); ++rail) {
    json rows = json::array();
    for (std::size_t i = 0; i < m; ++i) {
      json row = json::array();
      for (std::size_t j = i + 1; j < m; ++j)
        row.push_back(rateJson(static_cast<double>(result.peer_gbits[(rail * m + i) * m + j])));
      rows.push_back(std::move(row));
    }
    out.push_back(std::move(rows));
  }
  return out;
}

/// What was planned and measured in one round.
json evidenceOf(const Site& site, const Round& round, const RoundResult& result,
                const RoundRunner& runner) {
  json tests = json::array(), groups = json::array();
  const auto name = [&site](int node) {
    return site.nodes[static_cast<std::size_t>(node)].name.str();
  };
  for (std::size_t g = 0; g < round.groups.size(); ++g) {
    const auto& members = round.groups[g].members;
    if (round.groups[g].kind == Collective::Pair) {
      for (int rail = 0; rail < site.layout.rails; ++rail)
        tests.push_back({{"a", name(members[0])},
                         {"b", name(members[1])},
                         {"rail", rail},
                         {"gbits", rateJson(result[g].rail_gbits[static_cast<std::size_t>(rail)])},
                         {"said", runner.said(g, rail)}});
      continue;
    }
    json names = json::array(), rates = json::array();
    for (const int node : members) names.push_back(name(node));
    for (const double rate : result[g].rail_gbits) rates.push_back(rateJson(rate));
    json group{{"kind", toString(round.groups[g].kind)},
               {"members", std::move(names)},
               {"rail_gbits", std::move(rates)},
               {"said", runner.said(g, 0)}};
    if (!result[g].peer_gbits.empty())
      group["pairs_gbits"] = matrixJson(result[g], members.size(), site.layout.rails);
    groups.push_back(std::move(group));
  }
  json out{{"number", round.number},
           {"stage", toString(round.stage)},
           {"what", round.what},
           {"tests", std::move(tests)}};
  if (!groups.empty()) out["groups"] = std::move(groups);
  return out;
}

void noteBest(IsolationRun& run, const Round& round, const RoundResult& result) {
  for (std::size_t g = 0; g < round.groups.size(); ++g) {
    if (round.groups[g].kind != Collective::Pair) continue;
    for (int rail = 0; rail < run.begun.site.layout.rails; ++rail)
      if (const double rate = result[g].rail_gbits[static_cast<std::size_t>(rail)];
          std::isfinite(rate))
        for (const int node : round.groups[g].members) {
          auto& best = run.best[{node, rail}];
          best = std::max(best, rate);
        }
  }
}

/// Answers that do not fit their round would be read past their end.
bool fits(const Round& round, const RoundResult& result, int rails) {
  if (round.groups.size() != result.size()) return false;
  return std::all_of(result.begin(), result.end(), [rails](const GroupResult& group) {
    return group.rail_gbits.size() == static_cast<std::size_t>(rails);
  });
}

std::unique_ptr<RoundRunner> runnerOf(const Begun& begun, gateway::AgentGateway& agents) {
  if (begun.engine.kind == EngineKind::Rdma)
    return std::make_unique<PairRunner>(begun.site, agents, begun.run_id);
  return std::make_unique<GroupRunner>(begun.site, begun.engine, agents, begun.run_id);
}

}  // namespace

Async<IsolationRun> runIsolation(Begun begun, RunLog& log, gateway::AgentGateway& agents,
                                 RoundBegins begins) {
  IsolationRun run;
  run.begun = std::move(begun);
  const auto& site = run.begun.site;
  const auto runner = runnerOf(run.begun, agents);
  Isolation isolation(site.layout, {.groups = runner->runsGroups(),
                                    .tolerance = toleranceOf(run.begun.engine.kind),
                                    .least_gbits = run.begun.least_gbits,
                                    .end_rounds = roundsOf(run.begun.until),
                                    .seed = run.begun.seed});
  CO_TRY(before, log.rounds());
  for (auto& round : before) {
    const auto planned = isolation.next();
    if (!planned || !fits(*planned, round.result, site.layout.rails))
      co_return fail(ErrorCode::Conflict,
                     fmt::format("the rounds in {} are not those that this muster plans; remove "
                                 "that folder to start again",
                                 log.folder().string()));
    noteBest(run, *planned, round.result);
    isolation.learn(round.result);
    run.rounds.push_back(std::move(round.evidence));
    ++run.taken_up;
  }
  const RoundSink sink = [&run, &runner, &log, &begins](const Round& round,
                                                        const RoundResult* result) {
    if (!result) {
      if (begins) begins(round);
      return;
    }
    noteBest(run, round, *result);
    run.rounds.push_back(evidenceOf(run.begun.site, round, *result, *runner));
    if (const auto kept = log.add(round.number, {*result, run.rounds.back()}); !kept)
      logWarning("isolate", "round {} could not be stored and would run again after a restart: {}",
                 round.number, kept.error().str());
  };
  run.verdict = co_await isolateBy(isolation, *runner, sink);
  co_return std::move(run);
}

json toJson(const IsolationRun& run) {
  auto document = toJson(run.begun.site, run.verdict);
  document["seed"] = run.begun.seed;
  document["until"] = toString(run.begun.until);
  document["begun"] = muster::toString(run.begun.at);
  document["engine"] = toString(run.begun.engine.kind);
  document["rounds_run"] = run.rounds;
  return document;
}

}  // namespace muster::validate::isolate
