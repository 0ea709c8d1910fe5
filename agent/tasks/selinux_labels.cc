// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/selinux_labels.h"

#include "base/log.h"

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::minutes kRestoreLimit{2};
/// Where drivers, settings, storage, services and pools write.
constexpr const char* kWrittenFolders[] = {"etc", "boot/muster", "root/.ssh", "usr/lib/muster",
                                           "var/lib/muster"};

Async<nlohmann::json> handleAndLabel(TaskTools tools, TaskHandler handler, nlohmann::json params,
                                     TaskContextPtr context) {
  auto outcome = co_await handler(std::move(params), std::move(context));
  co_await restoreLabels(tools);
  co_return outcome;
}

}  // namespace

Task<void> restoreLabels(TaskTools tools) {
  std::error_code error;
  if (!fs::exists(tools.root / "sys/fs/selinux/enforce", error)) co_return;
  std::vector<std::string> args = {"-R"};
  for (const char* folder : kWrittenFolders)
    if (fs::exists(tools.root / folder, error)) args.push_back((tools.root / folder).string());
  const auto restored = co_await runTool(tools, "restorecon", std::move(args), kRestoreLimit);
  if (!restored)
    logWarning("selinux", "labels of written files were not restored: {}", restored.error().str());
}

TaskHandler withLabels(TaskTools tools, TaskHandler handler) {
  return [tools = std::move(tools), handler = std::move(handler)](nlohmann::json params,
                                                                  TaskContextPtr context) {
    return handleAndLabel(tools, handler, std::move(params), std::move(context));
  };
}

}  // namespace muster::agent
