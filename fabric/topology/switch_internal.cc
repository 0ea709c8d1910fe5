// SPDX-License-Identifier: Apache-2.0
#include "fabric/topology/switch_internal.h"

#include <algorithm>

namespace muster::fabric {

namespace {

struct IdRange {
  std::uint64_t first, last;
};
constexpr IdRange kAdapters[] = {{0x1000, 0x10ff}, {0xa2d0, 0xa2ff}};

bool isAdapter(std::uint64_t id) {
  return std::any_of(std::begin(kAdapters), std::end(kAdapters),
                     [id](const auto& range) { return id >= range.first && id <= range.last; });
}

}  // namespace

Topology withoutSwitchParts(Topology topology, const CalledAggregationNodes& called) {
  if (called.empty()) return topology;
  std::map<std::string_view, std::vector<const Port*>> places;
  for (const auto& link : topology.links)
    for (const auto& [own, other] : {std::pair(&link.a, &link.b), std::pair(&link.b, &link.a)})
      if (called.contains(own->node)) places[own->node].push_back(other);
  std::set<std::string, std::less<>> parts;
  for (const auto& [name, peers] : places) {
    const auto& device_id = called.find(name)->second;
    const auto& at = topology.devices.at(peers.front()->node);
    if (peers.size() == 1 && at.is_switch && peers.front()->number == at.ports &&
        (device_id ? !isAdapter(*device_id) : at.ports % 2 == 1))
      parts.emplace(name);
  }
  std::erase_if(topology.links, [&](const Link& link) {
    return parts.contains(link.a.node) || parts.contains(link.b.node);
  });
  for (const auto& name : parts) {
    const auto device = topology.devices.find(name);
    topology.switch_parts.push_back(device->second.guid);
    topology.devices.erase(device);
  }
  return topology;
}

}  // namespace muster::fabric
