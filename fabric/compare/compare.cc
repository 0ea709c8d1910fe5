// SPDX-License-Identifier: Apache-2.0
// Declared against found. Pure.
//
// Devices first, then the cables of those that are there. A found cable that is not declared and a
// declared one that is not found belong together when they share a port: such chains and rings
// (repair.h) are one job each.
#include "fabric/compare/compare.h"

#include "fabric/compare/repair.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "wire/links/bit_errors.h"

#include <algorithm>
#include <unordered_set>

namespace muster::fabric {

namespace {

using Slot = Wiring::Slot;
constexpr Slot kNone = Wiring::kNone;
constexpr std::size_t kFewHosts = 3;  // so many with wrong names are a job each
constexpr std::size_t kFewLinks = 8;  // so many that are slow are a job each, whatever is declared

class Comparing {
 public:
  Comparing(const Topology& declared, const Topology& found,
            const std::vector<inventory::FabricExclusion>& excused)
      : declared_(declared), found_(found), excused_(excused), w_(declared, found) {}

  Comparison run() {
    collectWrong();
    devices();
    renamed();
    for (Slot slot = 0; slot < w_.slots();
         ++slot)  // chains first: they begin at a port with one kind of cable only
      if ((wanted(slot) == kNone) != (wrong(slot) == kNone)) chainFrom(slot);
    for (Slot slot = 0; slot < w_.slots(); ++slot)
      if (wanted(slot) != kNone && wrong(slot) != kNone) chainFrom(slot);
    countSpeeds();
    for (Slot slot = 0; slot < w_.slots(); ++slot) widthSpeed(slot);
    finish();
    return std::move(out_);
  }

 private:
  Slot wanted(Slot slot) const { return wanted_[static_cast<std::size_t>(slot)]; }
  Slot wrong(Slot slot) const { return wrong_[static_cast<std::size_t>(slot)]; }
  std::string name(Slot slot) const { return toString(w_.port(slot)); }
  bool isExcused(const std::vector<Slot>& ports) const {
    return !excused_.empty() && std::any_of(ports.begin(), ports.end(), [&](Slot slot) {
      return excuses(excused_, w_.port(slot));
    });
  }
  /// Cables of a switch that does not answer cannot be evaluated. An HCA is silent when its cable
  /// is out: that is evaluated.
  bool unknowable(Slot slot) const {
    return !w_.device(slot).is_found &&
           (w_.device(slot).is_switch || w_.device(slot).declared_cables > 1);
  }

  void collectWrong() {
    wanted_.assign(static_cast<std::size_t>(w_.slots()), kNone);
    wrong_ = wanted_;
    for (Slot slot = 0; slot < w_.slots(); ++slot) {
      auto declared = w_.declared(slot).peer, found = w_.found(slot).peer;
      if (declared == found) continue;
      if (declared != kNone && !unknowable(slot) && !unknowable(declared))
        wanted_[static_cast<std::size_t>(slot)] = declared;
      wrong_[static_cast<std::size_t>(slot)] = found;
    }
  }

  void devices() {
    for (const auto& device : w_.devices()) {
      if (device.is_declared && !device.is_found) missing(device);
      if (device.is_found && !device.is_declared) extra(device);
    }
    for (const auto& [name, device] : declared_.devices)
      if (auto found = found_.devices.find(name);
          found != found_.devices.end() && found->second.is_switch != device.is_switch)
        say({DeviationKind::ExtraNode,
             {name, 0},
             device.is_switch ? "a switch" : "an HCA",
             found->second.is_switch ? "a switch" : "an HCA",
             fmt::format("another device has the node description {}; set its node description to "
                         "its own name",
                         name)},
            {});
  }

  Slot firstCable(const Wiring::DeviceInfo& device, bool declared) const {
    for (Slot slot = device.first; slot <= device.first + device.ports; ++slot)
      if (auto peer = declared ? w_.declared(slot).peer : w_.found(slot).peer; peer != kNone)
        return peer;
    return kNone;
  }

