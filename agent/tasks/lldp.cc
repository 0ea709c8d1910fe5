// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/lldp.h"

#include "base/io/files.h"
#include "base/json_input.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint16_t kEtherType = 0x88cc;
constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kFrameBytes = 9'216;
constexpr std::array<unsigned char, 6> kNearestBridge = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e};
enum Tlv { kEnd = 0, kChassis = 1, kPort = 2, kTtl = 3, kPortDescription = 4, kSystemName = 5 };
constexpr int kChassisMac = 4, kPortMac = 3;
constexpr std::size_t kMaxMacBytes =
    32;  ///< of an id that says that it is a MAC: 6 of Ethernet, 20 of InfiniBand

std::uint8_t byteAt(std::string_view data, std::size_t at) {
  return static_cast<std::uint8_t>(data[at]);
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, wire::kMaxNameBytes))
    if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f) out += c;
  return out;
}

/// An id with its subtype in front: a MAC as one, everything else as text.
std::string idText(std::string_view value, int mac_subtype) {
  if (value.empty()) return {};
  if (byteAt(value, 0) != mac_subtype) return printable(value.substr(1));
  std::string out;
  for (const char c : value.substr(1, kMaxMacBytes))
    out += fmt::format("{}{:02x}", out.empty() ? "" : ":", static_cast<unsigned char>(c));
  return out;
}

/// Printable as a frame's own words are: half a letter at the cut would grow on its way to the
/// controller, past what that takes.
std::string textOf(const json& value, const char* key) {
  const auto found = value.is_object() ? value.find(key) : value.end();
  if (!value.is_object() || found == value.end()) return {};
  if (found->is_string()) return printable(found->get_ref<const std::string&>());
  return found->is_object() ? textOf(*found, "value") : std::string();
}

/// "1 day, 02:03:04" in seconds; the largest number when it is something else. Nine digits each:
/// the sum cannot overflow.
long ageOf(const std::string& text) {
  long days = 0, hours = 0, minutes = 0, seconds = 0;
  if (std::sscanf(text.c_str(), "%9ld day%*[s, ]%9ld:%9ld:%9ld", &days, &hours, &minutes,
                  &seconds) != 4)
    return std::numeric_limits<long>::max();
  return ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
}

wire::Neighbour neighbourOf(const std::string& nic, const json& entry) {
  wire::Neighbour out;
  out.nic = nic;
  const auto chassis = entry.value("chassis", json::object());
  if (chassis.is_object()) {
    const bool unnamed = chassis.contains("id");
    out.switch_name = unnamed           ? textOf(chassis, "id")
                      : chassis.empty() ? std::string()
                                        : printable(chassis.begin().key());
  }
  const auto port = entry.value("port", json::object());
  const auto id = port.is_object() && port.contains("id") ? port["id"] : json::object();
  out.port = textOf(id, "type") == "mac" && !textOf(port, "descr").empty() ? textOf(port, "descr")
                                                                           : textOf(port, "id");
  return out;
}

Result<io::Fd> listener(const std::string& interface) {
  const unsigned index = ::if_nametoindex(interface.c_str());
  // No protocol before it is bound: until then it would take the frames of every interface for its
  // own.
  io::Fd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid() || index == 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("listening on {}: {}", interface, std::strerror(errno)));
  sockaddr_ll where{};
  where.sll_family = AF_PACKET;
  where.sll_protocol = htons(kEtherType);
  where.sll_ifindex = static_cast<int>(index);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("listening on {}: {}", interface, std::strerror(errno)));
  packet_mreq group{};  // a NIC drops the group's frames unless somebody asks for them
  group.mr_ifindex = static_cast<int>(index);
  group.mr_type = PACKET_MR_MULTICAST;
  group.mr_alen = kNearestBridge.size();
  std::copy(kNearestBridge.begin(), kNearestBridge.end(), group.mr_address);
  (void)::setsockopt(fd.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &group, sizeof group);
  return fd;
}

}  // namespace

Result<wire::Neighbour> parseLldp(std::string_view frame) {
  auto no = [](std::string why) {
    return fail(ErrorCode::Corrupt, "no LLDP frame: " + std::move(why));
  };
  if (frame.size() < kEthernetBytes) return no("too short");
  if ((byteAt(frame, 12) << 8 | byteAt(frame, 13)) != kEtherType) return no("another protocol");
  frame.remove_prefix(kEthernetBytes);
  wire::Neighbour out;
  std::string chassis, port, description, system;
  bool port_is_mac = false, ttl = false, over = false;
  while (!over && frame.size() >= 2) {
    const int type = byteAt(frame, 0) >> 1;
    const std::size_t length = std::size_t(byteAt(frame, 0) & 1) << 8 | byteAt(frame, 1);
    if (frame.size() < 2 + length) return no("it is cut off");
    const auto value = frame.substr(2, length);
    frame.remove_prefix(2 + length);
    switch (type) {
      case kEnd:
        over = true;
        break;
      case kChassis:
        chassis = idText(value, kChassisMac);
        break;
      case kPort:
        port = idText(value, kPortMac);
        port_is_mac = !value.empty() && byteAt(value, 0) == kPortMac;
        break;
      case kTtl:
        ttl = length >= 2 && (byteAt(value, 0) | byteAt(value, 1)) != 0;
        break;  // 0: the neighbour says goodbye
      case kPortDescription:
        description = printable(value);
        break;
      case kSystemName:
        system = printable(value);
        break;
      default:
        break;
    }
  }
  if (chassis.empty() || port.empty() || !ttl)
    return no("chassis, port or time to live is missing");
  out.switch_name = system.empty() ? chassis : system;
  out.port = port_is_mac && !description.empty() ? description : port;
  return out;
}

