// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/engine.h"

#include "base/async/await_all.h"
#include "base/json_output.h"
#include "validate/isolate/isolation.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace muster::validate::isolate {
namespace {

using std::chrono::seconds;

constexpr seconds kLimit{60}, kSlack{30};
constexpr std::size_t kMostNamed = 8;
constexpr std::string_view kReady = "collective.ready";

struct Ready {
  bool reached = false, tcp = false;
  int gpus = 0;  ///< that NCCL can use
  std::string why;
};

Task<void> askReady(gateway::AgentGateway& agents, NodeName node, std::string task, Ready& ready) {
  const auto report = co_await agents.runTask(
      node, {task, wire::TaskKind::RunChecks,
             toJson(oneCheck(kReady, nlohmann::json::object(), kLimit)), kLimit + kSlack});
  if (!report) {
    ready.why = report.error().str();
    co_return;
  }
  const auto results = wire::parseCheckResults(report->result);
  if (!results || results->size() != 1) {
    ready.why = "the agent's answer is not one check result";
    co_return;
  }
  const auto& answer = results->front();
  const auto value = [&answer](const char* key) {
    const auto found = answer.values.find(key);
    return found == answer.values.end() || !std::isfinite(found->second)
               ? 0
               : static_cast<int>(found->second);
  };
  ready.reached = true;
  ready.tcp = value("tcp") > 0, ready.gpus = value("nccl_gpus");
  ready.why = answer.text;
}

/// The first few nodes that lack something, each with its own words.
Error lacking(std::string_view what, const std::vector<NodeName>& nodes,
              const std::vector<Ready>& ready, bool (*has)(const Ready&)) {
  std::vector<std::string> words;
  std::size_t count = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (!has(ready[i]) && ++count <= kMostNamed)
      words.push_back(fmt::format("{}: {}", nodes[i].str(), ready[i].why));
  return {ErrorCode::Unavailable, fmt::format("{} of {} nodes cannot run collectives by {}: {}; "
                                              "leave them out (--nodes), or use --engine rdma",
                                              count, nodes.size(), what, fmt::join(words, "; "))};
}

}  // namespace

wire::RunChecksParams oneCheck(std::string_view id, nlohmann::json params, seconds deadline) {
  return {{{std::string(id), std::move(params), deadline}}};
}

std::string_view toString(EngineKind kind) {
  return kind == EngineKind::Rdma ? "rdma" : kind == EngineKind::Nccl ? "nccl" : "tcp";
}

double toleranceOf(EngineKind kind) {
  constexpr double kOfHosts = 0.05;
  return kind == EngineKind::Tcp ? kOfHosts : Options{}.tolerance;
}

Result<EngineKind> parseEngine(std::string_view name) {
  for (const auto kind : {EngineKind::Rdma, EngineKind::Nccl, EngineKind::Tcp})
    if (toString(kind) == name) return kind;
  return fail(ErrorCode::InvalidInput,
              fmt::format("there is no engine '{}'; there are auto, rdma, nccl and tcp", name));
}

Async<Engine> chooseEngine(std::string wish, std::vector<NodeName> nodes,
                           gateway::AgentGateway& agents, std::string run_id) {
  const bool any = wish == "auto";
  Engine engine;
  if (!any) {
    CO_TRY(kind, parseEngine(wish));
    engine.kind = kind;
    if (kind == EngineKind::Rdma) co_return engine;
  }
  std::vector<Ready> ready(nodes.size());
  std::vector<Task<void>> asking;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    asking.push_back(askReady(agents, nodes[i], run_id + "/ready", ready[i]));
  co_await async::awaitAll(std::move(asking));
  const auto has_nccl = [](const Ready& each) { return each.gpus > 0; };
  const auto has_tcp = [](const Ready& each) { return each.tcp; };
  if (engine.kind == EngineKind::Tcp) {
    if (!std::all_of(ready.begin(), ready.end(), has_tcp))
      co_return fail(lacking("tcp", nodes, ready, has_tcp));
    co_return engine;
  }
  const bool nccl = std::all_of(ready.begin(), ready.end(), has_nccl);
  const auto [least, most] = std::minmax_element(
      ready.begin(), ready.end(), [](const Ready& a, const Ready& b) { return a.gpus < b.gpus; });
  const bool alike = !ready.empty() && least->gpus == most->gpus;
  if (any && !(nccl && alike)) co_return engine;
  if (!nccl) co_return fail(lacking("nccl", nodes, ready, has_nccl));
  if (!alike)
    co_return fail(
        ErrorCode::InvalidInput,
        fmt::format("{} has {} GPUs, {} has {}; isolate nodes of one kind at a time",
                    nodes[static_cast<std::size_t>(least - ready.begin())].str(), least->gpus,
                    nodes[static_cast<std::size_t>(most - ready.begin())].str(), most->gpus));
  co_return Engine{EngineKind::Nccl, least->gpus};
}

}  // namespace muster::validate::isolate