  void missing(const Wiring::DeviceInfo& device) {
    auto place = firstCable(device, true);
    if (!device.is_switch && place != kNone && !w_.device(place).is_found)
      return;  // its switch is not seen, which says it
    Deviation one{DeviationKind::MissingNode,
                  {*device.name, 0},
                  place == kNone ? "not cabled" : "at " + name(place),
                  "nothing",
                  {}};
    if (place != kNone && wanted(place) != kNone) {
      missing_hcas_[place] = std::move(one);  // what is to be done depends on the cables around it
      return;
    }
    one.repair =
        device.is_switch || place == kNone
            ? fmt::format("check power of {} and its cables", *device.name)
            : fmt::format("check that {} is powered and its driver runs, then the cable to {}",
                          *device.name, name(place));
    if (!device.is_switch && place != kNone) power_checks_.insert(one.repair);
    say(std::move(one), {});
  }

  void extra(const Wiring::DeviceInfo& device) {
    auto where = firstCable(device, false);
    if (device.elsewhere && where != kNone) return stray(w_.found(where).peer, where);
    say({DeviationKind::ExtraNode,
         {*device.name, 0},
         "nothing",
         where == kNone ? "not cabled" : "at " + name(where),
         fmt::format("declare {} in the inventory, correct its node description, or disconnect it "
                     "from the fabric",
                     *device.name)},
        {});
  }

  /// An HCA that is declared on another fabric: what is to be done depends on the cables around it.
  void stray(Slot own, Slot where) {
    strays_[own] = {railSwapped(own, where) ? DeviationKind::RailSwapped : DeviationKind::Miswired,
                    w_.port(own),
                    "fabric " + *w_.device(own).elsewhere,
                    name(where),
                    {}};
  }
  /// What is to be done where such HCAs are among the ports of a chain; else as it was.
  std::string withStrays(const Chain& chain, const std::vector<Step>& steps,
                         std::string text) const {
    const auto of = [this](Slot slot) {
      return fmt::format("{} belongs to fabric {}", *w_.device(slot).name,
                         *w_.device(slot).elsewhere);
    };
    const auto& first = steps.front();
    if (steps.size() == 1 && first.kind == Move::Kind::MoveEnd && w_.device(first.from).elsewhere &&
        hostOf(*w_.device(first.from).name) == hostOf(*w_.device(first.to).name))
      return fmt::format("swap the cables at {} and {}; {}", name(first.to), name(first.from),
                         of(first.from));
    for (const auto slot : chain.ports)
      if (w_.device(slot).elsewhere)
        text += fmt::format("; {}, its own cable leads there", of(slot));
    return text;
  }

