// SPDX-License-Identifier: Apache-2.0
#include "discovery/classify.h"

#include "inventory/model/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace muster::discovery {
namespace {

bool holds(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::string placesOf(const std::vector<const Machine*>& machines) {
  std::string out;
  for (const auto* machine : machines)
    out += (out.empty() ? "" : ", ") + (machine->bmc.empty() ? machine->id() : machine->bmc);
  return out;
}

void addShared(const std::vector<Machine>& machines, std::vector<Anomaly>& out) {
  std::map<std::string, std::vector<const Machine*>> serials, macs;
  for (const auto& machine : machines) {
    if (isRealSerial(machine.serial)) serials[machine.serial].push_back(&machine);
    for (const auto& mac : machine.macs) macs[mac].push_back(&machine);
  }
  for (const auto& [serial, all] : serials)
    if (all.size() > 1)
      out.push_back({fmt::format("{} machines have the serial {}", all.size(), serial),
                     placesOf(all),
                     "compare the labels: a board was replaced without writing its serial, or one "
                     "BMC has two addresses"});
  for (const auto& [mac, all] : macs)
    if (all.size() > 1)
      out.push_back({fmt::format("{} machines have a NIC with the MAC {}", all.size(), mac),
                     placesOf(all),
                     "only one of them can boot at a time; ask the maker for the NIC's own "
                     "address, or replace it"});
}

void addSwapped(const std::vector<Machine>& machines, const inventory::Cluster& cluster,
                std::vector<Anomaly>& out) {
  for (const auto& machine : machines) {
    const auto by_url = std::find_if(
        cluster.nodes.begin(), cluster.nodes.end(),
        [&](const auto& node) { return !machine.bmc.empty() && node.bmc.url == machine.bmc; });
    const auto* is = nodeOf(machine, cluster);
    if (by_url != cluster.nodes.end() && is && is != &*by_url)
      out.push_back({fmt::format("behind the BMC of {} is {}", by_url->name.str(), is->name.str()),
                     machine.bmc,
                     fmt::format("{} and another machine were swapped, or their BMC cables were: "
                                 "correct the rack, or bmc in the inventory",
                                 is->name.str()),
                     by_url->name});
    else if (by_url != cluster.nodes.end() && !is)
      out.push_back(
          {fmt::format("behind the BMC of {} is a machine with the serial {}, declared is {}",
                       by_url->name.str(), machine.serial, by_url->serial),
           machine.bmc, "find out which machine that is, then correct the rack or the inventory",
           by_url->name});
    else if (is && by_url == cluster.nodes.end() && !machine.bmc.empty() &&
             is->bmc.url.starts_with("https://"))
      out.push_back(
          {fmt::format("{} answers at {}, declared is {}", is->name.str(), machine.bmc,
                       is->bmc.url),
           machine.bmc,
           "its BMC has got another address: give it a fixed one, or correct bmc in the inventory",
           is->name});
  }
}

}  // namespace

const inventory::Node* nodeOf(const Machine& machine, const inventory::Cluster& cluster) {
  for (const auto& node : cluster.nodes)
    if (!node.serial.empty() && node.serial == machine.serial) return &node;
  for (const auto& node : cluster.nodes)
    if (holds(machine.macs, node.mac.str())) return &node;
  for (const auto& node : cluster.nodes) {
    const bool other =
        (!node.serial.empty() && isRealSerial(machine.serial)) || !machine.macs.empty();
    if (!machine.bmc.empty() && node.bmc.url == machine.bmc && !other) return &node;
  }
  return nullptr;
}

std::vector<Anomaly> anomalies(const std::vector<Machine>& machines,
                               const inventory::Cluster& cluster) {
  std::vector<Anomaly> out;
  addShared(machines, out);
  addSwapped(machines, cluster, out);
  return out;
}

}  // namespace muster::discovery
