// SPDX-License-Identifier: Apache-2.0
#include "inventory/export/ansible.h"

#include "base/io/crypto.h"
#include "base/json_output.h"
#include "inventory/model/profile.h"

#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace muster::inventory {
namespace {

using nlohmann::json;

/// Ansible's own pattern for groups: letters, digits and '_'.
std::string plain(const std::string& name) {
  std::string out = name;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return out;
}

/// Names of groups of one kind, by the names of what they stand for.
std::map<std::string, std::string> groupNames(const std::string& prefix,
                                              const std::set<std::string>& names) {
  std::map<std::string, int> how_many;
  for (const auto& name : names) ++how_many[plain(name)];
  std::map<std::string, std::string> out;
  for (const auto& name : names) {
    auto group = prefix + plain(name);
    if (how_many[plain(name)] > 1) group += "_" + io::sha256Hex(name).substr(0, 6);
    out.emplace(name, std::move(group));
  }
  return out;
}

std::string withoutAccount(const std::string& url) {
  const auto scheme = url.find("://");
  const auto account = url.find('@');
  if (scheme == std::string::npos || account == std::string::npos) return url;
  return url.substr(0, scheme + 3) + url.substr(account + 1);
}

}  // namespace

std::string ansibleInventory(const Cluster& cluster) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> kinds;
  auto variables = json::object();
  for (const auto& node : cluster.nodes) {
    const auto& profile = cluster.profileOf(node);
    json of_node{{"muster_profile", node.profile}, {"muster_mac", node.mac.str()}};
    kinds["profile_"][node.profile].push_back(node.name.str());
    if (node.address.value() != 0) of_node["ansible_host"] = node.address.str();
    if (!node.bmc.url.empty()) of_node["muster_bmc"] = withoutAccount(node.bmc.url);
    if (!profile.pool.empty()) {
      of_node["muster_pool"] = profile.pool;
      kinds["pool_"][profile.pool].push_back(node.name.str());
    }
    if (!node.rack.empty()) {
      of_node["muster_rack"] = node.rack;
      of_node["muster_unit"] = node.unit;
      kinds["rack_"][node.rack].push_back(node.name.str());
    }
    variables[node.name.str()] = std::move(of_node);
  }
  json out{{"_meta", {{"hostvars", std::move(variables)}}}};
  auto children = json::array();
  for (const auto& [prefix, groups] : kinds) {
    std::set<std::string> names;
    for (const auto& [name, hosts] : groups) names.insert(name);
    for (const auto& [name, group] : groupNames(prefix, names)) {
      out[group] = {{"hosts", groups.at(name)}};
      children.push_back(group);
    }
  }
  out["all"] = {{"children", std::move(children)}};
  return jsonText(out) + "\n";
}

}  // namespace muster::inventory