  /// Devices that answer with another name. A host is one job whatever it has of HCAs, and many
  /// hosts are one: then names are given otherwise than the inventory says.
  void renamed() {
    std::map<std::string_view, std::vector<const Wiring::Renamed*>> hosts, other_hcas;
    for (const auto& one : w_.renamed()) {
      const auto host = hostOf(one.declared);
      if (one.how == Wiring::Renamed::How::Exchanged)
        renamed(one,
                fmt::format("{} and {} report each other's name: exchange the node "
                            "descriptions, move no cable",
                            std::min(one.found, one.declared), std::max(one.found, one.declared)));
      else if (one.how == Wiring::Renamed::How::OtherName)
        (hostOf(one.found) == host ? other_hcas : hosts)[host].push_back(&one);
    }
    for (const auto& [host, devices] : other_hcas) {
      const auto& first = *other_hcas.begin()->second.front();
      for (const auto* one : devices)
        renamed(*one, other_hcas.size() > kFewHosts
                          ? fmt::format("{} hosts have HCAs in places of others, such as {}: plug "
                                        "in those that belong there, or correct the node "
                                        "descriptions, or the rails in the inventory",
                                        other_hcas.size(), otherHca(first))
                          : fmt::format("{}: move the cable from {} to {}; if they are one, set "
                                        "its node description to {}",
                                        otherHca(*one), one->found, one->declared, one->declared));
    }
    for (const auto& [host, devices] : hosts) {
      const auto& first =
          hosts.size() > kFewHosts ? *hosts.begin()->second.front() : *devices.front();
      auto text =
          hosts.size() > kFewHosts
              ? fmt::format(
                    "{} hosts answer with names that are not declared, such as {} where {} belongs "
                    "(at {}): set their host names, of which node descriptions are made, or "
                    "correct the inventory; move no cable",
                    hosts.size(), isNameless(first) ? "none" : first.found, first.declared,
                    toString(first.place))
          : devices.size() > 1
              ? fmt::format(
                    "the host at {} and {} more ports answers as {}: set its host name to "
                    "{}; if it is another machine, disconnect it",
                    toString(first.place), devices.size() - 1,
                    isNameless(first) ? "nobody" : hostOf(first.found), host)
              : fmt::format(
                    "the device at {} has {}: set it to {}; if it is another machine, "
                    "disconnect it",
                    toString(first.place), descriptionOf(first), first.declared);
      for (const auto* one : devices) renamed(*one, text);
    }
  }
  /// Several devices without a description have their GUID behind it.
  static bool isNameless(const Wiring::Renamed& one) { return hostOf(one.found).empty(); }
  static std::string descriptionOf(const Wiring::Renamed& one) {
    return isNameless(one) ? "no node description" : "the node description " + one.found;
  }
  /// "gpu001 mlx5_7 is at leaf-su1-r0 port 1, where gpu001 mlx5_0 belongs"
  static std::string otherHca(const Wiring::Renamed& one) {
    return fmt::format("{} is at {}, where {} belongs", one.found, toString(one.place),
                       one.declared);
  }
  void renamed(const Wiring::Renamed& one, std::string repair) {
    say({DeviationKind::WrongDescription,
         {one.declared, 0},
         one.declared,
         fmt::format("{} (at {})", isNameless(one) ? "no node description" : one.found,
                     toString(one.place)),
         std::move(repair)},
        {});
  }

  void chainFrom(Slot start) {
    Chain chain;
    chain.declared_first = wanted(start) != kNone;
    chain.ports = {start};
    bool declared = chain.declared_first;
    for (Slot at = start;; declared = !declared) {
      Slot next = declared ? wanted(at) : wrong(at);
      if (next == kNone) break;
      chain.ports.push_back(next);
      if (next == start) {
        chain.ring = true;
        break;
      }
      at = next;
    }
    auto steps = planMoves(w_, chain);
    excuse_ = steps.size() == 1 && isExcused(chain.ports);
    Repair repair{withStrays(chain, steps, textOf(w_, chain, steps)), {}};
    if (beginsWithPower(w_, chain, steps)) power_checks_.insert(repair.text);
    for (const auto& step : steps) repair.moves.push_back(moveOf(w_, step));
    if (!sharedGuid(chain, repair)) {
      for (const auto& step : steps) cable(step, repair);
      for (auto slot : chain.ports)
        if (auto hca = missing_hcas_.find(slot); hca != missing_hcas_.end())
          sayOf(std::move(hca->second), repair);
      for (auto slot : chain.ports)
        if (auto one = strays_.find(slot); one != strays_.end())
          sayOf(std::move(one->second), repair);
    }
    for (auto slot : chain.ports)
      wanted_[static_cast<std::size_t>(slot)] = wrong_[static_cast<std::size_t>(slot)] = kNone;
    excuse_ = false;
  }

