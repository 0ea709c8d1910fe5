// SPDX-License-Identifier: Apache-2.0
#include "fabric/packet_paths/routes.h"

#include "fabric/topology/topology.h"

namespace muster::fabric {
namespace {

constexpr int kMostHops = 64;

}  // namespace

Routes::Routes(const Topology& found, const ForwardingTables& tables) : kept_(tables) {
  std::unordered_map<std::string_view, int> ids;
  std::vector<const Device*> devices;
  for (const auto& [name, device] : found.devices) {
    ids.emplace(name, static_cast<int>(devices.size()));
    devices.push_back(&device);
    const auto table = device.is_switch ? kept_.find(device.guid) : kept_.end();
    tables_.push_back(table == kept_.end() ? nullptr : &table->second);
  }
  legs_.resize(devices.size());
  const auto plug = [this](int device, int port, Leg leg) {
    auto& legs = legs_[static_cast<std::size_t>(device)];
    if (legs.size() <= static_cast<std::size_t>(port))
      legs.resize(static_cast<std::size_t>(port) + 1);
    legs[static_cast<std::size_t>(port)] = leg;
  };
  for (const auto& link : found.links) {
    const int a = ids.at(link.a.node), b = ids.at(link.b.node);
    int cable = -1;
    if (devices[static_cast<std::size_t>(a)]->is_switch &&
        devices[static_cast<std::size_t>(b)]->is_switch) {
      cable = static_cast<int>(cables_.size());
      cables_.push_back(link);
    }
    plug(a, link.a.number, {b, cable});
    plug(b, link.b.number, {a, cable});
  }
  for (std::size_t id = 0; id < devices.size(); ++id) {
    if (devices[id]->is_switch) continue;
    for (const auto& [port, address] : devices[id]->addresses)
      if (const auto at = static_cast<std::size_t>(port);
          address.lid > 0 && at < legs_[id].size() && legs_[id][at].device >= 0)
        hcas_.try_emplace(devices[id]->name,
                          Hca{static_cast<int>(id), legs_[id][at].device, address.lid});
  }
}

std::optional<int> Routes::entry(std::string_view hca) const {
  const auto found = hcas_.find(std::string(hca));
  return found == hcas_.end() ? std::nullopt : std::optional(found->second.entry);
}

std::optional<std::vector<int>> Routes::from(int entry, std::string_view hca) const {
  const auto found = hcas_.find(std::string(hca));
  if (found == hcas_.end() || entry < 0 || static_cast<std::size_t>(entry) >= tables_.size())
    return std::nullopt;
  const auto lid = static_cast<std::size_t>(found->second.lid);
  std::vector<int> way;
  for (int at = entry, hop = 0; hop < kMostHops; ++hop) {
    const auto here = static_cast<std::size_t>(at);
    const auto* table = tables_[here];
    const int port = table && lid < table->size() ? (*table)[lid] : kNoRoute;
    if (port < 0 || static_cast<std::size_t>(port) >= legs_[here].size()) return std::nullopt;
    const auto leg = legs_[here][static_cast<std::size_t>(port)];
    if (leg.device < 0) return std::nullopt;
    if (leg.device == found->second.device) return way;
    if (leg.cable < 0) return std::nullopt;  // another HCA: the table is wrong
    way.push_back(leg.cable);
    at = leg.device;
  }
  return std::nullopt;
}

std::string toString(const Link& cable) {
  return fmt::format("{} - {}", toString(cable.a), toString(cable.b));
}

}  // namespace muster::fabric
