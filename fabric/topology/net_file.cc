// SPDX-License-Identifier: Apache-2.0
// ibnetdiscover's text, both ways: written as a net file for ibsim, read as what was found.
//
//   Ca  1 "H-0000000000100002"     # "gpu001 mlx5_0"
//   [1](100003)  "S-0000000000200000"[1]     # lid 4 lmc 0 "leaf-su1-r0" lid 2 4xHDR
//   Switch 64 "S-0000000000200000" # "leaf-su1-r0" base port 0 lid 2 lmc 0
//   [1]  "H-0000000000100002"[1](100003)     # "gpu001 mlx5_0" lid 4 4xHDR
//
// A link is listed once from each of its ends; one that only one end knows is no sound discovery.
#include "fabric/fabric.h"
#include "fabric/topology/switch_internal.h"
#include "fabric/topology/topology.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace muster::fabric {

namespace {

constexpr std::size_t kMaxTextBytes = 256u << 20;
constexpr std::size_t kMaxLineBytes = 4096;
constexpr int kMaxPortNumber = 254;

/// Reads one line from left to right; every take… answers whether it was there.
class Scanner {
 public:
  explicit Scanner(std::string_view rest) : rest_(rest) {}
  void skipSpace() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t'))
      rest_.remove_prefix(1);
  }
  bool take(std::string_view text) {
    skipSpace();
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::optional<std::uint64_t> number(int base) {
    skipSpace();
    std::uint64_t value = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  std::optional<std::string> quoted() {
    if (!take("\"")) return std::nullopt;
    auto end = rest_.find('"');
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::optional<int> port() {  // "[12]"
    if (!take("[")) return std::nullopt;
    auto value = number(10);
    if (!value || *value > kMaxPortNumber || !take("]")) return std::nullopt;
    return static_cast<int>(*value);
  }
  std::optional<std::string> guidInBrackets() {  // "(100003)"
    if (!take("(")) return std::nullopt;
    auto value = number(16);
    if (!value || !take(")")) return std::nullopt;
    return fmt::format("0x{:016x}", *value);
  }
  bool skipTo(std::string_view text) {
    auto at = rest_.find(text);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + text.size());
    return true;
  }
  /// The last word, less what `ibnetdiscover -f` adds ("s=4 w=2 v=4").
  std::string speedWord() const {
    auto text = rest_;
    while (true) {
      text = text.substr(0, text.find_last_not_of(" \t\r") + 1);
      const auto word = text.substr(text.find_last_of(" \t\"") + 1);
      if (word.size() < 3 || word[1] != '=') return std::string(word);
      text.remove_suffix(word.size());
    }
  }
  /// "[ext 7]" of `ibnetdiscover -g`: the number on the front of a chassis.
  void skipExternalPort() {
    if (take("[ext ") && number(10)) take("]");
  }

 private:
  std::string_view rest_;
};

struct RawPort {
  std::string peer_id;
  int peer_port = 0;
  std::string width_speed;
  int line = 0;
};
struct RawDevice {
  Device device;
  std::map<int, RawPort> ports;
  int line = 0;
  std::optional<std::uint64_t> device_id = {};
};

std::unexpected<Error> corrupt(int line, std::string text) {
  return fail(Error(ErrorCode::Corrupt, fmt::format("line {}: {}", line, std::move(text))));
}

bool isWidthSpeed(std::string_view word) {  // "4xHDR", "12xQDR"
  auto x = word.find('x');
  return x != 0 && x != std::string_view::npos && x + 1 < word.size() &&
         word.find_first_not_of("0123456789") == x;
}

class Parser {
 public:
  Result<Topology> parse(std::string_view text) {
    if (text.size() > kMaxTextBytes)
      return fail(ErrorCode::Corrupt, fmt::format("a topology of {} bytes is over the bound of {}",
                                                  text.size(), kMaxTextBytes));
    for (int number = 1; !text.empty(); ++number) {
      auto end = text.find('\n');
      auto line = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
      TRY_OK(parseLine(line, number));
    }
    return assemble();
  }

 private:
  Result<void> parseLine(std::string_view line, int number) {
    if (line.size() > kMaxLineBytes)
      return corrupt(number, "longer than any line of ibnetdiscover");
    Scanner scan(line);
    scan.skipSpace();
    if (line.find_first_not_of(" \t\r") == std::string_view::npos || scan.take("#")) return {};
    for (auto key : {"vendid=", "sysimgguid=", "rtguid=", "DDR", "Chassis ", "Non-Chassis Nodes"})
      if (scan.take(key)) return {};
    if (scan.take("devid=0x")) {
      device_id_ = scan.number(16);
      return {};
    }
    for (auto key : {"switchguid=0x", "caguid=0x"})
      if (scan.take(key)) return nodeGuid(scan, number);
    if (scan.take("Switch")) return node(scan, number, true);
    if (scan.take("Ca") || scan.take("Hca") || scan.take("Rt")) return node(scan, number, false);
    if (line.substr(line.find_first_not_of(" \t"), 1) == "[") return port(scan, number);
    return corrupt(number, fmt::format("'{}' is not ibnetdiscover's syntax", line.substr(0, 60)));
  }

  Result<void> nodeGuid(Scanner scan, int number) {
    auto value = scan.number(16);
    if (!value) return corrupt(number, "no GUID after '='");
    guid_ = fmt::format("0x{:016x}", *value);
    port0_guid_ = scan.guidInBrackets().value_or(guid_);
    return {};
  }

  Result<void> node(Scanner scan, int number, bool is_switch) {
    auto ports = scan.number(10);
    auto id = scan.quoted();
    if (!ports || *ports > kMaxPortNumber || !id)
      return corrupt(number, "expected: Switch|Ca PORTS \"ID\" # \"NAME\"");
    auto name = scan.take("#") ? scan.quoted() : std::nullopt;
    RawDevice raw{{name.value_or(*id), is_switch, static_cast<int>(*ports), guid_, {}}, {}, number};
    if (is_switch) {
      auto lid = scan.skipTo(" lid ") ? scan.number(10) : std::nullopt;
      raw.device.addresses[0] = {port0_guid_, static_cast<int>(lid.value_or(0))};
    }
    guid_.clear();
    port0_guid_.clear();
    raw.device_id = std::exchange(device_id_, std::nullopt);
    auto [at, fresh] = devices_.emplace(*id, std::move(raw));
    if (!fresh)
      return corrupt(
          number,
          fmt::format("the id \"{}\" occurs twice (first in line {}); two devices with one GUID?",
                      *id, at->second.line));
    current_ = &at->second;
    return {};
  }

  Result<void> port(Scanner scan, int number) {
    if (!current_) return corrupt(number, "a port before any device");
    auto own = scan.port();
    scan.skipExternalPort();
    auto own_guid = scan.guidInBrackets();
    auto peer = scan.quoted();
    auto peer_port = scan.port();
    if (!own || !peer || !peer_port) return corrupt(number, "expected: [PORT] \"ID\"[PORT] # …");
    if (!scan.skipTo("#")) return corrupt(number, "no width and speed behind '#'");
    auto width_speed = scan.speedWord();
    if (!isWidthSpeed(width_speed))
      return corrupt(number, fmt::format("'{}' is no width and speed like 4xHDR; an ibnetdiscover "
                                         "that prints none is too old",
                                         width_speed));
    if (!current_->device.is_switch) {
      auto lid = scan.take("lid ") ? scan.number(10) : std::nullopt;
      current_->device.addresses[*own] = {own_guid.value_or(""), static_cast<int>(lid.value_or(0))};
    }
    if (!current_->ports.emplace(*own, RawPort{*peer, *peer_port, width_speed, number}).second)
      return corrupt(number, fmt::format("port {} occurs twice", *own));
    return {};
  }

  /// Ids → names. A description that several devices carry names none of them, so each gets its
  /// GUID behind it.
  std::map<std::string, std::string> nameDevices() const {
    std::map<std::string, int> uses;
    for (const auto& [id, raw] : devices_) ++uses[raw.device.name];
    std::map<std::string, std::string> names;
    for (const auto& [id, raw] : devices_)
      names[id] = uses[raw.device.name] == 1
                      ? raw.device.name
                      : fmt::format("{} ({})", raw.device.name,
                                    raw.device.guid.empty() ? id : raw.device.guid);
    return names;
  }

  Result<Topology> assemble() {
    if (devices_.empty())
      return fail(ErrorCode::Corrupt, "the text holds no device, so it is no answer");
    Topology topology;
    auto names = nameDevices();
    for (auto& [id, raw] : devices_) {
      raw.device.name = names[id];
      topology.devices.emplace(names[id], raw.device);
    }
    for (const auto& [id, raw] : devices_)
      for (const auto& [number, port] : raw.ports) {
        auto peer = devices_.find(port.peer_id);
        if (peer == devices_.end())
          return corrupt(port.line,
                         fmt::format("cable to \"{}\", which is not in the list", port.peer_id));
        auto back = peer->second.ports.find(port.peer_port);
        if (back == peer->second.ports.end() || back->second.peer_id != id ||
            back->second.peer_port != number)
          return corrupt(
              port.line,
              fmt::format("the cable is seen from {} port {} only, not from its other end",
                          names[id], number));
        Link link{{names[id], number}, {names[port.peer_id], port.peer_port}, port.width_speed};
        if (!(link.a < link.b)) continue;
        if (back->second.width_speed != port.width_speed)
          link.width_speed += "/" + back->second.width_speed;
        topology.links.push_back(std::move(link));
      }
    std::sort(topology.links.begin(), topology.links.end());
    CalledAggregationNodes called;
    for (const auto& [id, raw] : devices_)
      if (!raw.device.is_switch && isCalledAggregationNode(raw.device.name))
        called.emplace(raw.device.name, raw.device_id);
    return withoutSwitchParts(std::move(topology), called);
  }

  std::map<std::string, RawDevice> devices_;
  RawDevice* current_ = nullptr;
  std::string guid_, port0_guid_;
  std::optional<std::uint64_t> device_id_;
};

using Wires = std::map<Port, std::pair<Port, std::string>>;  // port → peer, width and speed

void writeDevice(std::string& out, const Device& device, const Wires& wires) {
  out += fmt::format("{}\t{} \"{}\"\t\t# \"{}\"{}\n", device.is_switch ? "Switch" : "Hca",
                     device.ports, ibsimNodeId(device.name), device.name,
                     device.is_switch ? " base port 0 lid 0 lmc 0" : "");
  for (auto at = wires.lower_bound({device.name, 0});
       at != wires.end() && at->first.node == device.name; ++at) {
    const auto& [peer, width_speed] = at->second;
    out += fmt::format("[{}]\t\"{}\"[{}]\t\t# {}\"{}\" lid 0 {}\n", at->first.number,
                       ibsimNodeId(peer.node), peer.number, device.is_switch ? "" : "lid 0 lmc 0 ",
                       peer.node, width_speed);
  }
  out += "\n";
}

}  // namespace

std::string toIbsimNet(const Topology& topology) {
  Wires wires;
  for (const auto& link : topology.links) {
    wires[link.a] = {link.b, link.width_speed};
    wires[link.b] = {link.a, link.width_speed};
  }
  std::string out;
  // The first device is where clients attach by default: the controller's HCA when there is one, a
  // HCA in any case.
  auto controller =
      std::find_if(topology.devices.begin(), topology.devices.end(),
                   [](const auto& entry) { return entry.first.starts_with("controller "); });
  if (controller != topology.devices.end()) writeDevice(out, controller->second, wires);
  for (bool switches : {false, true})
    for (const auto& [name, device] : topology.devices)
      if (device.is_switch == switches &&
          (controller == topology.devices.end() || name != controller->first))
        writeDevice(out, device, wires);
  return out;
}

Result<Topology> parseIbnetdiscover(std::string_view text) { return Parser().parse(text); }

}  // namespace muster::fabric