  /// What a step mends.
  void cable(const Step& step, const Repair& repair) {
    if (step.kind == Move::Kind::MoveEnd && w_.device(step.from).elsewhere) return;  // see stray
    if (step.kind == Move::Kind::Plug) {
      if (!w_.device(step.other).is_found || !w_.device(step.to).is_found)
        return;  // the missing device says it
      auto a = std::min(step.other, step.to), b = std::max(step.other, step.to);
      auto there = w_.found(a).peer;
      return sayOf({DeviationKind::MissingLink,
                    w_.port(a),
                    name(b),
                    there == kNone ? "no cable" + left(a, b) : name(there),
                    {}},
                   repair);
    }
    auto a = std::min(step.other, step.from), b = std::max(step.other, step.from);
    if (step.kind == Move::Kind::Pull && (!w_.device(a).is_declared || !w_.device(b).is_declared))
      return;  // the extra device says it
    auto end = wrongEnd(step);
    if (end == kNone)
      return sayOf({DeviationKind::ExtraLink, w_.port(a), "no cable", name(b), {}}, repair);
    auto belongs = w_.declared(end).peer, there = w_.found(end).peer;
    sayOf({railSwapped(end, there) ? DeviationKind::RailSwapped : DeviationKind::Miswired,
           w_.port(end),
           name(belongs),
           name(there),
           {}},
          repair);
  }

  /// The end by which a cable is called: an HCA's before a switch's, and only one that is declared
  /// to be elsewhere.
  Slot wrongEnd(const Step& step) const {
    Slot end = kNone;
    for (auto slot : {step.other, step.from})
      if (w_.declared(slot).peer != kNone &&
          (end == kNone || (w_.device(end).is_switch && !w_.device(slot).is_switch)))
        end = slot;
    return end;
  }
  bool railSwapped(Slot hca, Slot place) const {
    auto belongs_there = w_.declared(place).peer;
    return belongs_there != kNone && !w_.device(hca).is_switch &&
           hostOf(*w_.device(belongs_there).name) == hostOf(*w_.device(hca).name);
  }

  /// " (7 of 8 are left)": a leaf with fewer cables to one spine than to the others slows everybody
  /// on it.
  std::string left(Slot a, Slot b) const {
    if (!w_.device(a).is_switch || !w_.device(b).is_switch) return {};
    int declared = 0, found = 0;
    const auto& device = w_.device(a);
    for (Slot slot = device.first; slot <= device.first + device.ports; ++slot) {
      auto want = w_.declared(slot).peer, have = w_.found(slot).peer;
      declared += want != kNone && &w_.device(want) == &w_.device(b);
      found += have != kNone && &w_.device(have) == &w_.device(b);
    }
    return declared < 2
               ? std::string()
               : fmt::format(" ({} of {} to {} are left)", found, declared, *w_.device(b).name);
  }

  /// Two ports with one GUID: a discovery shows only one of them, at the other's place. Cables are
  /// not to blame.
  bool sharedGuid(const Chain& chain, Repair& repair) {
    for (const auto& guid : found_.shared_guids)
      for (auto slot : chain.ports) {
        auto device = found_.devices.find(*w_.device(slot).name);
        if (device == found_.devices.end()) continue;
        auto address = device->second.addresses.find(w_.port(slot).number);
        if (address == device->second.addresses.end() || address->second.guid != guid) continue;
        std::vector<std::string> claim = {*w_.device(slot).name};
        for (auto other : chain.ports)
          if (auto hca = missing_hcas_.find(other); hca != missing_hcas_.end())
            claim.push_back(hca->second.at.node);
        repair = {fmt::format("{} have the same GUID {}: restore the GUID of one of them (flint, "
                              "or replace the adapter), then compare again",
                              fmt::join(claim, " and "), guid),
                  {}};
        sayOf({DeviationKind::DuplicateGuid, w_.port(slot), "a GUID of its own", guid, {}}, repair);
        return true;
      }
    return false;
  }

  bool isSlow(Slot slot) const {
    const auto &declared = w_.declared(slot), &found = w_.found(slot);
    return declared.peer == found.peer && declared.peer >= slot &&
           declared.link->width_speed != found.link->width_speed;
  }

  bool isFaster(Slot slot) const {
    const auto wanted = links::lineBitsPerSecond(w_.declared(slot).link->width_speed),
               runs = links::lineBitsPerSecond(w_.found(slot).link->width_speed);
    return wanted && runs && *runs > *wanted;
  }

