// SPDX-License-Identifier: Apache-2.0
#include "lab/slow_tools.h"

namespace muster::lab {
namespace {

class SlowTools final : public io::ProcessRunner {
 public:
  SlowTools(std::unique_ptr<io::ProcessRunner> runner, const Clock& clock)
      : runner_(std::move(runner)), clock_(clock) {}

  Async<io::ProcessExit> run(io::Command command) override {
    command.timeout = std::chrono::ceil<std::chrono::seconds>(limitHere(clock_, command.timeout));
    return runner_->run(std::move(command));
  }
  Result<std::unique_ptr<io::Child>> start(io::Command command,
                                           std::filesystem::path log_file) override {
    return runner_->start(std::move(command), std::move(log_file));
  }
  Result<pid_t> startDetached(io::Command command, std::filesystem::path log_file) override {
    return runner_->startDetached(std::move(command), std::move(log_file));
  }

 private:
  std::unique_ptr<io::ProcessRunner> runner_;
  const Clock& clock_;
};

}  // namespace

std::unique_ptr<io::ProcessRunner> slowTools(std::unique_ptr<io::ProcessRunner> runner,
                                             const Clock& clock) {
  return std::make_unique<SlowTools>(std::move(runner), clock);
}

}  // namespace muster::lab
