// SPDX-License-Identifier: Apache-2.0
#include "discovery/dhcp.h"

#include "base/ip_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::discovery {
namespace {

constexpr std::size_t kFixedBytes = 236;  ///< of BOOTP, before the magic cookie
constexpr std::string_view kCookie("\x63\x82\x53\x63", 4);
constexpr std::size_t kUuidOptionBytes = 17;
constexpr std::uint16_t kServerPort = 67;
constexpr std::uint8_t kUdp = 17;

// Words that BMCs put into their vendor class; whoever says one is no NIC of a host.
constexpr std::array<std::string_view, 6> kBmcClasses = {"iDRAC", "CPQRIB", "iLO",
                                                         "XCC",   "BMC",    "OpenBMC"};

std::uint8_t byteAt(std::string_view data, std::size_t at) {
  return static_cast<std::uint8_t>(data[at]);
}
std::uint16_t shortAt(std::string_view data, std::size_t at) {
  return static_cast<std::uint16_t>(byteAt(data, at) << 8 | byteAt(data, at + 1));
}
Ipv4 addressAt(std::string_view data, std::size_t at) {
  return Ipv4(std::uint32_t(shortAt(data, at)) << 16 | shortAt(data, at + 2));
}

std::string uuidText(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += fmt::format("{:02x}", byteAt(bytes, i));
  }
  return out;
}

}  // namespace

Result<DhcpRequest> parseDhcp(std::string_view data) {
  auto no = [](std::string why) {
    return fail(ErrorCode::Corrupt, "no DHCP request: " + std::move(why));
  };
  if (data.size() < kFixedBytes + kCookie.size()) return no("too short");
  if (byteAt(data, 0) != 1) return no("not from a client");
  if (byteAt(data, 1) != 1 || byteAt(data, 2) != 6) return no("not from Ethernet");
  if (data.substr(kFixedBytes, kCookie.size()) != kCookie)
    return no("BOOTP without DHCP's options");
  DhcpRequest out;
  std::string hex;
  for (std::size_t i = 28; i < 34; ++i) hex += fmt::format("{:02x}", byteAt(data, i));
  TRY(mac, Mac::parse(hex));
  out.mac = mac;
  out.address = addressAt(data, 12);
  out.relay = addressAt(data, 24);
  for (std::size_t at = kFixedBytes + kCookie.size(); at < data.size();) {
    const auto option = byteAt(data, at++);
    if (option == 0) continue;
    if (option == 255) break;
    if (at >= data.size()) return no("an option without a length");
    const std::size_t length = byteAt(data, at++);
    if (at + length > data.size()) return no("an option that is longer than the packet");
    const auto value = data.substr(at, length);
    at += length;
    if (option == 12) out.host_name = printable(value);
    if (option == 60) out.vendor_class = printable(value);
    if (option == 50 && length == 4) out.address = addressAt(value, 0);
    if (option == 97 && length == kUuidOptionBytes && value[0] == 0)
      out.uuid = uuidText(value.substr(1));
  }
  return out;
}

std::optional<std::string_view> dhcpPayload(std::string_view packet) {
  if (packet.size() < 20 || byteAt(packet, 0) >> 4 != 4) return std::nullopt;
  const std::size_t header = std::size_t(byteAt(packet, 0) & 0x0f) * 4;
  if (header < 20 || packet.size() < header + 8 || byteAt(packet, 9) != kUdp) return std::nullopt;
  if ((shortAt(packet, 6) & 0x3fff) != 0) return std::nullopt;  // a fragment
  if (shortAt(packet, header + 2) != kServerPort) return std::nullopt;
  const std::size_t length = shortAt(packet, header + 4);
  if (length < 8 || header + length > packet.size()) return std::nullopt;
  return packet.substr(header + 8, length - 8);
}

Machine sightingOf(const DhcpRequest& request) {
  Machine machine;
  machine.macs = {request.mac.str()};
  machine.uuid = request.uuid;
  machine.seen_by = {"dhcp"};
  const bool bmc = std::any_of(kBmcClasses.begin(), kBmcClasses.end(), [&](std::string_view word) {
    return request.vendor_class.find(word) != std::string::npos;
  });
  if (bmc) {
    machine.bmc_macs = std::exchange(machine.macs, {});
    machine.note =
        fmt::format("a BMC ({}) asks for an address{}", request.vendor_class,
                    request.address.value() == 0 ? "" : " and knows " + request.address.str());
  } else if (request.boots()) {
    machine.boot_mac = request.mac.str();
    machine.relay = request.relay.str();
    machine.note = "a NIC asks to boot from the network; its BMC is not known";
  } else {
    machine.note = fmt::format("a NIC asks for an address{}",
                               request.host_name.empty() ? "" : ", as " + request.host_name);
  }
  return machine;
}

}  // namespace muster::discovery
