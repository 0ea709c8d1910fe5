// SPDX-License-Identifier: Apache-2.0
// The ports report of ibnetdiscover (-p): a line for each port, twice for each cable.
//
//   CA    27  1 0x0000000000100027 4x HDR - SW    12  1 0x0000000000200006 ( 'gpu001 mlx5_0' -
//   'leaf' ) SW    12 24 0x0000000000200006 4x SDR                                    'leaf'
//
// A switch is known by its GUID. An HCA's ports carry GUIDs of their own and nothing says which
// belong together but their name and number.
#include "fabric/topology/topology.h"

#include <algorithm>
#include <charconv>

namespace muster::fabric {

namespace {

constexpr std::size_t kMaxLineBytes = 4096;
constexpr int kMaxPortNumber = 254, kMaxLid = 0xffff;
constexpr std::string_view kBetweenNames = "' - '";

std::unexpected<Error> corrupt(int line, std::string text) {
  return fail(ErrorCode::Corrupt, fmt::format("line {}: {}", line, std::move(text)));
}

/// Words off the front.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}
  std::string_view next() {
    const auto from = rest_.find_first_not_of(" \t\r");
    if (from == std::string_view::npos) return rest_ = {};
    rest_.remove_prefix(from);
    const auto word = rest_.substr(0, rest_.find_first_of(" \t\r"));
    rest_.remove_prefix(word.size());
    return word;
  }
  std::string_view rest() const {
    const auto from = rest_.find_first_not_of(" \t\r");
    return from == std::string_view::npos
               ? std::string_view{}
               : rest_.substr(from, rest_.find_last_not_of(" \t\r") - from + 1);
  }

 private:
  std::string_view rest_;
};

template <class T>
std::optional<T> number(std::string_view word, int base = 10) {
  if (base == 16) {
    if (!word.starts_with("0x")) return std::nullopt;
    word.remove_prefix(2);
  }
  T value{};
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (error != std::errc() || end != word.data() + word.size() || word.empty()) return std::nullopt;
  return value;
}

struct ReportedPort {
  bool is_switch = false;
  int lid = 0, port = 0;
  std::string guid, name;
};
using Key = std::pair<std::string, int>;  // GUID, port
struct ReportedCable {
  Key peer;
  std::string width_speed;
  int line = 0;
};

class Parser {
 public:
  Result<Topology> parse(std::string_view text) {
    for (int at = 1; !text.empty(); ++at) {
      const auto end = text.find('\n');
      const auto line = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
      if (line.size() > kMaxLineBytes) return corrupt(at, "longer than any line of a ports report");
      if (Words words(line); !words.rest().empty() && !words.rest().starts_with('#'))
        TRY_OK(parseLine(words, at));
    }
    return assemble();
  }

 private:
  static std::optional<ReportedPort> port(Words& words) {
    const auto kind = words.next();
    if (kind != "CA" && kind != "SW" && kind != "RT") return std::nullopt;
    const auto lid = number<int>(words.next()), port = number<int>(words.next());
    const auto guid = number<std::uint64_t>(words.next(), 16);
    if (!lid || !port || !guid || *lid < 0 || *lid > kMaxLid || *port < 0 || *port > kMaxPortNumber)
      return std::nullopt;
    return ReportedPort{kind == "SW", *lid, *port, fmt::format("0x{:016x}", *guid), {}};
  }

