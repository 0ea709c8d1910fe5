// SPDX-License-Identifier: Apache-2.0
#include "app/site/options.h"

#include "app/site/leadership.h"
#include "base/io/crypto.h"
#include "fabric/topology/declaration.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "inventory/parse/paths.h"
#include "lab/lab.h"
#include "validate/gate_params.h"

#include <cstdlib>
#include <iostream>

namespace muster::app {
namespace {

std::string environment(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

}  // namespace

std::filesystem::path Options::labFolder(const inventory::Cluster& cluster) const {
  return lab.empty() ? std::filesystem::path("/run/muster-lab") / cluster.name : lab;
}

std::filesystem::path Options::runFolder(const std::string& what) const {
  return std::filesystem::path("/run/muster") /
         (what + "-" + io::sha256Hex(std::filesystem::absolute(state).string()).substr(0, 12));
}

void allowPaths(const std::vector<std::string>& folders) {
  auto all = environment(inventory::kAllowPathVariable, "");
  for (const auto& folder : folders)
    all += (all.empty() ? "" : ":") + std::filesystem::absolute(folder).string();
  ::setenv(inventory::kAllowPathVariable, all.c_str(), 1);
}

Options defaultOptions() {
  Options options;
  options.inventory = environment("MUSTER_INVENTORY", "cluster.yaml");
  options.state = environment("MUSTER_STATE", "/var/lib/muster");
  options.store = environment("MUSTER_STORE", "");
  options.cache = environment("MUSTER_CACHE", environment("HOME", "/var/cache") + "/.cache/muster");
  options.lab = environment("MUSTER_LAB", "");
  options.server = environment("MUSTER_SERVER", "");
  options.token = environment("MUSTER_TOKEN", "");
  options.token_file = environment("MUSTER_TOKEN_FILE", "");
  options.server_ca = environment("MUSTER_SERVER_CA", "");
  options.client_cert = environment("MUSTER_CLIENT_CERT", "");
  options.client_key = environment("MUSTER_CLIENT_KEY", "");
  return options;
}

inventory::Loaded loadDeclared(const Options& options) {
  auto loaded = inventory::load(options.inventory);
  if (loaded.cluster) {
    validate::evaluateGates(*loaded.cluster, loaded.diagnostics);
    validate::evaluateActiveChecks(*loaded.cluster, loaded.diagnostics);
    fabric::checkDeclarations(*loaded.cluster, loaded.diagnostics);
  }
  if (loaded.diagnostics.hasErrors()) loaded.cluster.reset();
  loaded.diagnostics.sort();
  return loaded;
}

std::string problemsText(const Diagnostics& diagnostics) {
  const auto count = diagnostics.all().size();
  return fmt::format("{} problem{}", count, count == 1 ? "" : "s");
}

Result<inventory::Cluster> loadCluster(const Options& options) {
  auto loaded = loadDeclared(options);
  for (const auto& diagnostic : loaded.diagnostics.all()) std::cerr << diagnostic.str() << '\n';
  if (!loaded.cluster)
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} has {}; nothing was done", options.inventory.string(),
                            problemsText(loaded.diagnostics)));
  for (auto& network : loaded.cluster->networks)
    if (!network.controllers.empty()) inventory::putOnHost(network, addressesOfHost());
  TRY(twin, lab::find(options.labFolder(*loaded.cluster)));
  if (twin) trustTwinBmcs(*loaded.cluster);
  return std::move(*loaded.cluster);
}

void trustTwinBmcs(inventory::Cluster& cluster) {
  cluster.bmc_trust = inventory::BmcTrustPolicy::FirstContact;
  for (auto& [name, profile] : cluster.profiles) profile.bmc_trust = {};
  for (auto& node : cluster.nodes) node.bmc.trust = {};
}

}  // namespace muster::app
