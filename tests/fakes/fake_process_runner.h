// SPDX-License-Identifier: Apache-2.0
// FakeProcessRunner: programs in memory. A test says how each ends; every command is kept.
#pragma once

#include "base/io/process.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace muster::test {

/// A daemon that lives until the test, or terminate, ends it.
struct FakeDaemon {
  io::Command command;
  std::filesystem::path log_file;
  bool running = true;
  bool terminated = false;  ///< by muster, not by itself
  std::vector<int> signals;
};

class FakeProcessRunner final : public io::ProcessRunner {
 public:
  /// How `run` answers; by default every program ends with 0 and says nothing.
  std::function<Result<io::ProcessExit>(const io::Command&)> answer =
      [](const io::Command&) -> Result<io::ProcessExit> { return io::ProcessExit{}; };
  std::optional<Error> refuse_start;                 ///< start answers this
  std::vector<io::Command> commands;                 ///< of run
  std::vector<std::shared_ptr<FakeDaemon>> daemons;  ///< of start and startDetached, in order

  Async<io::ProcessExit> run(io::Command command) override {
    commands.push_back(command);
    co_return answer(command);
  }
  Result<std::unique_ptr<io::Child>> start(io::Command command,
                                           std::filesystem::path log_file) override {
    if (refuse_start) return fail(*refuse_start);
    daemons.push_back(
        std::make_shared<FakeDaemon>(FakeDaemon{std::move(command), std::move(log_file)}));
    return std::make_unique<FakeChild>(daemons.back(), pidOf(daemons.size()));
  }
  Result<pid_t> startDetached(io::Command command, std::filesystem::path log_file) override {
    if (refuse_start) return fail(*refuse_start);
    daemons.push_back(
        std::make_shared<FakeDaemon>(FakeDaemon{std::move(command), std::move(log_file)}));
    return pidOf(daemons.size());
  }

 private:
  /// Beyond the kernel's highest pid, so that nothing real can be meant.
  static pid_t pidOf(std::size_t index) { return static_cast<pid_t>(0x7f000000 + index); }

  class FakeChild final : public io::Child {
   public:
    FakeChild(std::shared_ptr<FakeDaemon> daemon, pid_t pid)
        : daemon_(std::move(daemon)), pid_(pid) {}
    ~FakeChild() override { terminate(std::chrono::milliseconds(0)); }
    pid_t pid() const override { return pid_; }
    bool running() override { return daemon_->running; }
    void terminate(std::chrono::milliseconds) override {
      if (daemon_->running) daemon_->terminated = true;
      daemon_->running = false;
    }
    void signal(int number) override { daemon_->signals.push_back(number); }

   private:
    std::shared_ptr<FakeDaemon> daemon_;
    pid_t pid_;
  };
};

}  // namespace muster::test
