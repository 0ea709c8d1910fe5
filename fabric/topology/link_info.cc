// SPDX-License-Identifier: Apache-2.0
// iblinkinfo's text. A port is known by its LID and number: a switch has one LID for all of its
// ports, each port of an HCA its own.
//
//   Switch: 0x0000000000200000 leaf-su1-r0:
//              2    5[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       3    5[  ]
//              "leaf-su1-r1" (Could be 12X )
// and with -l
//   0x0000000000200000 "  leaf-su1-r0"   2    5[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>
//   0x0000000000200001  3  5[  ] "leaf-su1-r1" ( )
#include "fabric/topology/found_text.h"
#include "fabric/topology/switch_internal.h"
#include "fabric/topology/topology.h"
#include "wire/links/bit_errors.h"

#include <algorithm>
#include <charconv>

namespace muster::fabric {

namespace {

constexpr std::string_view kLine = "==(", kArrow = ")==>";
constexpr std::size_t kMaxTextBytes = 64u << 20, kMaxLineBytes = 4096;
constexpr int kMaxPortNumber = 254;

using Place = std::pair<int, int>;  // LID, port

std::unexpected<Error> corrupt(int line, std::string text) {
  return fail(ErrorCode::Corrupt, fmt::format("line {}: {}", line, std::move(text)));
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r");
  return from == std::string_view::npos
             ? std::string_view{}
             : text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

/// Words off the front.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(trimmed(text)) {}
  std::optional<std::string> guid() {
    if (!rest_.starts_with("0x")) return std::nullopt;
    rest_.remove_prefix(2);
    const auto value = number<std::uint64_t>(16);
    return value ? std::optional(fmt::format("0x{:016x}", *value)) : std::nullopt;
  }
  template <class T = int>
  std::optional<T> number(int base = 10) {
    T value = 0;
    auto [at, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (error != std::errc()) return std::nullopt;
    rest_ = trimmed(rest_.substr(static_cast<std::size_t>(at - rest_.data())));
    return value;
  }
  std::optional<std::string> quoted() {
    if (!rest_.starts_with('"')) return std::nullopt;
    const auto end = rest_.find('"', 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string out(trimmed(rest_.substr(1, end - 1)));
    rest_ = trimmed(rest_.substr(end + 1));
    return out;
  }
  /// Up to the next quoted word.
  void toQuote() { rest_ = rest_.substr(std::min(rest_.find('"'), rest_.size())); }

 private:
  std::string_view rest_;
};

struct RawPort {
  std::string name, guid, peer_name, width_speed;
  Place peer;
  bool in_switch_block = false;
  int block = 0, line = 0;
};

/// " 4X        53.125 Gbps Active/  LinkUp" → "4xHDR"; empty: the link is down. nullopt: it is
/// neither.
std::optional<std::string> widthSpeed(std::string_view state) {
  if (state.find("LinkUp") == std::string_view::npos) return std::string();
  Words words(state);
  const auto width = words.number();
  const auto x = state.find('X'), end = state.find("Gbps");
  if (!width || x == std::string_view::npos || end == std::string_view::npos || end < x)
    return std::nullopt;
  const std::string lane(trimmed(state.substr(x + 1, end - x - 1)));
  const auto speed = links::speedOfLane(std::strtod(lane.c_str(), nullptr));
  return speed.empty() ? std::nullopt : std::optional(fmt::format("{}x{}", *width, speed));
}

class Parser {
 public:
  Result<Topology> parse(std::string_view text) {
    if (text.size() > kMaxTextBytes)
      return fail(ErrorCode::Corrupt,
                  fmt::format("{} bytes are over the bound of {}", text.size(), kMaxTextBytes));
    for (int number = 1; !text.empty(); ++number) {
      const auto end = text.find('\n');
      const auto line = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
      if (line.size() > kMaxLineBytes) return corrupt(number, "longer than any line of iblinkinfo");
      TRY_OK(parseLine(line, number));
    }
    return assemble();
  }

 private:
  Result<void> parseLine(std::string_view line, int number) {
    const auto arrow = line.find(kLine);
    if (arrow == std::string_view::npos) return heading(trimmed(line), number);
    const auto behind = line.find(kArrow, arrow);
    if (behind == std::string_view::npos) return corrupt(number, "no ')==>' behind '==('");
    Words own(line.substr(0, arrow));
    RawPort raw{name_, own.guid().value_or(""), {}, {}, {}, is_switch_, block_, number};
    if (const auto name = own.quoted()) raw.name = *name, raw.block = 0;
    const auto lid = own.number(), port = own.number();
    if (!lid || !port || *port < 0 || *port > kMaxPortNumber || raw.name.empty())
      return corrupt(number, "expected: LID PORT[ ] ==( …");
    const auto up = widthSpeed(line.substr(arrow + kLine.size(), behind - arrow - kLine.size()));
    if (!up)
      return corrupt(number, "no width and speed like '4X 53.125 Gbps' between '==(' and ')==>'");
    if (*lid == 0 && up->empty()) return {};  // a port without a cable, that nobody ever configured
    if (*lid == 0)
      return fail(ErrorCode::Unavailable, fmt::format("line {}: {} has no LID yet; iblinkinfo says "
                                                      "who is who only where a subnet manager runs",
                                                      number, raw.name));
    if (!up->empty()) {
      Words peer(line.substr(behind + kArrow.size()));
      peer.guid();
      const auto peer_lid = peer.number(), peer_port = peer.number();
      peer.toQuote();
      const auto peer_name = peer.quoted();
      if (!peer_lid || !peer_port || !peer_name)
        return corrupt(number, "expected behind the arrow: LID PORT[ ] \"NAME\"");
      raw.peer = {*peer_lid, *peer_port}, raw.peer_name = *peer_name, raw.width_speed = *up;
    }
    if (!ports_.emplace(Place{*lid, *port}, std::move(raw)).second)
      return corrupt(number, fmt::format("LID {} port {} occurs twice", *lid, *port));
    return {};
  }

  /// "Switch: 0x0000000000200000 leaf-su1-r0:", "CA: n1 mlx5_0:"
  Result<void> heading(std::string_view line, int number) {
    if (line.empty() || line.starts_with('#')) return {};
    is_switch_ = line.starts_with("Switch:");
    if (!line.ends_with(':') ||
        (!is_switch_ && !line.starts_with("CA:") && !line.starts_with("RT:")))
      return corrupt(number, fmt::format("'{}' is not iblinkinfo's syntax", line.substr(0, 60)));
    line = trimmed(line.substr(line.find(':') + 1));
    line.remove_suffix(1);
    switch_guid_.clear();
    if (is_switch_) {
      Words words(line);
      switch_guid_ = words.guid().value_or("");
      line = trimmed(line.substr(std::min(line.find(' '), line.size())));
    }
    name_ = std::string(trimmed(line));
    guid_of_block_[++block_] = switch_guid_;
    return {};
  }

  bool isSwitch(int lid) const {
    const auto first = ports_.lower_bound({lid, 0});
    return first->second.in_switch_block ||
           std::next(first) != ports_.upper_bound({lid, kMaxPortNumber + 1});
  }

  /// What carries a name: a switch is its LID, an HCA all ports of one heading, or (with -l) of one
  /// name.
  std::string keyOf(const Place& place, const RawPort& port) const {
    if (isSwitch(place.first)) return fmt::format("S{}", place.first);
    return port.block ? fmt::format("B{}", port.block) : "N" + port.name;
  }

  Result<Topology> assemble() {
    if (ports_.empty())
      return fail(ErrorCode::Corrupt, "this is not iblinkinfo's output: no line with '==('");
    std::map<std::string, std::set<std::string>> keys;  // name → who carries it
    for (const auto& [place, port] : ports_) keys[port.name].insert(keyOf(place, port));
    Topology topology;
    std::map<Place, Port> named;
    for (const auto& [place, port] : ports_) {
      const auto name = keys.at(port.name).size() == 1
                            ? port.name
                            : fmt::format("{} ({})", port.name, keyOf(place, port));
      auto& device = topology.devices[name];
      device.name = name, device.is_switch = isSwitch(place.first),
      device.ports = std::max(device.ports, place.second);
      const auto block = guid_of_block_.find(port.block);
      const auto guid = device.is_switch && block != guid_of_block_.end() && !block->second.empty()
                            ? block->second
                            : port.guid;
      device.addresses[device.is_switch ? 0 : place.second] = {guid, place.first};
      if (device.is_switch) device.guid = guid;
      named[place] = {name, place.second};
    }
    TRY_OK(wire(topology, named));
    return topology;
  }

  Result<void> wire(Topology& topology, const std::map<Place, Port>& named) const {
    for (const auto& [place, port] : ports_) {
      if (port.width_speed.empty()) continue;
      const auto back = ports_.find(port.peer);
      if (back == ports_.end())
        return corrupt(port.line,
                       fmt::format("cable to LID {} port {}, which is not in the list; hand over "
                                   "the whole output, without --switches-only, "
                                   "--cas-only, --down or grep",
                                   port.peer.first, port.peer.second));
      if (back->second.peer != place || back->second.width_speed.empty())
        return corrupt(port.line,
                       fmt::format("the cable is seen from {} only, not from its other end",
                                   toString(named.at(place))));
      Link link{named.at(place), named.at(port.peer), port.width_speed};
      if (!(link.a < link.b)) continue;
      if (back->second.width_speed != port.width_speed)
        link.width_speed += "/" + back->second.width_speed;
      topology.links.push_back(std::move(link));
    }
    std::sort(topology.links.begin(), topology.links.end());
    return {};
  }

  std::map<Place, RawPort> ports_;
  std::map<int, std::string> guid_of_block_;
  std::string name_, switch_guid_;
  bool is_switch_ = false;
  int block_ = 0;
};

/// Of a text that tells no device ids.
Result<Topology> withoutTheirParts(Result<Topology> read) {
  if (!read) return read;
  CalledAggregationNodes called;
  for (const auto& [name, device] : read->devices)
    if (!device.is_switch && isCalledAggregationNode(name)) called.emplace(name, std::nullopt);
  return withoutSwitchParts(std::move(*read), called);
}

}  // namespace

Result<Topology> parseIblinkinfo(std::string_view text) { return Parser().parse(text); }

Result<Topology> parseFound(std::string_view text) {
  TRY(found, readFoundText(text));
  switch (found.form) {
    case FoundForm::Iblinkinfo:
      return withoutTheirParts(parseIblinkinfo(found.text));
    case FoundForm::PortReport:
      return withoutTheirParts(parsePortReport(found.text));
    case FoundForm::Ibnetdiscover:
      break;
  }
  return parseIbnetdiscover(found.text);
}

}  // namespace muster::fabric
