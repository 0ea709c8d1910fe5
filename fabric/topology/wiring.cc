// SPDX-License-Identifier: Apache-2.0
#include "fabric/topology/wiring.h"

#include <algorithm>

namespace muster::fabric {

namespace {

constexpr int kFewestCablesOfAnExchange = 2;  // one cable at the wrong place is a cable, not a name

std::string_view hcaOf(std::string_view device) { return device.substr(hostOf(device).size()); }

/// What the parser puts behind a description that several devices carry.
bool isSharedName(std::string_view found, std::string_view name) {
  return found.starts_with(name) && found.substr(name.size()).starts_with(" (0x");
}

}  // namespace

Wiring::Wiring(const Topology& declared, const Topology& found) {
  ids_.reserve(declared.devices.size() + found.devices.size());
  number(declared, true);
  number(found, false);
  for (auto& device : devices_)
    if (const auto other = declared.elsewhere.find(*device.name);
        other != declared.elsewhere.end() && !device.is_declared && !device.is_switch)
      device.elsewhere = &other->second;
  for (auto& device : devices_) {
    device.first = static_cast<Slot>(device_of_.size());
    device_of_.resize(device_of_.size() + static_cast<std::size_t>(device.ports) + 1,
                      ids_.at(*device.name));
  }
  declared_.resize(device_of_.size());
  found_.resize(device_of_.size());
  wire(declared, declared_);
  for (Slot slot = 0; slot < slots(); ++slot)
    if (declared_[static_cast<std::size_t>(slot)].peer != kNone)
      ++devices_[static_cast<std::size_t>(device_of_[static_cast<std::size_t>(slot)])]
            .declared_cables;
  wire(found, found_);
  tellDevices(found);
  tellHosts(found);
  if (renamed_.empty()) return;
  found_.assign(found_.size(), {});
  wire(found, found_);
}

void Wiring::number(const Topology& topology, bool is_declared) {
  for (const auto& [name, device] : topology.devices) {
    auto [at, fresh] = ids_.emplace(name, static_cast<int>(devices_.size()));
    if (fresh) devices_.push_back({&name, 0, 0, device.is_switch, false, false, 0, 0, nullptr});
    auto& known = devices_[static_cast<std::size_t>(at->second)];
    known.ports = std::max(known.ports, device.ports);
    if (is_declared) known.level = device.level;
    (is_declared ? known.is_declared : known.is_found) = true;
  }
  for (const auto& link : topology.links)
    for (const auto* end : {&link.a, &link.b}) {
      auto& known = devices_[static_cast<std::size_t>(ids_.at(end->node))];
      known.ports = std::max(known.ports, end->number);
    }
}

void Wiring::wire(const Topology& topology, std::vector<Ends>& into) const {
  for (const auto& link : topology.links) {
    auto a = slot(link.a), b = slot(link.b);
    if (a == kNone || b == kNone) continue;  // a renamed device with more ports than it should have
    auto &from = into[static_cast<std::size_t>(a)], &to = into[static_cast<std::size_t>(b)];
    if (from.peer != kNone || to.peer != kNone)
      continue;  // no port has two cables; chains rely on it
    from = {b, &link};
    to = {a, &link};
  }
}

Wiring::Slot Wiring::slot(const Port& port) const {
  auto id = ids_.find(port.node);
  if (id == ids_.end()) return kNone;
  const auto& device = devices_[static_cast<std::size_t>(id->second)];
  return port.number < 0 || port.number > device.ports ? kNone : device.first + port.number;
}

const Wiring::DeviceInfo* Wiring::expectedAt(Slot own, Slot peer) const {
  auto expected = declared(peer).peer;
  if (expected == kNone || expected - device(expected).first != own - device(own).first)
    return nullptr;
  return device(expected).is_switch == device(own).is_switch ? &device(expected) : nullptr;
}

/// Whether any cable of its host is not where it was declared: most hosts are, and need not be
/// looked at.
bool Wiring::exchangePossible(Slot slot) const {
  const auto& info = device(slot);
  for (Slot at = info.first; at <= info.first + info.ports; ++at)
    if (found(at).peer != kNone && found(at).peer == declared(at).peer) return false;
  return true;
}

/// A name that nobody declared, at the place of a device that is missing: most of its cables must
/// say so.
void Wiring::tellDevices(const Topology& found) {
  struct Evidence {
    std::map<int, int> votes;  // declared device → cables
    int cables = 0;
    Port place;
  };
  std::map<int, Evidence> undeclared;
  for (const auto& link : found.links)
    for (auto [own, peer] :
         {std::pair(slot(link.a), slot(link.b)), std::pair(slot(link.b), slot(link.a))}) {
      if (device(own).is_declared || device(own).elsewhere) continue;
      auto& evidence = undeclared[idOf(*device(own).name)];
      ++evidence.cables;
      const auto* expected = expectedAt(own, peer);
      if (!expected || expected->is_found) continue;
      ++evidence.votes[idOf(*expected->name)];
      evidence.place = port(peer);
    }
  for (const auto& [id, evidence] : undeclared)
    for (auto [declared_id, votes] : evidence.votes) {
      auto& device = devices_[static_cast<std::size_t>(id)];
      auto& declared_device = devices_[static_cast<std::size_t>(declared_id)];
      if (2 * votes <= evidence.cables || declared_device.is_found) continue;
      declared_device.is_found = true;
      device.is_found = false;
      ids_[*device.name] = declared_id;
      using How = Renamed::How;
      renamed_.push_back(
          {*declared_device.name, *device.name, evidence.place,
           isSharedName(*device.name, *declared_device.name) ? How::SharedName : How::OtherName});
    }
}

/// Two declared hosts (or switches) that answer with each other's name: all their cables say so,
/// and there are several. Where leaves are exchanged their hosts seem to be as well; the one with
/// the most cables is believed, and what hangs at it is explained by it.
void Wiring::tellHosts(const Topology& found) {
  struct Seen {
    int cables = 0;
    Port place;
    std::set<std::string, std::less<>> peers;
  };
  std::map<std::string, Seen> seen;
  std::map<std::pair<std::string, std::string>, int> votes;  // found, declared → cables that say so
  for (const auto& link : found.links)
    for (auto [own, peer] :
         {std::pair(slot(link.a), slot(link.b)), std::pair(slot(link.b), slot(link.a))}) {
      if (own == kNone || peer == kNone || !device(own).is_declared || !exchangePossible(own))
        continue;
      const std::string host(hostOf(*device(own).name));
      auto& [cables, place, peers] = seen[host];
      ++cables;
      place = port(peer);
      peers.emplace(hostOf(*device(peer).name));
      const auto* expected = expectedAt(own, peer);
      if (expected && hcaOf(*expected->name) == hcaOf(*device(own).name))
        ++votes[{host, std::string(hostOf(*expected->name))}];
    }
  auto all_say = [&](const std::string& one, const std::string& other) {
    auto vote = votes.find({one, other});
    return vote != votes.end() && vote->second >= kFewestCablesOfAnExchange &&
           vote->second == seen[one].cables;
  };
  std::vector<std::pair<int, std::pair<std::string, std::string>>> exchanges;
  for (const auto& [pair, count] : votes)
    if (pair.first < pair.second && all_say(pair.first, pair.second) &&
        all_say(pair.second, pair.first))
      exchanges.emplace_back(-count, pair);
  std::sort(exchanges.begin(), exchanges.end());
  std::set<std::string, std::less<>> explained;
  Ids exchanged;
  for (const auto& [weight, pair] : exchanges) {
    if (explained.count(pair.first) || explained.count(pair.second)) continue;
    for (auto [one, other] :
         {std::pair(pair.first, pair.second), std::pair(pair.second, pair.first)}) {
      for (auto at = found.devices.lower_bound(one);
           at != found.devices.end() && at->first.starts_with(one); ++at)
        if (auto to = found.devices.find(other + std::string(hcaOf(at->first)));
            hostOf(at->first) == one && to != found.devices.end())
          exchanged[at->first] = ids_.at(to->first);
      renamed_.push_back({other, one, seen[one].place, Renamed::How::Exchanged});
      explained.merge(std::set<std::string, std::less<>>(seen[one].peers));
    }
  }
  for (auto [name, id] : exchanged) ids_[name] = id;
}

}  // namespace muster::fabric
