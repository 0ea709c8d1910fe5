// SPDX-License-Identifier: Apache-2.0
// What ibnetdiscover would print of a topology: its syntax with GUIDs, as seen on real switches and
// in ibsim.
#pragma once

#include "fabric/topology/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace muster::fabric::test {

/// `seed`: other GUIDs and another order of the devices for each.
inline std::string foundText(const Topology& topology, unsigned seed = 1) {
  std::vector<const Device*> order;
  for (const auto& [name, device] : topology.devices) order.push_back(&device);
  std::mt19937 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  std::map<std::string_view, unsigned long long> guids;
  unsigned long long next = 0x0002c90300000000ULL + seed * 0x1000000ULL;
  for (const auto* device : order) {
    guids[device->name] = next;
    next += static_cast<unsigned long long>(device->ports) + 1;
  }
  std::map<std::string_view, std::vector<std::pair<const Port*, const Link*>>> wires;
  for (const auto& link : topology.links) {
    wires[link.a.node].emplace_back(&link.a, &link);
    wires[link.b.node].emplace_back(&link.b, &link);
  }
  auto id = [&](const std::string& name) {
    return fmt::format("{}-{:016x}", topology.devices.at(name).is_switch ? 'S' : 'H',
                       guids.at(name));
  };
  std::string out = "#\n# Topology file: generated on Fri Nov 20 14:16:20 2026\n#\n";
  for (const auto* device : order) {
    auto guid = guids.at(device->name);
    out += fmt::format("\nvendid=0x2c9\ndevid=0x{}\nsysimgguid=0x{:x}\n{}=0x{:x}",
                       device->is_switch ? "d2f0" : "1021", guid,
                       device->is_switch ? "switchguid" : "caguid", guid);
    out += device->is_switch
               ? fmt::format("({:x})\nSwitch\t{} \"{}\"\t\t# \"{}\" enhanced port 0 lid 2 lmc 0\n",
                             guid, device->ports, id(device->name), device->name)
               : fmt::format("\nCa\t{} \"{}\"\t\t# \"{}\"\n", device->ports, id(device->name),
                             device->name);
    for (const auto& [end, link] : wires[device->name]) {
      const auto& peer = end == &link->a ? link->b : link->a;
      const bool peer_is_switch = topology.devices.at(peer.node).is_switch;
      auto peer_guid =
          peer_is_switch
              ? std::string()
              : fmt::format("({:x})", guids.at(peer.node) + static_cast<unsigned>(peer.number));
      out += device->is_switch
                 ? fmt::format("[{}]\t\"{}\"[{}]{} \t\t# \"{}\" lid 4 {}\n", end->number,
                               id(peer.node), peer.number, peer_guid, peer.node, link->width_speed)
                 : fmt::format("[{}]({:x}) \t\"{}\"[{}]\t\t# lid 4 lmc 0 \"{}\" lid 2 {}\n",
                               end->number, guid + static_cast<unsigned>(end->number),
                               id(peer.node), peer.number, peer.node, link->width_speed);
    }
  }
  return out;
}

}  // namespace muster::fabric::test
