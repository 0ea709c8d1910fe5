// SPDX-License-Identifier: Apache-2.0
#include "app/site/twin.h"

#include "app/site/rack_state.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "lab/lab.h"
#include "lab/vbmc/firmware_file.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdlib>
#include <tuple>

namespace muster::app {
namespace {

Result<lab::LabHandle> runningTwin(const Options& options) {
  TRY(cluster, loadCluster(options));
  TRY(found, lab::find(options.labFolder(cluster)));
  if (!found) return fail(ErrorCode::NotFound, "the lab is not up; start it with: muster lab up");
  return std::move(*found);
}

Result<nlohmann::json> faultJson(const TwinFault& fault) {
  nlohmann::json out = nlohmann::json::object();
  if (!fault.update_fault.empty())
    out["update_faults"].push_back({{"kind", fault.update_fault}, {"count", fault.count}});
  if (fault.path.empty()) return out;
  nlohmann::json rule = {{"method", fault.method}, {"path", fault.path},
                         {"status", fault.status}, {"latency_ms", fault.latency_ms},
                         {"drop", fault.drop},     {"after", fault.after},
                         {"count", fault.count}};
  if (!fault.merge.empty()) {
    rule["merge"] = jsonOrNone(fault.merge, kFileJson);
    if (rule["merge"].is_discarded())
      return fail(ErrorCode::InvalidInput, "--merge is not JSON: " + fault.merge);
  }
  out["rules"].push_back(std::move(rule));
  return out;
}

}  // namespace

Result<TwinNames> startTwin(const Options& options, const TwinLog& log) {
  TRY(cluster, loadCluster(options));
  TRY(lab, lab::up(cluster, options.labFolder(cluster), log));
  TRY_OK(bindToRack(options.state, options.store, lab.id, log));
  return TwinNames{lab.name, lab.netns};
}

Result<void> stopTwin(const Options& options, const TwinLog& log) {
  TRY(cluster, loadCluster(options));
  return lab::down(options.labFolder(cluster), log);
}

Result<std::vector<TwinNode>> twinNodes(const Options& options) {
  TRY(lab, runningTwin(options));
  TRY(nodes, lab::status(lab));
  std::vector<TwinNode> out;
  for (const auto& node : nodes) out.push_back({node.name, node.power, node.bmc_url, node.console});
  return out;
}

Result<std::string> setTwinFault(const Options& options, const TwinFault& fault) {
  TRY(cluster, loadCluster(options));
  TRY(lab, runningTwin(options));
  const auto* node = cluster.findNode(NodeName(fault.node));
  if (!node)
    return fail(ErrorCode::NotFound,
                fmt::format("node {} is not in the inventory; nothing was changed", fault.node));
  const auto& credential = cluster.credentials.at(inventory::bmcCredentialOf(cluster, *node));
  TRY(password, credential.password.read());
  TRY(add, faultJson(fault));
  const auto& user =
      node->bmc.username_override.empty() ? credential.username : node->bmc.username_override;
  return lab::bmcFaults(lab, {node->bmc.url, user, std::move(password)}, jsonText(add),
                        fault.clear);
}

Result<void> makeTwinPackages(const std::filesystem::path& folder, const TwinLog& log) {
  // What the example's inventory names, and what it is changed to when updates are rehearsed.
  constexpr std::array kFirmware{std::tuple{"BMC", "2.1.0", "bmc-2.1.0.fw"},
                                 std::tuple{"BMC", "2.2.0", "bmc-2.2.0.fw"},
                                 std::tuple{"BIOS", "1.4.2", "bios-1.4.2.fw"}};
  TRY_OK(lab::buildDriverRepo(folder / "repo", log));
  TRY_OK(io::makeDirs(folder / "firmware"));
  for (const auto& [component, version, file] : kFirmware)
    TRY_OK(io::writeFileAtomic(folder / "firmware" / file,
                               lab::vbmc::makeFirmware(component, version)));
  return {};
}

Result<void> enterTwin(const Options& options) {
  TRY(lab, runningTwin(options));
  TRY_OK(lab::enter(lab));
  ::setenv("SLURM_CONF", lab.slurm_conf.c_str(), 1);
  for (const auto& [key, value] : lab.fabric_env) ::setenv(key.c_str(), value.c_str(), 1);
  return {};
}

}  // namespace muster::app
