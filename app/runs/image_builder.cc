// SPDX-License-Identifier: Apache-2.0
#include "app/runs/image_builder.h"

#include "app/controller/controller.h"
#include "app/images.h"
#include "app/site/site_keys.h"

namespace muster::app {
namespace {

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
    return processes_->start(std::move(command), log);
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
