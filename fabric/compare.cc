// Declared against found. Pure.
//
// Every found cable that is not declared is Miswired (one of its ends is declared to be elsewhere) or Extra; every declared
// cable that is not found is Missing, unless a missing device or a miswired end already says so. One mistake, one deviation.
#include "fabric/fabric.h"

#include <algorithm>
#include <set>

namespace muster::fabric {

namespace {

std::string text(const Port& port) { return fmt::format("{} port {}", port.node, port.number); }

class Comparison {
 public:
  Comparison(const Topology& declared, const Topology& found) : declared_(declared), found_(found) {
    index(declared, declared_peers_);
    index(found, found_peers_);
  }

  std::vector<Deviation> run() {
    devices();
    for (const auto& link : found_.links) foundLink(link);
    for (const auto& link : declared_.links) declaredLink(link);
    std::stable_sort(out_.begin(), out_.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    return std::move(out_);
  }

 private:
  using Peers = std::map<Port, Port>;

  static void index(const Topology& topology, Peers& peers) {
    for (const auto& link : topology.links) {
      peers[link.a] = link.b;
      peers[link.b] = link.a;
    }
  }
  static std::string peerText(const Peers& peers, const Port& port) {
    auto at = peers.find(port);
    return at == peers.end() ? "no cable" : text(at->second);
  }
  bool declaredDevice(const std::string& name) const { return declared_.devices.count(name) > 0; }
  bool foundDevice(const std::string& name) const { return found_.devices.count(name) > 0; }
  bool isSwitch(const std::string& name) const {
    auto at = declared_.devices.find(name);
    if (at != declared_.devices.end()) return at->second.is_switch;
    auto found = found_.devices.find(name);
    return found != found_.devices.end() && found->second.is_switch;
  }
  Port firstPeer(const Peers& peers, const std::string& device) const {
    auto at = peers.lower_bound({device, 0});
    return at != peers.end() && at->first.node == device ? at->second : Port{};
  }

  void devices() {
    for (const auto& [name, device] : declared_.devices) {
      auto found = found_.devices.find(name);
      if (found == found_.devices.end())
        missingDevice(device);
      else if (found->second.is_switch != device.is_switch)
        out_.push_back({DeviationKind::ExtraNode,
                        {name, 0},
                        device.is_switch ? "a switch" : "a HCA",
                        found->second.is_switch ? "a switch" : "a HCA",
                        fmt::format("something else calls itself {}; give it its own node description", name)});
    }
    for (const auto& [name, device] : found_.devices)
      if (!declaredDevice(name)) {
        auto where = firstPeer(found_peers_, name);
        out_.push_back({DeviationKind::ExtraNode,
                        {name, 0},
                        "nothing",
                        where.node.empty() ? "not cabled" : "at " + text(where),
                        fmt::format("declare {} in the inventory, set its node description right, or take it off the fabric", name)});
      }
  }

  void missingDevice(const Device& device) {
    auto where = firstPeer(declared_peers_, device.name);
    auto place = where.node.empty() ? std::string("not cabled") : "at " + text(where);
    std::string repair = device.is_switch
                             ? fmt::format("check power of switch {} and its cables", device.name)
                             : fmt::format("check that {} is powered and its driver runs, then the cable to {}", device.name, text(where));
    out_.push_back({DeviationKind::MissingNode, {device.name, 0}, place, "nothing", std::move(repair)});
  }

  void foundLink(const Link& link) {
    auto declared = declared_peers_.find(link.a);
    if (declared != declared_peers_.end() && declared->second == link.b) return;
    if (auto end = wrongEnd(link)) return miswired(*end, *end == link.a ? link.b : link.a);
    if (!declaredDevice(link.a.node) || !declaredDevice(link.b.node)) return;  // the extra device says it
    out_.push_back({DeviationKind::ExtraLink, link.a, "no cable", text(link.b),
                    fmt::format("pull the cable between {} and {}, or declare it", text(link.a), text(link.b))});
  }

  /// The end whose cable must move: a HCA's before a switch's, and only one that is declared to be elsewhere.
  std::optional<Port> wrongEnd(const Link& link) const {
    std::optional<Port> end;
    for (const auto& port : {link.a, link.b})
      if (declared_peers_.count(port) && (!end || (isSwitch(end->node) && !isSwitch(port.node)))) end = port;
    return end;
  }

  void miswired(const Port& at, const Port& found_at) {
    explained_.insert(at);
    const auto& target = declared_peers_.at(at);
    // Two cables of which each sits where the other belongs are one job for the technician.
    auto occupant = found_peers_.find(target);
    bool swapped = occupant != found_peers_.end() && declared_peers_.count(found_at) && declared_peers_.at(found_at) == occupant->second;
    auto repair = swapped
                      ? fmt::format("swap the cables at {} and {}: {} belongs to {}", text(found_at), text(target), text(at), text(target))
                      : fmt::format("move the cable of {} from {} to {}", text(at), text(found_at), text(target));
    out_.push_back({DeviationKind::Miswired, at, text(target), text(found_at), std::move(repair)});
  }

  void declaredLink(const Link& link) {
    auto found = found_peers_.find(link.a);
    if (found != found_peers_.end() && found->second == link.b) return widthSpeed(link);
    if (!foundDevice(link.a.node) || !foundDevice(link.b.node)) return;  // the missing device says it
    if (explained_.count(link.a) || explained_.count(link.b)) return;
    out_.push_back({DeviationKind::MissingLink, link.a, text(link.b), peerText(found_peers_, link.a),
                    fmt::format("plug in or replace the cable between {} and {}", text(link.a), text(link.b))});
  }

  void widthSpeed(const Link& link) {
    auto at = std::lower_bound(found_.links.begin(), found_.links.end(), Link{link.a, link.b, ""});
    if (at == found_.links.end() || at->a != link.a || at->width_speed == link.width_speed) return;
    out_.push_back({DeviationKind::WrongWidthSpeed, link.a, link.width_speed, at->width_speed,
                    fmt::format("reseat, then replace the cable between {} and {}; if it stays {}, look at the ports", text(link.a),
                                text(link.b), at->width_speed)});
  }

  const Topology& declared_;
  const Topology& found_;
  Peers declared_peers_, found_peers_;
  std::set<Port> explained_;  // ends of declared cables that a Miswired deviation speaks of
  std::vector<Deviation> out_;
};

}  // namespace

std::string_view toString(DeviationKind kind) {
  switch (kind) {
    case DeviationKind::MissingNode: return "missing-node";
    case DeviationKind::ExtraNode: return "extra-node";
    case DeviationKind::MissingLink: return "missing-link";
    case DeviationKind::ExtraLink: return "extra-link";
    case DeviationKind::Miswired: return "miswired";
    case DeviationKind::WrongWidthSpeed: return "wrong-width-speed";
  }
  return "unknown";
}

std::vector<Deviation> compare(const Topology& declared, const Topology& found) { return Comparison(declared, found).run(); }

}  // namespace muster::fabric
