// SPDX-License-Identifier: Apache-2.0
// lab: the virtual twin of the rack.
#include "app/site/twin.h"

#include "base/json_output.h"
#include "cli/commands/lab.h"
#include "cli/commands/print_done.h"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

namespace muster::cli {
namespace {

/// What goes on meanwhile; beside the JSON of who asked for that.
auto printer(const app::Options& options) {
  return [&out = options.json ? std::cerr : std::cout](std::string_view text) {
    out << text << std::endl;
  };
}

/// Becomes another program; comes back only when that fails.
int become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return report(Error(ErrorCode::NotFound,
                      fmt::format("cannot run {}: {}", command[0], std::strerror(errno))));
}

}  // namespace

int labUp(const app::Options& options) {
  const auto twin = app::startTwin(options, printer(options));
  if (!twin) return report(twin.error());
  return printDone(
      options, {{"lab", twin->name}, {"namespace", twin->network_namespace}},
      fmt::format("lab {} is up in namespace {}\n", twin->name, twin->network_namespace));
}

int labDown(const app::Options& options) {
  const auto down = app::stopTwin(options, printer(options));
  if (!down) return report(down.error());
  return printDone(options, {{"is_up", false}}, "");
}

int labStatus(const app::Options& options) {
  const auto nodes = app::twinNodes(options);
  if (!nodes) return report(nodes.error());
  if (options.json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const auto& node : *nodes)
      rows.push_back({{"name", node.name},
                      {"power", node.power},
                      {"bmc", node.bmc_url},
                      {"console", node.console}});
    std::cout << jsonText(rows, 2) << '\n';
    return kOk;
  }
  for (const auto& node : *nodes)
    std::cout << fmt::format("{:<12}{:<10}{:<28}{}\n", node.name, node.power, node.bmc_url,
                             node.console);
  return kOk;
}

int labFault(const app::Options& options, const app::TwinFault& fault) {
  const auto set = app::setTwinFault(options, fault);
  if (!set) return report(set.error());
  return printDone(options, {{"text", *set}}, *set + "\n");
}

int labPackages(const app::Options& options, const LabPackagesArgs& args) {
  const auto made = app::makeTwinPackages(args.folder, printer(options));
  if (!made) return report(made.error());
  return printDone(options, {{"folder", args.folder.string()}}, "");
}

int labExec(const app::Options& options, const std::vector<std::string>& command) {
  if (command.empty())
    return report(Error(ErrorCode::InvalidInput, "which program? muster lab exec sinfo"));
  if (const auto entered = app::enterTwin(options); !entered) return report(entered.error());
  return become(command);
}

}  // namespace muster::cli
