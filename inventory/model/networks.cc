// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/networks.h"

#include "base/ip_address.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::inventory {

const Subnet* subnetOf(const Network& network, Ipv4 address) {
  const auto found =
      std::find_if(network.subnets.begin(), network.subnets.end(),
                   [&](const Subnet& subnet) { return subnet.cidr.contains(address); });
  return found == network.subnets.end() ? nullptr : &*found;
}

bool isProvisioned(const Network& network, Ipv4 address) {
  return network.cidr.contains(address) || subnetOf(network, address);
}

std::vector<Ipv4> controllersOf(const Network& network) {
  return network.controllers.empty() ? std::vector<Ipv4>{network.controller} : network.controllers;
}

bool isController(const Network& network, Ipv4 address) {
  return address == network.controller ||
         std::find(network.controllers.begin(), network.controllers.end(), address) !=
             network.controllers.end();
}

bool putOnHost(Network& network, const std::vector<Ipv4>& addresses_of_host) {
  for (const auto controller : controllersOf(network)) {
    if (std::find(addresses_of_host.begin(), addresses_of_host.end(), controller) ==
        addresses_of_host.end())
      continue;
    network.controller = controller;
    return true;
  }
  return false;
}

std::string agentUrls(const Network& network, std::uint16_t port) {
  auto out = fmt::format("https://{}:{}", network.controller.str(), port);
  for (const auto other : network.controllers)
    if (other != network.controller) out += fmt::format(",https://{}:{}", other.str(), port);
  return out;
}

const BootServer* bootServerOf(const Network& network, const std::string& rack, Ipv4 address) {
  const auto* subnet = subnetOf(network, address);
  const BootServer* of_subnet = nullptr;
  for (const auto& server : network.boot_servers) {
    if (!rack.empty() &&
        std::find(server.racks.begin(), server.racks.end(), rack) != server.racks.end())
      return &server;
    if (subnet && subnet->boot_server == server.name) of_subnet = &server;
  }
  return of_subnet;
}

AddressPlan addressPlan(const Network& network, Ipv4 address) {
  AddressPlan plan{network.cidr.prefix_bits, network.gateway, network.dns, network.image_mirrors};
  const auto* subnet = subnetOf(network, address);
  if (!subnet) return plan;
  plan.prefix_bits = subnet->cidr.prefix_bits;
  plan.gateway = subnet->gateway;
  if (!subnet->dns.empty()) plan.dns = subnet->dns;
  if (!subnet->image_mirrors.empty()) plan.image_mirrors = subnet->image_mirrors;
  return plan;
}

}  // namespace muster::inventory
