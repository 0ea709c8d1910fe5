// SPDX-License-Identifier: Apache-2.0
// muster lab: each command prints what a use case of app/ answers, and answers the exit status.
// A command's options are one struct: app's own request where that says all.
#pragma once

#include "app/site/options.h"
#include "app/site/twin.h"
#include "cli/exit_code.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::cli {

int labUp(const app::Options& options);
int labDown(const app::Options& options);
int labStatus(const app::Options& options);
struct LabPackagesArgs {
  std::filesystem::path folder;
};
int labPackages(const app::Options& options, const LabPackagesArgs& args);
/// Without a path and an update fault: what is set.
int labFault(const app::Options& options, const app::TwinFault& fault);
/// Runs a program inside the twin's network with its tools' environment.
int labExec(const app::Options& options, const std::vector<std::string>& command);

}  // namespace muster::cli