Result<std::vector<wire::Neighbour>> parseLldpctl(std::string_view text) {
  const auto root = jsonOrNone(text, kToolJson);
  if (!root.is_object() || !root.contains("lldp") || !root["lldp"].is_object())
    return fail(ErrorCode::Corrupt, "lldpctl did not answer with its JSON");
  std::map<std::string, std::pair<long, wire::Neighbour>> youngest;
  auto take = [&](const json& entry) {
    if (!entry.is_object()) return;
    for (const auto& [nic, one] : entry.items()) {
      if (!one.is_object() || nic.size() >= IFNAMSIZ) continue;
      const auto age = ageOf(textOf(one, "age"));
      const auto known = youngest.find(nic);
      if (known == youngest.end() || age < known->second.first)
        youngest[nic] = {age, neighbourOf(nic, one)};
    }
  };
  const auto interfaces = root["lldp"].value("interface", json::array());
  if (interfaces.is_array())
    for (const auto& entry : interfaces) take(entry);
  else
    take(interfaces);
  std::vector<wire::Neighbour> out;
  for (auto& [nic, each] : youngest) out.push_back(std::move(each.second));
  return out;
}

std::map<std::string, int> frameSizes(std::string_view text) {
  std::map<std::string, int> out;
  std::map<std::string, long> age_of;
  const auto root = jsonOrNone(text, kToolJson);
  const auto lldp = root.is_object() ? root.value("lldp", json::object()) : json::object();
  const auto interfaces = lldp.is_object() ? lldp.value("interface", json::array()) : json::array();
  for (const auto& entry : interfaces.is_array() ? interfaces : json::array({interfaces})) {
    if (!entry.is_object()) continue;
    for (const auto& [nic, one] : entry.items()) {
      if (!one.is_object()) continue;
      const auto age = ageOf(textOf(one, "age"));
      const auto [known, first] = age_of.emplace(nic, age);
      if (!first && known->second <= age) continue;
      known->second = age;
      const auto& port = one.contains("port") ? one["port"] : one;
      const int bytes = std::atoi(textOf(port, "mfs").c_str());
      out.erase(nic);
      if (bytes > 0) out[nic] = bytes;
    }
  }
  return out;
}

Result<std::vector<wire::Neighbour>> listenLldpOn(const std::map<std::string, std::string>& macs,
                                                  std::chrono::milliseconds limit) {
  std::vector<std::string> names;
  std::vector<io::Fd> sockets;
  std::vector<pollfd> waits;
  for (const auto& [name, mac] : macs) {
    TRY(fd, listener(name));
    waits.push_back({fd.get(), POLLIN, 0});
    sockets.push_back(std::move(fd));
    names.push_back(name);
  }
  std::map<std::string, wire::Neighbour> heard;
  const auto until = std::chrono::steady_clock::now() + limit;
  std::vector<char> frame(kFrameBytes);
  while (heard.size() < names.size()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          until - std::chrono::steady_clock::now())
                          .count();
    if (left <= 0 || ::poll(waits.data(), waits.size(), static_cast<int>(left)) < 0) break;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if ((waits[i].revents & (POLLIN | POLLERR)) == 0) continue;
      sockaddr_ll from{};
      socklen_t size = sizeof from;
      const auto got = ::recvfrom(waits[i].fd, frame.data(), frame.size(), 0,
                                  reinterpret_cast<sockaddr*>(&from), &size);
      if (got <= 0) {
        if (errno != EAGAIN && errno != EINTR)
          waits[i].fd = -1;  // the interface is gone; poll skips it
        continue;
      }
      if (from.sll_pkttype == PACKET_OUTGOING) continue;  // our own
      auto neighbour = parseLldp(std::string_view(frame.data(), static_cast<std::size_t>(got)));
      if (!neighbour) continue;
      neighbour->nic = names[i];
      neighbour->mac = macs.at(names[i]);
      heard[names[i]] = std::move(*neighbour);
    }
  }
  std::vector<wire::Neighbour> out;
  for (auto& [name, neighbour] : heard) out.push_back(std::move(neighbour));
  return out;
}

Result<std::vector<wire::Neighbour>> listenLldp(const fs::path& root,
                                                std::chrono::milliseconds limit) {
  std::map<std::string, std::string> macs;
  std::error_code error;
  for (const auto& net : fs::directory_iterator(root / "sys/class/net", error)) {
    const auto carrier = io::readFile(net.path() / "carrier", 64),
               address = io::readFile(net.path() / "address", 64);
    std::error_code ignored;
    if (!fs::exists(net.path() / "device", ignored) || !carrier || !carrier->starts_with('1') ||
        !address)
      continue;
    macs[net.path().filename()] = address->substr(0, address->find('\n'));
  }
  return listenLldpOn(macs, limit);
}

}  // namespace muster::agent
