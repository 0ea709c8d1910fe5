// SPDX-License-Identifier: Apache-2.0
#include "app/runs/image_builder.h"

#include "app/controller/controller.h"
#include "app/images.h"
#include "app/site/site_keys.h"

#include <fmt/format.h>

#include <sys/wait.h>

#include <fstream>
#include <optional>

namespace muster::app {
namespace {

/// The signal that has ended a child of this process, which stays to be reaped.
std::optional<int> signalThatEnded(pid_t pid) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    return std::nullopt;
  if (info.si_code != CLD_KILLED && info.si_code != CLD_DUMPED) return std::nullopt;
  return info.si_status;
}

/// A build that is killed says nothing: its log gets the signal as its last line.
class LoggedBuild final : public io::Child {
 public:
  LoggedBuild(std::unique_ptr<io::Child> build, std::filesystem::path log)
      : build_(std::move(build)), log_(std::move(log)) {}
  pid_t pid() const override { return build_->pid(); }
  bool running() override {
    if (!runs_) return false;
    const auto signal = signalThatEnded(pid());
    if (!signal && build_->running()) return true;
    runs_ = false;
    if (signal)
      std::ofstream(log_, std::ios::app)
          << fmt::format("\nthe build was ended by signal {}\n", *signal);
    return build_->running();
  }
  void terminate(std::chrono::milliseconds grace) override { build_->terminate(grace); }
  void signal(int number) override { build_->signal(number); }

 private:
  const std::unique_ptr<io::Child> build_;
  const std::filesystem::path log_;
  bool runs_ = true;
};

class ImageProgram final : public ImageBuilder {
 public:
  ImageProgram(const Options& options, Workers& workers)
      : options_(options), workers_(workers), processes_(io::makeProcessRunner()) {}

  Async<std::vector<std::string>> missing(std::string only) override {
    auto look = offload<Result<std::vector<std::string>>>(
        workers_, [options = options_, only] { return missingImages(options, only); });
    co_return co_await std::move(look);
  }

  Result<std::unique_ptr<io::Child>> start(const std::string& name, const std::string& over,
                                           const std::filesystem::path& log) override {
    io::Command command;
    command.program = (binaryFolder() / "muster").string();
    command.args = {"--direct", "image", "build", name};
    if (!over.empty()) command.args.insert(command.args.end(), {"--over", over});
    command.env = {{"MUSTER_INVENTORY", options_.inventory.string()},
                   {"MUSTER_STATE", options_.state.string()},
                   {"MUSTER_CACHE", options_.cache.string()},
                   {"MUSTER_STORE", options_.store},
                   {"MUSTER_SERVER", ""}};
    TRY(build, processes_->start(std::move(command), log));
    return std::make_unique<LoggedBuild>(std::move(build), log);
  }

  std::filesystem::path folder() const override { return options_.state; }

 private:
  const Options options_;
  Workers& workers_;
  const std::unique_ptr<io::ProcessRunner> processes_;
};

}  // namespace

std::unique_ptr<ImageBuilder> makeImageBuilder(const Options& options, Workers& workers) {
  return std::make_unique<ImageProgram>(options, workers);
}

}  // namespace muster::app
