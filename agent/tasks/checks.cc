// SPDX-License-Identifier: Apache-2.0
// RunChecks and RdmaPair: `muster-agent tool checks|rdma-pair` in a process of its own; parameters
// on stdin, results on stdout.
#include "agent/tasks/tasks.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "wire/task_params.h"

namespace muster::agent {
namespace {

constexpr std::chrono::seconds kEndBefore{
    2};  ///< before the task's own deadline, so that the words are those of the check

Async<std::string> runApart(TaskTools tools, std::string tool, std::string input,
                            std::chrono::seconds limit) {
  io::Command command;
  command.program = tools.self.string();
  command.args = {"tool", tool};
  command.stdin_text = std::move(input);
  command.timeout = std::max(limit - kEndBefore, std::chrono::seconds(1));
  CO_TRY(exit, co_await tools.processes.run(std::move(command)));
  if (exit.code == 0) co_return exit.out;
  auto end = exit.err.substr(exit.err.size() - std::min<std::size_t>(exit.err.size(), 500));
  co_return fail(ErrorCode::Internal,
                 fmt::format("the checks' process ended with {}: {}", exit.code, end));
}

}  // namespace

Async<nlohmann::json> runChecksApart(TaskTools tools, nlohmann::json params,
                                     TaskContextPtr context) {
  CO_TRY(order, wire::parseRunChecksParams(jsonText(params)));
  context->progress(-1, fmt::format("{} checks run", order.checks.size()));
  CO_TRY(out, co_await runApart(tools, "checks", jsonText(params), context->deadline()));
  CO_TRY(results, wire::parseCheckResults(out));
  if (results.size() != order.checks.size())
    co_return fail(ErrorCode::Internal, "a check gave no result");
  co_return parseJson(out, kToolJson);
}

Async<nlohmann::json> runRdmaPairApart(TaskTools tools, nlohmann::json params,
                                       TaskContextPtr context) {
  CO_TRY(out, co_await runApart(tools, "rdma-pair", jsonText(params), context->deadline()));
  CO_TRY(results, wire::parseCheckResults(out));
  if (results.size() != 1) co_return fail(ErrorCode::Internal, "the pair test gave no result");
  co_return parseJson(out, kToolJson);
}

}  // namespace muster::agent
