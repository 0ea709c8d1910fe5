#include "agent/tasks/tasks.h"

namespace muster::agent {
namespace {

constexpr std::size_t kQuotedBytes = 1500;

Async<nlohmann::json> acceptReboot() { co_return nlohmann::json::object(); }

}  // namespace

Async<std::string> runTool(TaskTools tools, std::string program, std::vector<std::string> args, std::chrono::seconds timeout) {
  io::Command command;
  command.program = std::move(program);
  command.args = std::move(args);
  command.timeout = timeout;
  command.env = {{"LC_ALL", "C"}};
  auto words = command.str();
  auto run = tools.processes.run(std::move(command));
  CO_TRY(exit, co_await std::move(run));
  if (exit.code == 0) co_return exit.out;
  std::string said = exit.err.empty() ? exit.out : exit.err;
  if (said.size() > kQuotedBytes) said = "…" + said.substr(said.size() - kQuotedBytes);
  co_return fail(ErrorCode::Internal, fmt::format("{} ended with {}: {}", words, exit.code, said));
}

TaskHandlers makeHandlers(Mode mode, TaskTools tools) {
  TaskHandlers handlers;
  handlers[TaskKind::Inspect] = [tools](nlohmann::json params, TaskContextPtr) { return runInspect(tools, std::move(params)); };
  handlers[TaskKind::Probe] = [tools](nlohmann::json params, TaskContextPtr) { return runProbe(tools, std::move(params)); };
  handlers[TaskKind::Reboot] = [](nlohmann::json, TaskContextPtr) { return acceptReboot(); };
  handlers[TaskKind::RunChecks] = [tools](nlohmann::json params, TaskContextPtr context) {
    return runChecksApart(tools, std::move(params), std::move(context));
  };
  if (mode == Mode::Ram) return handlers;
  handlers[TaskKind::InstallDriver] = [tools](nlohmann::json params, TaskContextPtr context) {
    return installDriver(tools, std::move(params), std::move(context));
  };
  handlers[TaskKind::Storage] = [tools](nlohmann::json params, TaskContextPtr context) {
    return setStorage(tools, std::move(params), std::move(context));
  };
  handlers[TaskKind::RdmaPair] = [tools](nlohmann::json params, TaskContextPtr context) {
    return runRdmaPairApart(tools, std::move(params), std::move(context));
  };
  handlers[TaskKind::JoinPool] = [tools](nlohmann::json params, TaskContextPtr context) {
    return joinPool(tools, std::move(params), std::move(context));
  };
  handlers[TaskKind::LeavePool] = [tools](nlohmann::json, TaskContextPtr context) { return leavePool(tools, std::move(context)); };
  return handlers;
}

}  // namespace muster::agent
