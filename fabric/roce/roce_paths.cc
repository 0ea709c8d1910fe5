// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/roce_paths.h"

#include "base/json_input.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::fabric {

namespace {

constexpr std::string_view kProbe = "roce.path.", kBlocked = "blocked ";

}  // namespace

void RocePaths::learn(const NodeName& node, std::string_view marking) {
  const auto told = jsonOrNone(marking, kAgentJson);
  if (!told.is_object()) return;
  auto& own = addresses_[node.str()];
  own.clear();
  for (const auto& [device, row] : told.items())
    if (row.is_object() && row.contains("address") && row["address"].is_string())
      own[device] = row["address"].get<std::string>();
}

std::vector<std::string> RocePaths::probesOf(const inventory::Cluster& cluster,
                                             const inventory::Fabric& fabric,
                                             const NodeName& node) const {
  std::vector<std::string> out;
  const auto own = addresses_.find(node.str());
  if (own == addresses_.end()) return out;
  const auto hosts = hostsOn(cluster, fabric);
  const auto here = std::find_if(hosts.begin(), hosts.end(),
                                 [&](const Host& host) { return host.name == node.str(); });
  if (here == hosts.end()) return out;
  const auto at = static_cast<std::size_t>(here - hosts.begin());
  const auto& hcas = here->hcas;
  for (const auto& [device, address] : own->second) {
    if (std::find(hcas.begin(), hcas.end(), fmt::format("{} {}", node.str(), device)) == hcas.end())
      continue;  // of another network
    // From there on the first that has told an address of the same rail.
    for (const std::size_t from : {std::size_t{1}, hosts.size() / 2})
      for (std::size_t step = std::max<std::size_t>(from, 1); step < hosts.size(); ++step) {
        const auto peer = addresses_.find(hosts[(at + step) % hosts.size()].name);
        if (peer == addresses_.end() || !peer->second.contains(device)) continue;
        auto probe = fmt::format("{}{}.{}", kProbe, device, peer->second.at(device));
        if (std::find(out.begin(), out.end(), probe) == out.end()) out.push_back(std::move(probe));
        break;
      }
  }
  return out;
}

std::vector<std::string> RocePaths::problems(
    const std::map<std::string, std::string>& probes) const {
  std::vector<std::string> out;
  for (const auto& [probe, answer] : probes) {
    if (!probe.starts_with(kProbe) || !answer.starts_with(kBlocked)) continue;
    const auto way = probe.substr(kProbe.size());
    const auto device = way.substr(0, way.find('.')), address = way.substr(way.find('.') + 1);
    std::string peer = address;
    for (const auto& [node, devices] : addresses_)
      if (const auto found = devices.find(device);
          found != devices.end() && found->second == address)
        peer = fmt::format("{} ({})", node, address);
    out.push_back(
        fmt::format("{}: packets of {} bytes do not reach {}, small ones do: a switch between them "
                    "has a smaller MTU",
                    device, answer.substr(kBlocked.size()), peer));
  }
  return out;
}

}  // namespace muster::fabric