  /// The key of the inventory that says the speed of such a cable.
  std::string_view keyOf(Slot slot) const {
    const auto &here = w_.device(slot), &there = w_.device(w_.declared(slot).peer);
    const auto [low, high] = std::minmax(here.level, there.level);
    if (low == 0 && high == 1 && (!here.is_switch || !there.is_switch)) return "link_node_leaf";
    if (low == 1 && high == 2) return "link_leaf_spine";
    if (low == 2 && high == 3) return "link_spine_core";
    return "link";
  }

  /// Where most links of a declared speed, or of a class of them, run at one other speed, no cable
  /// is to blame.
  void countSpeeds() {
    for (Slot slot = 0; slot < w_.slots(); ++slot) {
      const auto &declared = w_.declared(slot), &found = w_.found(slot);
      if (declared.peer == kNone || declared.peer != found.peer || declared.peer < slot) continue;
      const auto key = keyOf(slot);
      auto& alike = speeds_[declared.link->width_speed];
      auto& in_class = alike.classes[key];
      ++alike.all, ++in_class.all;
      if (!isSlow(slot)) continue;
      ++alike.others[found.link->width_speed], ++in_class.others[found.link->width_speed];
    }
  }

  /// "27 of 32 links that are declared 4xHDR run 4xNDR: …"; empty: it is this cable's matter.
  std::string wrongDeclaration(Slot slot) const {
    const std::string_view wanted = w_.declared(slot).link->width_speed,
                           runs = w_.found(slot).link->width_speed;
    const auto own_key = keyOf(slot);
    const auto& alike = speeds_.at(wanted);
    const auto& in_class = alike.classes.at(own_key);
    const bool whole = alike.areMost(runs);
    if (!whole && !in_class.areMost(runs)) return {};
    const Speeds& counted = whole ? alike : in_class;
    return fmt::format(
        "{} of {} links that are declared {} run {}: correct the fabric's `{}` (or that of these "
        "cables) in the inventory, or the ports' settings; no single cable is to blame",
        counted.others.at(runs), counted.all, wanted, runs,
        whole && alike.classes.size() > 1 ? "link" : own_key);
  }

  void widthSpeed(Slot slot) {
    if (!isSlow(slot)) return;
    const auto &declared = w_.declared(slot), &found = w_.found(slot);
    const auto wrong_declaration = wrongDeclaration(slot);
    excuse_ = isExcused({slot, declared.peer});
    say({DeviationKind::WrongWidthSpeed, w_.port(slot), declared.link->width_speed,
         found.link->width_speed,
         !wrong_declaration.empty() ? wrong_declaration
         : isFaster(slot)
             ? fmt::format("the cable between {} and {} runs {}, faster than declared: correct its "
                           "speed in the inventory (`{}`, the `link` of a cable, or the "
                           "topology_file), or limit the ports",
                           name(slot), name(declared.peer), found.link->width_speed, keyOf(slot))
             : fmt::format("reseat, then replace the cable between {} and {}; if it stays {}, look "
                           "at the ports",
                           name(slot), name(declared.peer), found.link->width_speed)},
        {});
    excuse_ = false;
  }

  void sayOf(Deviation one, const Repair& repair) {
    one.repair = repair.text;
    say(std::move(one), repair.moves);
  }
  void say(Deviation one, std::vector<Move> moves) {
    if (excuse_ || excuses(excused_, one.at)) {
      out_.excluded.push_back(std::move(one));
      return;
    }
    if (repairs_.insert(one.repair).second) out_.repairs.push_back({one.repair, std::move(moves)});
    out_.deviations.push_back(std::move(one));
  }

