// SPDX-License-Identifier: Apache-2.0
// Seam: what a run builds images with. The real one starts `muster image build`, which dies with
// this process, keeps to one build of an image at a time (provision/images/image_store.cc), and
// asks the build unit where this process is not root (docs/adr/0343).
#pragma once

#include "app/site/options.h"
#include "base/async/task.h"
#include "base/io/process.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace muster::app {

inline constexpr std::string_view kRamOsName = "ramos";

class ImageBuilder {
 public:
  virtual ~ImageBuilder() = default;
  /// Of the images of the inventory as its file is now, and of the RAM OS ("ramos"), what is not in
  /// the cache; `only`: of this one. Errors: NotFound (no such image), InvalidInput (the
  /// inventory)
  virtual Async<std::vector<std::string>> missing(std::string only) = 0;
  /// Begins to build one of them. What it says goes to `log`; destroyed, it is killed.
  virtual Result<std::unique_ptr<io::Child>> start(const std::string& name, const std::string& over,
                                                   const std::filesystem::path& log) = 0;
  /// Where logs of builds may lie.
  virtual std::filesystem::path folder() const = 0;
};

/// `workers`: borrowed.
std::unique_ptr<ImageBuilder> makeImageBuilder(const Options& options, Workers& workers);

}  // namespace muster::app
