// SPDX-License-Identifier: Apache-2.0
// muster fabric: each command prints what a use case of app/ answers, and answers the exit status.
// A command's options are one struct: app's own request where that says all.
#pragma once

#include "app/fabric/fabric_reports.h"
#include "app/site/options.h"
#include "cli/exit_code.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::cli {

struct FabricDiffArgs {
  app::DiffRequest request;
  bool prometheus = false;
  int watch_seconds = 0;  ///< 0: once
};
int fabricDiff(const app::Options& options, const FabricDiffArgs& args);
struct FabricShowArgs {
  std::string fabric, device;
  bool all = false;  ///< also cables that are as declared
};
int fabricShow(const app::Options& options, const FabricShowArgs& args);
struct FabricPlanArgs {
  std::string rack, fabric;
  std::filesystem::path out;  ///< empty: standard output
};
int fabricPlan(const app::Options& options, const FabricPlanArgs& args);
struct FabricPlotArgs {
  app::PlotRequest request;
  std::filesystem::path out;  ///< empty: standard output
};
int fabricPlot(const app::Options& options, const FabricPlotArgs& args);
struct FabricRenderArgs {
  std::filesystem::path folder;
  std::string fabric;
};
int fabricRender(const app::Options& options, const FabricRenderArgs& args);
int fabricQosCheck(const app::Options& options, const app::QosCheckRequest& request);
struct FabricHealthArgs {
  app::LinkHealthRequest request;
  bool all = false, prometheus = false;
};
int fabricHealth(const app::Options& options, const FabricHealthArgs& args);
struct FabricRehearseArgs {
  std::vector<std::string> faults;  ///< empty: all kinds
  bool alone = false;
  std::string fabric;
};
int fabricRehearse(const app::Options& options, const FabricRehearseArgs& args);

}  // namespace muster::cli