  /// A host of which nothing is seen is one job, not one for each of its HCAs.
  void joinSilentHosts() {
    std::map<std::string, std::pair<int, int>, std::less<>> hcas;  // host → declared, missing
    for (const auto& [device_name, device] : declared_.devices)
      if (!device.is_switch) ++hcas[std::string(hostOf(device_name))].first;
    for (const auto& one : out_.deviations)
      if (one.kind == DeviationKind::MissingNode) ++hcas[std::string(hostOf(one.at.node))].second;
    std::map<std::string, std::string> joined;  // text before → after
    for (auto& one : out_.deviations) {
      auto host = hcas.find(hostOf(one.at.node));
      if (one.kind != DeviationKind::MissingNode || host == hcas.end() || host->second.first < 2 ||
          host->second.first != host->second.second)
        continue;
      if (!power_checks_.contains(one.repair)) continue;  // its port is taken by another cable
      auto text = fmt::format(
          "check that {} is powered and its driver runs: none of its {} HCAs is seen; then their "
          "cables",
          host->first, host->second.first);
      joined[one.repair] = text;
      one.repair = std::move(text);
    }
    std::vector<Repair> repairs;
    std::map<std::string, std::size_t> at;
    for (auto& repair : out_.repairs) {
      auto after = joined.find(repair.text);
      if (after != joined.end()) repair.text = after->second;
      auto [known, fresh] = at.emplace(repair.text, repairs.size());
      if (fresh)
        repairs.push_back(std::move(repair));
      else
        repairs[known->second].moves.insert(repairs[known->second].moves.end(),
                                            repair.moves.begin(), repair.moves.end());
    }
    out_.repairs = std::move(repairs);
  }

  void finish() {
    joinSilentHosts();
    for (auto* list : {&out_.deviations, &out_.excluded})
      std::stable_sort(list->begin(), list->end(),
                       [](const auto& a, const auto& b) { return a.at < b.at; });
  }

  const Topology& declared_;
  const Topology& found_;
  const std::vector<inventory::FabricExclusion>& excused_;
  const Wiring w_;
  std::vector<Slot> wanted_,
      wrong_;  // by port: the peer of the cable that should be there, of the one that should not
  std::map<Slot, Deviation> missing_hcas_;  // by the switch port where they belong
  std::map<Slot, Deviation> strays_;        // by their port: HCAs of other fabrics
  std::unordered_set<std::string> repairs_;
  std::unordered_set<std::string> power_checks_;  ///< repairs that first ask for a host's power
  struct Speeds {
    std::size_t all = 0;
    std::map<std::string_view, std::size_t> others = {};  ///< by the speed that was found
    bool areMost(std::string_view speed) const {
      const auto count = others.find(speed);
      return count != others.end() && count->second > kFewLinks && 2 * count->second > all;
    }
  };
  struct Alike : Speeds {
    std::map<std::string_view, Speeds> classes = {};  ///< by the key that says their speed
  };
  std::map<std::string_view, Alike> speeds_;  ///< by the declared speed
  bool excuse_ = false;  // what is said now is about a cable that the declaration excuses
  Comparison out_;
};

}  // namespace

std::string_view toString(DeviationKind kind) {
  switch (kind) {
    case DeviationKind::MissingNode:
      return "missing-node";
    case DeviationKind::ExtraNode:
      return "extra-node";
    case DeviationKind::MissingLink:
      return "missing-link";
    case DeviationKind::ExtraLink:
      return "extra-link";
    case DeviationKind::Miswired:
      return "miswired";
    case DeviationKind::RailSwapped:
      return "rail-swapped";
    case DeviationKind::WrongWidthSpeed:
      return "wrong-width-speed";
    case DeviationKind::WrongDescription:
      return "wrong-description";
    case DeviationKind::DuplicateGuid:
      return "duplicate-guid";
    case DeviationKind::WrongFirmware:
      return "wrong-firmware";
  }
  return "unknown";
}

bool excuses(const std::vector<inventory::FabricExclusion>& excused, const Port& port) {
  return std::any_of(excused.begin(), excused.end(), [&](const auto& one) {
    return one.device == port.node && (one.port == 0 || one.port == port.number);
  });
}

Comparison compare(const Topology& declared, const Topology& found,
                   const std::vector<inventory::FabricExclusion>& excused) {
  return Comparing(declared, found, excused).run();
}

}  // namespace muster::fabric
