// JoinPool and LeavePool: slurmd and munge on this node, by systemd.
//
// join params {kind: "slurm", conf, munge_key (base64)}. Services are restarted only when their files changed.
#include "agent/protocol/json_reader.h"
#include "agent/tasks/tasks.h"
#include "base/io/crypto.h"
#include "base/io/files.h"

#include <filesystem>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kServiceLimit{90};
constexpr std::chrono::milliseconds kLookEvery{500};
constexpr std::size_t kMaxConfBytes = 1u << 20;
constexpr std::size_t kMinMungeKeyBytes = 32;    ///< munged refuses shorter ones
constexpr std::size_t kMaxMungeKeyBytes = 1024;

Async<std::string> systemctl(TaskTools tools, std::string verb, std::string unit) {
  std::vector<std::string> args = {verb, unit};
  auto run = runTool(tools, "systemctl", std::move(args), kServiceLimit);
  co_return co_await std::move(run);
}

Task<bool> isActive(TaskTools tools, std::string unit) {
  auto ask = systemctl(tools, "is-active", unit);
  auto answer = co_await std::move(ask);
  co_return answer && answer->starts_with("active");
}

/// Waits for what systemd says; past the limit the end of the unit's journal is the evidence.
Async<void> waitActive(TaskTools tools, std::string unit) {
  auto until = tools.clock.steady() + kServiceLimit;
  while (tools.clock.steady() < until) {
    auto ask = isActive(tools, unit);
    if (co_await std::move(ask)) co_return Result<void>();
    auto sleep = tools.clock.sleep(kLookEvery);
    co_await std::move(sleep);
  }
  std::vector<std::string> args = {"-u", unit, "-n", "20", "--no-pager", "-o", "cat"};
  auto read = runTool(tools, "journalctl", std::move(args), kServiceLimit);
  auto journal = co_await std::move(read);
  co_return fail(ErrorCode::Timeout, fmt::format("{} is not active after {} s; its last words: {}", unit, kServiceLimit.count(),
                                                 journal ? *journal : journal.error().str()));
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

/// Starts the unit, or restarts it when what it reads is new. It is there after a restart of the machine too.
Async<void> bringUp(TaskTools tools, std::string unit, bool changed) {
  auto ask = isActive(tools, unit);
  bool active = co_await std::move(ask);
  if (!active || changed) {
    auto restart = systemctl(tools, "restart", unit);
    CO_TRY_OK(co_await std::move(restart));
  }
  auto enable = systemctl(tools, "enable", unit);
  CO_TRY_OK(co_await std::move(enable));
  auto wait = waitActive(tools, unit);
  CO_TRY_OK(co_await std::move(wait));
  co_return Result<void>();
}

}  // namespace

Async<nlohmann::json> joinPool(TaskTools tools, nlohmann::json params, TaskContextPtr context) {
  JsonReader reader(params, "params");
  if (reader.text("kind", kMaxNameBytes) != "slurm") reader.wrong("kind", "is not \"slurm\", the one that this agent knows");
  std::string conf = reader.text("conf", kMaxConfBytes);
  std::string key_text = reader.text("munge_key", 2 * kMaxMungeKeyBytes);
  CO_TRY_OK(reader.finish());
  CO_TRY(key, io::fromBase64(key_text));
  if (key.size() < kMinMungeKeyBytes || key.size() > kMaxMungeKeyBytes) {
    co_return fail(ErrorCode::InvalidInput, fmt::format("the munge key has {} bytes, not {} to {}", key.size(), kMinMungeKeyBytes, kMaxMungeKeyBytes));
  }
  context->progress(0.1, "writing slurm.conf and munge's key");
  auto key_file = tools.root / "etc/munge/munge.key";
  CO_TRY(new_key, put(key_file, key, 0400));
  std::vector<std::string> args = {"munge:munge", key_file.string()};
  auto chown = runTool(tools, "chown", std::move(args), kServiceLimit);
  CO_TRY_OK(co_await std::move(chown));
  CO_TRY(new_conf, put(tools.root / "etc/slurm/slurm.conf", conf, 0644));

  context->progress(0.4, "starting munge");
  auto munge = bringUp(tools, "munge", new_key);
  CO_TRY_OK(co_await std::move(munge));
  context->progress(0.6, "starting slurmd");
  auto slurmd = bringUp(tools, "slurmd", new_conf || new_key);
  CO_TRY_OK(co_await std::move(slurmd));

  std::vector<std::string> version_args = {"-V"};
  auto ask = runTool(tools, "slurmd", std::move(version_args), kServiceLimit);
  CO_TRY(version, co_await std::move(ask));
  while (!version.empty() && std::isspace(static_cast<unsigned char>(version.back()))) version.pop_back();
  co_return nlohmann::json{{"slurmd", version}};
}

Async<nlohmann::json> leavePool(TaskTools tools, TaskContextPtr context) {
  context->progress(0.1, "stopping slurmd");
  auto disable = systemctl(tools, "disable", "slurmd");
  CO_TRY_OK(co_await std::move(disable));
  auto stop = systemctl(tools, "stop", "slurmd");
  CO_TRY_OK(co_await std::move(stop));
  auto ask = isActive(tools, "slurmd");
  if (co_await std::move(ask)) co_return fail(ErrorCode::Internal, "slurmd still runs after it was stopped");
  co_return nlohmann::json::object();
}

}  // namespace muster::agent
