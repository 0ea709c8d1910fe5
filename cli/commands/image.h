// SPDX-License-Identifier: Apache-2.0
// muster image: each command prints what a use case of app/ answers, and answers the exit status.
// A command's options are one struct: app's own request where that says all.
#pragma once

#include "app/images.h"
#include "app/site/options.h"
#include "cli/exit_code.h"

#include <filesystem>
#include <string>

namespace muster::cli {

struct ImageArgs {
  std::string name;  ///< empty: all, where that is allowed
};
int imageBuild(const app::Options& options, const app::ImageBuildRequest& request);
int imageList(const app::Options& options);
int imageVerify(const app::Options& options, const ImageArgs& args);
struct ImageDiffArgs {
  std::string from, to;
};
/// Exit 0: equal, 1: different.
int imageDiff(const app::Options& options, const ImageDiffArgs& args);
struct ImageGcArgs {
  bool yes = false;
};
int imageGc(const app::Options& options, const ImageGcArgs& args);
struct ImageExportArgs {
  std::string name;
  std::filesystem::path file;
};
int imageExport(const app::Options& options, const ImageExportArgs& args);
int imageImport(const app::Options& options, const app::ImageImport& request);
int imageSign(const app::Options& options, const ImageArgs& args);
int imageKey(const app::Options& options);

}  // namespace muster::cli
