// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/supervisor.h"

#include "base/io/files.h"
#include "base/log.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>

namespace muster::provision {

namespace {

constexpr std::chrono::milliseconds kTerminateGrace{2000};

}  // namespace

// Shared with the watching coroutine, which may end a moment after the supervisor.
struct Supervisor::State {
  SupervisorOptions options;
  asio::steady_timer timer;
  Daemon daemon;
  std::unique_ptr<io::Child> child;
  std::optional<std::string> gave_up;
  bool stopped = false;

  State(const asio::any_io_executor& executor, SupervisorOptions o)
      : options(std::move(o)), timer(executor) {}

  io::PidFile pidFile() const { return {daemon.pid_file}; }
  Result<void> launch() {
    TRY(started, daemon.start());
    child = std::move(started);
    if (!daemon.keeps_pid) return {};
    // Only needed after a crash. Should the daemon have died at once, the watcher will see it.
    if (auto written = pidFile().write(child->pid()); !written)
      logWarning(options.area, "{}", written.error().str());
    return {};
  }
};

namespace {

Task<void> rest(std::shared_ptr<Supervisor::State> state, std::chrono::milliseconds duration) {
  boost::system::error_code ignored;
  state->timer.expires_after(duration);
  co_await state->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

Task<void> keepRunning(std::shared_ptr<Supervisor::State> state) {
  int deaths = 0;
  auto started = std::chrono::steady_clock::now();
  while (!state->stopped) {
    co_await rest(state, state->options.poll);
    if (state->stopped) co_return;
    if (state->child && state->child->running()) continue;
    if (std::chrono::steady_clock::now() - started > state->options.stable_after) deaths = 0;
    if (++deaths >= state->options.max_deaths_in_row) {
      state->gave_up = fmt::format("{} died {} times in a row; see {}", state->options.area, deaths,
                                   state->daemon.log);
      logText(LogLevel::Error, state->options.area, *state->gave_up);
      co_return;
    }
    const auto pause = state->options.first_pause * (1 << (deaths - 1));
    logWarning(state->options.area, "died; started again in {} ms (see {})", pause.count(),
               state->daemon.log);
    co_await rest(state, pause);
    if (state->stopped) co_return;
    started = std::chrono::steady_clock::now();
    if (auto launched = state->launch(); !launched)
      logWarning(state->options.area, "{}", launched.error().str());
  }
}

}  // namespace

Daemon childDaemon(io::ProcessRunner& processes, io::Command command,
                   std::filesystem::path log_file, std::filesystem::path pid_file) {
  return {[&processes, command = std::move(command), log_file] {
            return processes.start(command, log_file);
          },
          log_file.string(), std::move(pid_file)};
}

Supervisor::Supervisor(asio::any_io_executor executor, SupervisorOptions options)
    : state_(std::make_shared<State>(executor, std::move(options))) {}

Supervisor::~Supervisor() { stop(); }

Result<void> Supervisor::adopt(std::unique_ptr<io::Child> child, Daemon daemon) {
  if (state_->child) return fail(ErrorCode::Conflict, state_->options.area + " is already running");
  state_->daemon = std::move(daemon);
  if (child && child->running()) {
    state_->child = std::move(child);
  } else {
    TRY_OK(state_->pidFile().terminate(kTerminateGrace));
    TRY_OK(state_->launch());
  }
  asio::co_spawn(state_->timer.get_executor(), keepRunning(state_),
                 [](const std::exception_ptr&) {});
  return {};
}

std::unique_ptr<io::Child> Supervisor::release() {
  if (std::exchange(state_->stopped, true)) return nullptr;
  state_->timer.cancel();
  return std::move(state_->child);
}

void Supervisor::stop() {
  if (std::exchange(state_->stopped, true)) return;
  state_->timer.cancel();
  if (!state_->child) return;
  state_->child->terminate(kTerminateGrace);
  state_->child.reset();
  std::error_code ignored;
  std::filesystem::remove(state_->daemon.pid_file, ignored);
}

void Supervisor::signal(int number) {
  if (state_->child && state_->child->running()) state_->child->signal(number);
}

std::optional<std::string> Supervisor::gaveUp() const { return state_->gave_up; }

}  // namespace muster::provision
