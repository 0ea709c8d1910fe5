// SPDX-License-Identifier: Apache-2.0
#include "fabric/packet_paths/lost_pairs.h"

#include "fabric/topology/topology.h"

#include <algorithm>
#include <tuple>

namespace muster::fabric {

namespace {

constexpr std::size_t kNamedSwitches = 4;

/// Where packets to one HCA come to from each switch. Each switch is looked at once for each HCA,
/// however many ways lead over it.
class Ways {
 public:
  Ways(const Topology& found, const ForwardingTables& tables) {
    std::map<std::string_view, int> ids;
    for (const auto& [name, device] : found.devices) {
      ids.emplace(name, static_cast<int>(devices_.size()));
      const auto table = device.is_switch ? tables.find(device.guid) : tables.end();
      devices_.push_back(
          {&name, device.is_switch, table == tables.end() ? nullptr : &table->second});
    }
    for (const auto& link : found.links) {
      const int a = ids.at(link.a.node), b = ids.at(link.b.node);
      plug(a, link.a.number, b);
      plug(b, link.b.number, a);
    }
    for (const auto& [name, device] : found.devices) {
      if (device.is_switch) continue;
      const int id = ids.at(name);
      for (const auto& [port, address] : device.addresses)
        if (const int entry = peer(id, port); address.lid > 0 && entry >= 0)
          ends_.push_back({id, entry, static_cast<std::size_t>(address.lid), &name});
    }
  }

  LostPairs run(const Topology& declared) {
    std::map<int, Sources> entries;  // switch → what is cabled to it
    for (auto& end : ends_) {
      end.is_declared = declared.devices.contains(*end.name);
      auto& sources = entries[end.entry];
      ++sources.all;
      sources.declared += end.is_declared;
      (sources.first ? sources.other : sources.first) = &end;
    }
    for (const auto& to : ends_) {
      ++round_;
      for (const auto& [entry, sources] : entries) {
        const bool own = entry == to.entry;
        const auto pairs = to.is_declared ? sources.all - own : sources.declared;
        if (pairs == 0) continue;
        out_.pairs += pairs;
        if (entry == to.device) continue;  // two HCAs with a cable between them
        const auto& end = devices_[static_cast<std::size_t>(follow(entry, to))];
        if (!end.arrived)
          count(end, pairs, sources.first == &to ? sources.other : sources.first, to);
      }
    }
    for (const auto& [key, group] : groups_)
      if (group.lost > out_.there) {
        out_.there = group.lost;
        out_.at = std::get<0>(key), out_.how = std::get<1>(key);
        out_.from = group.from, out_.to = group.to;
      }
    return std::move(out_);
  }

 private:
  struct Device {
    const std::string* name;
    bool is_switch;
    const std::vector<int>* table;
    std::vector<int> peers = {};  // by port
    // Of the present destination:
    int round = 0;
    int next = -1;  ///< the switch at which the way ends
    bool arrived = false;
    WayEnds how = WayEnds::NoEntry;
  };
  struct End {
    int device, entry;
    std::size_t lid;
    const std::string* name;
    bool is_declared = false;
  };
  struct Sources {
    std::size_t all = 0, declared = 0;
    const End *first = nullptr, *other = nullptr;
  };
  struct Group {
    std::size_t lost = 0;
    std::string from, to;
  };

  void plug(int device, int port, int peer) {
    auto& peers = devices_[static_cast<std::size_t>(device)].peers;
    if (peers.size() <= static_cast<std::size_t>(port))
      peers.resize(static_cast<std::size_t>(port) + 1, -1);
    peers[static_cast<std::size_t>(port)] = peer;
  }
  int peer(int device, int port) const {
    const auto& peers = devices_[static_cast<std::size_t>(device)].peers;
    return port < 0 || static_cast<std::size_t>(port) >= peers.size()
               ? -1
               : peers[static_cast<std::size_t>(port)];
  }

  /// The device where a way from this switch ends; whether that is well, it knows itself.
  int follow(int from, const End& to) {
    way_.clear();
    int at = from, end = -1;
    while (end < 0) {
      auto& here = devices_[static_cast<std::size_t>(at)];
      if (here.round == round_) {
        end = here.next >= 0 ? here.next : at;
        if (here.next < 0) here.arrived = false, here.how = WayEnds::InALoop, here.next = at;
        break;
      }
      here.round = round_, here.next = -1, here.arrived = false;
      way_.push_back(at);
      const int port = here.table && to.lid < here.table->size() ? (*here.table)[to.lid] : kNoRoute;
      const int next = port > 0 ? peer(at, port) : -1;
      if (next == to.device) {
        here.arrived = true;
        end = at;
      } else if (next < 0 || !devices_[static_cast<std::size_t>(next)].is_switch) {
        here.how = !here.table ? WayEnds::NoTable
                   : port <= 0 ? WayEnds::NoEntry
                               : WayEnds::AtAnEmptyPort;
        end = at;
      } else {
        at = next;
      }
    }
    for (int one : way_) devices_[static_cast<std::size_t>(one)].next = end;
    return end;
  }

