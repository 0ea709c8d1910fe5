// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/device_firmware.h"
#include "agent/tasks/kernel_log.h"
#include "agent/tasks/node_service.h"
#include "agent/tasks/selinux_labels.h"
#include "agent/tasks/tasks.h"

namespace muster::agent {
namespace {

constexpr std::size_t kQuotedBytes = 1500;
constexpr std::size_t kKernelLogBytes = 128u << 10;  ///< fits into a task's result, escaped

/// Below the folders of selinux_labels.cc.
constexpr wire::TaskKind kWritesFiles[] = {wire::TaskKind::InstallDriver, wire::TaskKind::Storage,
                                           wire::TaskKind::NodeService, wire::TaskKind::JoinPool,
                                           wire::TaskKind::LeavePool};

Async<nlohmann::json> acceptReboot() { co_return nlohmann::json::object(); }

Async<nlohmann::json> resetAndTell(TaskTools tools, nlohmann::json params, TaskContextPtr context,
                                   std::function<void(const std::vector<std::string>&)> was_reset) {
  CO_TRY(result, co_await resetGpus(tools, std::move(params), std::move(context)));
  if (was_reset) was_reset(result.at("reset").get<std::vector<std::string>>());
  co_return result;
}

}  // namespace

Async<nlohmann::json> readKernelLog(TaskTools tools) {
  CO_TRY(lines, kernelLinesOf(tools.root / "dev/kmsg", kKernelLogBytes));
  co_return nlohmann::json{{"lines", std::move(lines)}};
}

Async<std::string> runTool(TaskTools tools, std::string program, std::vector<std::string> args,
                           std::chrono::seconds timeout) {
  io::Command command;
  command.program = std::move(program);
  command.args = std::move(args);
  command.timeout = timeout;
  command.env = {{"LC_ALL", "C"}};
  auto words = command.str();
  CO_TRY(exit, co_await tools.processes.run(std::move(command)));
  if (exit.code == 0) co_return exit.out;
  std::string output = exit.err.empty() ? exit.out : exit.err;
  if (output.size() > kQuotedBytes) output = "…" + output.substr(output.size() - kQuotedBytes);
  co_return fail(ErrorCode::Internal,
                 fmt::format("{} ended with {}: {}", words, exit.code, output));
}

TaskHandlers makeHandlers(wire::Mode mode, TaskTools tools,
                          std::function<void(const std::vector<std::string>&)> was_reset) {
  TaskHandlers handlers;
  handlers[wire::TaskKind::Inspect] = [tools](nlohmann::json params, TaskContextPtr) {
    return runInspect(tools, std::move(params));
  };
  handlers[wire::TaskKind::Probe] = [tools](nlohmann::json params, TaskContextPtr) {
    return runProbe(tools, std::move(params));
  };
  handlers[wire::TaskKind::Reboot] = [](nlohmann::json, TaskContextPtr) { return acceptReboot(); };
  handlers[wire::TaskKind::RunChecks] = [tools](nlohmann::json params, TaskContextPtr context) {
    return runChecksApart(tools, std::move(params), std::move(context));
  };
  const auto firmware =
      std::make_shared<DeviceFirmwareTasks>(tools, [] { return io::makeHttpClient(); });
  handlers[wire::TaskKind::ListFirmware] = [firmware](nlohmann::json params, TaskContextPtr) {
    return firmware->list(std::move(params));
  };
  handlers[wire::TaskKind::InstallFirmware] = [firmware](nlohmann::json params,
                                                         TaskContextPtr context) {
    return firmware->install(std::move(params), std::move(context));
  };
  if (mode == wire::Mode::Ram) return handlers;
  handlers[wire::TaskKind::InstallDriver] = [tools](nlohmann::json params, TaskContextPtr context) {
    return installDriver(tools, std::move(params), std::move(context));
  };
  handlers[wire::TaskKind::Storage] = [tools](nlohmann::json params, TaskContextPtr context) {
    return setStorage(tools, std::move(params), std::move(context));
  };
  handlers[wire::TaskKind::NodeService] = [tools](nlohmann::json params, TaskContextPtr context) {
    return setNodeService(tools, std::move(params), std::move(context));
  };
  handlers[wire::TaskKind::RdmaPair] = [tools](nlohmann::json params, TaskContextPtr context) {
    return runRdmaPairApart(tools, std::move(params), std::move(context));
  };
  handlers[wire::TaskKind::JoinPool] = [tools](nlohmann::json params, TaskContextPtr context) {
    return joinPool(tools, std::move(params), std::move(context));
  };
  handlers[wire::TaskKind::LeavePool] = [tools](nlohmann::json, TaskContextPtr context) {
    return leavePool(tools, std::move(context));
  };
  handlers[wire::TaskKind::ResetGpu] = [tools, was_reset](nlohmann::json params,
                                                          TaskContextPtr context) {
    return resetAndTell(tools, std::move(params), std::move(context), was_reset);
  };
  handlers[wire::TaskKind::KernelLog] = [tools](nlohmann::json, TaskContextPtr) {
    return readKernelLog(tools);
  };
  for (const auto kind : kWritesFiles) handlers[kind] = withLabels(tools, handlers[kind]);
  return handlers;
}

}  // namespace muster::agent
