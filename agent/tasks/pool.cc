// SPDX-License-Identifier: Apache-2.0
// JoinPool and LeavePool: slurmd and munge on this node, by systemd.
//
// join params {kind: "slurm", conf, munge_key (base64)}. Services are restarted only when their
// files changed.
#include "agent/tasks/systemd.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "wire/task_params.h"

#include <filesystem>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kServiceLimit{90};
constexpr std::size_t kMaxConfBytes = 1u << 20;
constexpr std::size_t kMinMungeKeyBytes = 32;  ///< munged refuses shorter ones
constexpr std::size_t kMaxMungeKeyBytes = 1024;

Async<std::string> order(TaskTools tools, std::string verb, std::string unit) {
  std::vector<std::string> words = {verb, unit};
  co_return co_await systemctl(tools, std::move(words), kServiceLimit);
}

/// Whether the file had to be changed.
Result<bool> put(const fs::path& path, const std::string& content, unsigned mode) {
  std::error_code error;
  if (fs::exists(path, error)) {
    auto present = io::readFile(path, kMaxConfBytes);
    if (present && *present == content) return false;
  }
  TRY_OK(io::makeDirs(path.parent_path()));
  TRY_OK(io::writeFileAtomic(path, content, mode));
  return true;
}

/// Starts the unit, or restarts it when what it reads is new. It is there after a restart of the
/// machine too.
Async<void> bringUp(TaskTools tools, std::string unit, bool changed) {
  bool active = co_await unitState(tools, unit) == "active";
  if (!active || changed) {
    CO_TRY_OK(co_await order(tools, "restart", unit));
  }
  CO_TRY_OK(co_await order(tools, "enable", unit));
  CO_TRY_OK(co_await untilActive(tools, unit, kServiceLimit));
  co_return Result<void>();
}

}  // namespace

Async<nlohmann::json> joinPool(TaskTools tools, nlohmann::json params, TaskContextPtr context) {
  CO_TRY(join, wire::parseJoinPoolParams(jsonText(params)));
  if (join.kind != "slurm")
    co_return fail(ErrorCode::InvalidInput,
                   "params.kind is not \"slurm\", the one that this agent knows");
  const auto& key = join.munge_key;
  if (key.size() < kMinMungeKeyBytes || key.size() > kMaxMungeKeyBytes) {
    co_return fail(ErrorCode::InvalidInput,
                   fmt::format("the munge key has {} bytes, not {} to {}", key.size(),
                               kMinMungeKeyBytes, kMaxMungeKeyBytes));
  }
  context->progress(0.1, "writing slurm.conf and munge's key");
  auto key_file = tools.root / "etc/munge/munge.key";
  CO_TRY(new_key, put(key_file, key, 0400));
  std::vector<std::string> args = {"munge:munge", key_file.string()};
  CO_TRY_OK(co_await runTool(tools, "chown", std::move(args), kServiceLimit));
  CO_TRY(new_conf, put(tools.root / "etc/slurm/slurm.conf", join.conf, 0644));

  context->progress(0.4, "starting munge");
  CO_TRY_OK(co_await bringUp(tools, "munge", new_key));
  context->progress(0.6, "starting slurmd");
  auto slurmd = bringUp(tools, "slurmd", new_conf || new_key);
  CO_TRY_OK(co_await std::move(slurmd));

  std::vector<std::string> version_args = {"-V"};
  CO_TRY(version, co_await runTool(tools, "slurmd", std::move(version_args), kServiceLimit));
  while (!version.empty() && std::isspace(static_cast<unsigned char>(version.back())))
    version.pop_back();
  co_return nlohmann::json{{"slurmd", version}};
}

Async<nlohmann::json> leavePool(TaskTools tools, TaskContextPtr context) {
  context->progress(0.1, "stopping slurmd");
  CO_TRY_OK(co_await order(tools, "disable", "slurmd"));
  CO_TRY_OK(co_await order(tools, "stop", "slurmd"));
  if (co_await unitState(tools, "slurmd") == "active")
    co_return fail(ErrorCode::Internal, "slurmd still runs after it was stopped");
  co_return nlohmann::json::object();
}

}  // namespace muster::agent