  Result<void> parseLine(Words words, int line) {
    auto own = port(words);
    if (!own) return corrupt(line, "expected: CA|SW LID PORT 0xGUID WIDTH SPEED …");
    const std::string width(words.next()), speed(words.next());
    const auto rest = words.rest();
    if (!rest.starts_with("- ")) {  // no cable
      if (rest.size() < 2 || rest.front() != '\'' || rest.back() != '\'')
        return corrupt(line, "expected behind the speed: - PORT ( 'NAME' - 'NAME' ), or 'NAME'");
      own->name = rest.substr(1, rest.size() - 2);
      return add(*own, line);
    }
    Words behind(rest.substr(2));
    auto peer = port(behind);
    const auto names = behind.rest();
    const auto between = names.find(kBetweenNames);
    if (!peer || !names.starts_with("( '") || !names.ends_with("' )") ||
        between == std::string_view::npos || names.size() < between + kBetweenNames.size() + 3)
      return corrupt(line, "expected behind '-': CA|SW LID PORT 0xGUID ( 'NAME' - 'NAME' )");
    own->name = names.substr(3, between - 3);
    peer->name = names.substr(between + kBetweenNames.size(),
                              names.size() - 3 - between - kBetweenNames.size());
    if (width.find_first_not_of("0123456789x") != std::string::npos || width.size() < 2 ||
        speed.find('?') != std::string::npos)
      return corrupt(line, fmt::format("'{} {}' is no width and speed like 4x HDR", width, speed));
    TRY_OK(add(*own, line));
    if (!cables_
             .emplace(Key{own->guid, own->port},
                      ReportedCable{{peer->guid, peer->port}, width + speed, line})
             .second)
      return corrupt(line, fmt::format("port {} of {} occurs twice", own->port, own->guid));
    return {};
  }

  Result<void> add(const ReportedPort& port, int line) {
    auto [at, fresh] = ports_.emplace(Key{port.guid, port.port}, port);
    if (!fresh && at->second.name != port.name)
      return corrupt(line, fmt::format("{} has two names, '{}' and '{}'", port.guid,
                                       at->second.name, port.name));
    return {};
  }

  /// Each device's name; what carries the same is told apart by a GUID.
  std::map<Key, std::string> names() const {
    std::map<std::string, std::set<std::string>> carriers;
    std::map<std::pair<std::string, int>, int> hca_ports;  // name, port number → how many
    for (const auto& [key, port] : ports_)
      if (!port.is_switch) ++hca_ports[{port.name, port.port}];
    const auto carrier = [&](const ReportedPort& port) {
      return port.is_switch || hca_ports.at({port.name, port.port}) > 1 ? port.guid
                                                                        : std::string("HCA");
    };
    for (const auto& [key, port] : ports_) carriers[port.name].insert(carrier(port));
    std::map<Key, std::string> out;
    for (const auto& [key, port] : ports_)
      out[key] = carriers.at(port.name).size() == 1 ? port.name
                                                    : fmt::format("{} ({})", port.name, port.guid);
    return out;
  }

  Result<Topology> assemble() const {
    Topology topology;
    const auto named = names();
    for (const auto& [key, port] : ports_) {
      auto& device = topology.devices[named.at(key)];
      device.name = named.at(key);
      device.is_switch = port.is_switch;
      device.ports = std::max(device.ports, port.port);
      device.addresses[port.is_switch ? 0 : port.port] = {port.guid, port.lid};
      if (port.is_switch) device.guid = port.guid;
    }
    for (const auto& [key, cable] : cables_) {
      const auto peer = named.find(cable.peer);
      const auto back = cables_.find(cable.peer);
      if (peer == named.end() || back == cables_.end() || back->second.peer != key)
        return corrupt(cable.line, fmt::format("the cable is seen from {} port {} only, not from "
                                               "its other end; hand over the whole report",
                                               named.at(key), key.second));
      Link link{{named.at(key), key.second}, {peer->second, cable.peer.second}, cable.width_speed};
      if (!(link.a < link.b)) continue;
      if (back->second.width_speed != cable.width_speed)
        link.width_speed += "/" + back->second.width_speed;
      topology.links.push_back(std::move(link));
    }
    std::sort(topology.links.begin(), topology.links.end());
    return topology;
  }

  std::map<Key, ReportedPort> ports_;
  std::map<Key, ReportedCable> cables_;
};

}  // namespace

Result<Topology> parsePortReport(std::string_view text) { return Parser().parse(text); }

}  // namespace muster::fabric
