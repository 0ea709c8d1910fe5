// SPDX-License-Identifier: Apache-2.0
#include "base/io/slow_tools.h"
#include "base/limits.h"

namespace muster::io {
namespace {

class SlowTools final : public ProcessRunner {
 public:
  SlowTools(std::unique_ptr<ProcessRunner> runner, const Clock& clock)
      : runner_(std::move(runner)), clock_(clock) {}

  Async<ProcessExit> run(Command command) override {
    command.timeout = std::chrono::ceil<std::chrono::seconds>(limitHere(clock_, command.timeout));
    return runner_->run(std::move(command));
  }
  Result<std::unique_ptr<Child>> start(Command command, std::filesystem::path log_file) override {
    return runner_->start(std::move(command), std::move(log_file));
  }
  Result<pid_t> startDetached(Command command, std::filesystem::path log_file) override {
    return runner_->startDetached(std::move(command), std::move(log_file));
  }

 private:
  std::unique_ptr<ProcessRunner> runner_;
  const Clock& clock_;
};

}  // namespace

std::unique_ptr<ProcessRunner> slowTools(std::unique_ptr<ProcessRunner> runner,
                                         const Clock& clock) {
  return std::make_unique<SlowTools>(std::move(runner), clock);
}

}  // namespace muster::io
