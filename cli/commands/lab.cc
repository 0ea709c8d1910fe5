// SPDX-License-Identifier: Apache-2.0
#include "base/json_input.h"
#include "base/json_output.h"
#include "cli/commands/commands.h"

#include "app/rack_state.h"
#include "base/io/files.h"
#include "lab/lab.h"
#include "lab/vbmc/firmware_file.h"

#include <unistd.h>

#include <array>
#include <iostream>
#include <tuple>

namespace muster::cli {
namespace {

void say(std::string_view words) { std::cout << words << std::endl; }

Result<lab::LabHandle> runningLab(const app::Options& options) {
  TRY(cluster, app::loadCluster(options));
  TRY(found, lab::find(options.labFolder(cluster)));
  if (!found) return fail(ErrorCode::NotFound, "the lab is not up; start it with: muster lab up");
  return std::move(*found);
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
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  const auto lab = lab::up(*cluster, options.labFolder(*cluster), say);
  if (!lab) return report(lab.error());
  if (const auto bound = app::bindToRack(options.state, options.store, lab->id, say); !bound)
    return report(bound.error());
  std::cout << fmt::format("lab {} is up in namespace {}\n", lab->name, lab->netns);
  return kOk;
}

int labDown(const app::Options& options) {
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  const auto down = lab::down(options.labFolder(*cluster), say);
  return down ? int{kOk} : report(down.error());
}

int labStatus(const app::Options& options) {
  const auto lab = runningLab(options);
  if (!lab) return report(lab.error());
  const auto nodes = lab::status(*lab);
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

int labFault(const app::Options& options, const FaultFlags& flags) {
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  const auto lab = runningLab(options);
  if (!lab) return report(lab.error());
  const auto* node = cluster->findNode(NodeName(flags.node));
  if (!node)
    return report(
        Error(ErrorCode::NotFound,
              fmt::format("node {} is not in the inventory; nothing was changed", flags.node)));
  const auto& credential = cluster->credentials.at(inventory::bmcCredentialOf(*cluster, *node));
  auto password = credential.password.read();
  if (!password) return report(password.error());
  nlohmann::json add = nlohmann::json::object();
  if (!flags.update_fault.empty())
    add["update_faults"].push_back({{"kind", flags.update_fault}, {"count", flags.count}});
  if (!flags.path.empty()) {
    nlohmann::json rule = {{"method", flags.method}, {"path", flags.path},
                           {"status", flags.status}, {"latency_ms", flags.latency_ms},
                           {"drop", flags.drop},     {"after", flags.after},
                           {"count", flags.count}};
    if (!flags.merge.empty()) {
      rule["merge"] = jsonOrNone(flags.merge, kFileJson);
      if (rule["merge"].is_discarded())
        return report(Error(ErrorCode::InvalidInput, "--merge is not JSON: " + flags.merge));
    }
    add["rules"].push_back(std::move(rule));
  }
  const auto& user =
      node->bmc.username_override.empty() ? credential.username : node->bmc.username_override;
  const auto set =
      lab::bmcFaults(*lab, {node->bmc.url, user, std::move(*password)}, jsonText(add), flags.clear);
  if (!set) return report(set.error());
  std::cout << *set << '\n';
  return kOk;
}

int labPackages(const app::Options&, const std::filesystem::path& folder) {
  // What the example's inventory names, and what it is changed to when updates are rehearsed.
  constexpr std::array kFirmware{std::tuple{"BMC", "2.1.0", "bmc-2.1.0.fw"},
                                 std::tuple{"BMC", "2.2.0", "bmc-2.2.0.fw"},
                                 std::tuple{"BIOS", "1.4.2", "bios-1.4.2.fw"}};
  const auto made = [&]() -> Result<void> {
    TRY_OK(lab::buildDriverRepo(folder / "repo", say));
    TRY_OK(io::makeDirs(folder / "firmware"));
    for (const auto& [component, version, file] : kFirmware)
      TRY_OK(io::writeFileAtomic(folder / "firmware" / file,
                                 lab::vbmc::makeFirmware(component, version)));
    return {};
  }();
  return made ? int{kOk} : report(made.error());
}

int labExec(const app::Options& options, const std::vector<std::string>& command) {
  if (command.empty())
    return report(Error(ErrorCode::InvalidInput, "which program? muster lab exec sinfo"));
  const auto lab = runningLab(options);
  if (!lab) return report(lab.error());
  if (const auto entered = lab::enter(*lab); !entered) return report(entered.error());
  setenv("SLURM_CONF", lab->slurm_conf.c_str(), 1);
  for (const auto& [key, value] : lab->fabric_env) setenv(key.c_str(), value.c_str(), 1);
  return become(command);
}

}  // namespace muster::cli