  void count(const Device& end, std::size_t pairs, const End* from, const End& to) {
    out_.lost += pairs;
    auto& group = groups_[{*end.name, end.how}];
    if (group.lost == 0) group.from = from ? *from->name : std::string(), group.to = *to.name;
    group.lost += pairs;
  }

  std::vector<Device> devices_;
  std::vector<End> ends_;
  std::map<std::tuple<std::string, WayEnds>, Group> groups_;
  std::vector<int> way_;
  int round_ = 0;
  LostPairs out_;
};

std::string listed(const std::vector<std::string>& names) {
  const auto shown = std::min(names.size(), kNamedSwitches);
  return fmt::format(
      "{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "");
}

/// Roots that OpenSM does not know as such: it routes as if the tree had fewer.
std::string missingRoots(const RouteContext& context) {
  if (!context.root_guids) return {};
  std::vector<std::string> unseen, unlisted;
  for (const auto& root : rootSwitches(context.declared)) {
    const auto found = context.found.devices.find(root);
    if (found == context.found.devices.end())
      unseen.push_back(root);
    else if (context.root_guids->find(found->second.guid) == std::string::npos)
      unlisted.push_back(root);
  }
  if (!unlisted.empty())
    return fmt::format(
        "root_guids does not list {}: none of its cables was seen where it is declared, so its "
        "GUID is not believed; correct its cables, then apply again",
        listed(unlisted));
  return {};
}

/// An HCA above the leaves that nobody declared: OpenSM takes it for a node at the wrong level.
std::string hcaAboveLeaves(const LostPairs& lost, const RouteContext& context) {
  const auto levels = switchLevels(context.declared);
  const auto switches = switchesOfHcas(context.found);
  for (const auto* hca : {&lost.to, &lost.from}) {
    const auto at = switches.find(*hca);
    if (at == switches.end() || context.declared.devices.contains(*hca)) continue;
    if (const auto level = levels.find(at->second); level != levels.end() && level->second > 1)
      return fmt::format(
          "{} is cabled to {}, which is no leaf, and is not declared: declare its cable with a "
          "role (storage, ufm, gateway), or move it to a leaf",
          *hca, at->second);
  }
  return {};
}

/// ftree leads packets down from a spine only by the cables that it has: an HCA there has no way
/// around a missing one.
std::string onlyWayDown(const LostPairs& lost, const RouteContext& context) {
  const auto levels = switchLevels(context.declared);
  const auto switches = switchesOfHcas(context.found);
  const auto from = switches.find(lost.from), to = switches.find(lost.to);
  if (from == switches.end() || to == switches.end() || from->second != lost.at) return {};
  const auto level = levels.find(lost.at);
  if (level == levels.end() || level->second < 2) return {};
  for (const auto& link : context.found.links)
    if (std::minmax(link.a.node, link.b.node) == std::minmax(lost.at, to->second)) return {};
  return fmt::format(
      "{} is cabled to {}, which is no leaf and has no cable to {} at present: move it to a leaf, "
      "or plan two cables between each leaf and spine",
      lost.from, lost.at, to->second);
}

std::string_view textOf(WayEnds how) {
  switch (how) {
    case WayEnds::NoTable:
      return "which has no forwarding table";
    case WayEnds::NoEntry:
      return "which has no entry for the destination";
    case WayEnds::AtAnEmptyPort:
      return "which sends them to a port without a cable";
    case WayEnds::InALoop:
      break;
  }
  return "where they go round in a loop";
}

}  // namespace

LostPairs lostPairs(const Topology& found, const ForwardingTables& tables,
                    const Topology& declared) {
  return Ways(found, tables).run(declared);
}

std::string toString(const LostPairs& lost) {
  if (lost.lost == 0) return {};
  return fmt::format("{} of {} pairs have no route, such as {} to {}; {} of them end at {}, {}",
                     lost.lost, lost.pairs, lost.from, lost.to, lost.there, lost.at,
                     textOf(lost.how));
}

std::string causeOf(const LostPairs& lost, const RouteContext& context) {
  if (lost.how == WayEnds::NoTable)
    return fmt::format(
        "the subnet manager has not written a table to {}: look for its lost packets "
        "(ibqueryerrors) and restart it where it does not answer",
        lost.at);
  if (auto text = missingRoots(context); !text.empty()) return text;
  if (auto text = hcaAboveLeaves(lost, context); !text.empty()) return text;
  if (auto text = onlyWayDown(lost, context); !text.empty()) return text;
  if (!context.deviations.empty()) return "the cables are not as declared: " + context.deviations;
  if (!context.root_guids)
    return fmt::format(
        "check the root and node lists of the subnet manager: {} must be roots, and HCAs above "
        "the leaves no compute nodes",
        listed(rootSwitches(context.declared)));
  return fmt::format("routing engine {} leaves them out; read opensm.log in OpenSM's folder",
                     context.routing_engine.empty() ? "(unknown)" : context.routing_engine);
}

}  // namespace muster::fabric
