// SPDX-License-Identifier: Apache-2.0
#include "app/doctor/dhcp_rival.h"

#include "base/io/crypto.h"
#include "base/io/files.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace muster::app {
namespace {

constexpr std::uint16_t kServerPort = 67, kClientPort = 68;
constexpr std::size_t kFixedBytes = 236, kOptionsAt = 240, kMaxPacketBytes = 1500;
constexpr std::size_t kTransactionAt = 4, kFlagsAt = 10, kHardwareAt = 28, kMacBytes = 6;
constexpr std::size_t kMinBytes = 300;  ///< of BOOTP; some relays drop less
constexpr std::string_view kMagic{"\x63\x82\x53\x63", 4};
enum Option : unsigned char { kPad = 0, kType = 53, kServer = 54, kWanted = 55, kEnd = 255 };
enum Type : unsigned char { kDiscover = 1, kOffer = 2 };

std::string word(std::uint32_t value) {
  std::string out(4, '\0');
  for (int i = 0; i < 4; ++i)
    out[static_cast<std::size_t>(i)] = static_cast<char>(value >> (24 - 8 * i));
  return out;
}

std::uint32_t numberOf(std::string_view bytes) {
  std::uint32_t out = 0;
  for (const unsigned char c : bytes) out = out << 8 | c;
  return out;
}

std::unexpected<Error> socketError(const std::string& what) {
  const int error = errno;
  const auto code = error == EPERM || error == EACCES ? ErrorCode::Denied
                    : error == EADDRINUSE             ? ErrorCode::Conflict
                                                      : ErrorCode::Unavailable;
  return fail(code, fmt::format("{}: {}", what, std::strerror(error)));
}

}  // namespace

std::string dhcpDiscover(const Mac& mac, std::uint32_t transaction) {
  std::string out(kFixedBytes, '\0');
  out[0] = 1;  // BOOTREQUEST
  out[1] = 1;  // Ethernet
  out[2] = kMacBytes;
  out.replace(kTransactionAt, 4, word(transaction));
  out[kFlagsAt] = static_cast<char>(0x80);  // answer by broadcast
  std::array<unsigned, kMacBytes> parts{};
  (void)std::sscanf(mac.str().c_str(), "%x:%x:%x:%x:%x:%x", &parts[0], &parts[1], &parts[2],
                    &parts[3], &parts[4], &parts[5]);
  for (std::size_t i = 0; i < kMacBytes; ++i) out[kHardwareAt + i] = static_cast<char>(parts[i]);
  out += kMagic;
  for (const unsigned char c : {+kType, 1, +kDiscover, +kWanted, 2, 1, 3, +kEnd})
    out += static_cast<char>(c);
  out.resize(std::max(out.size(), kMinBytes), '\0');
  return out;
}

std::optional<Ipv4> offeringServer(std::string_view payload, std::uint32_t transaction) {
  if (payload.size() < kOptionsAt || payload[0] != 2 ||
      numberOf(payload.substr(kTransactionAt, 4)) != transaction ||
      payload.substr(kFixedBytes, kMagic.size()) != kMagic)
    return std::nullopt;
  std::optional<Ipv4> server;
  bool offer = false;
  for (std::size_t at = kOptionsAt; at < payload.size();) {
    const auto option = static_cast<unsigned char>(payload[at]);
    if (option == kEnd) break;
    if (option == kPad) {
      ++at;
      continue;
    }
    if (at + 1 >= payload.size()) return std::nullopt;
    const auto length = static_cast<unsigned char>(payload[at + 1]);
    if (at + 2 + length > payload.size()) return std::nullopt;
    const auto value = payload.substr(at + 2, length);
    if (option == kType && length == 1) offer = value[0] == kOffer;
    if (option == kServer && length == 4) server = Ipv4(numberOf(value));
    at += 2 + std::size_t{length};
  }
  return offer ? server : std::nullopt;
}

Result<std::set<Ipv4>> dhcpServersOn(const std::string& interface,
                                     std::chrono::milliseconds listen) {
  const io::Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return socketError("no socket");
  const int on = 1;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_BROADCAST, &on, sizeof on) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                   static_cast<socklen_t>(interface.size() + 1)) != 0)
    return socketError(fmt::format("asking on {}", interface));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(kClientPort);
  here.sin_addr.s_addr = htonl(INADDR_ANY);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0)
    return socketError(fmt::format("port {} (UDP) on {}", kClientPort, interface));
  const auto random = io::randomBytes(9);
  const auto transaction = numberOf(std::string_view(random).substr(0, 4));
  // A MAC of nobody: local, not multicast.
  const auto byte = [&random](std::size_t i) {
    return static_cast<unsigned>(static_cast<unsigned char>(random[4 + i]));
  };
  const auto mac = Mac::parse(fmt::format("02:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", byte(0), byte(1),
                                          byte(2), byte(3), byte(4)));
  if (!mac) return fail(ErrorCode::Internal, "no MAC for a DHCP request");
  auto everybody = here;
  everybody.sin_port = htons(kServerPort);
  everybody.sin_addr.s_addr = htonl(INADDR_BROADCAST);
  const auto request = dhcpDiscover(*mac, transaction);
  if (::sendto(fd.get(), request.data(), request.size(), 0,
               reinterpret_cast<const sockaddr*>(&everybody), sizeof everybody) < 0)
    return socketError(fmt::format("asking on {}", interface));
  std::set<Ipv4> servers;
  const auto end = std::chrono::steady_clock::now() + listen;
  for (auto left = listen; left.count() > 0;
       left = std::chrono::duration_cast<std::chrono::milliseconds>(
           end - std::chrono::steady_clock::now())) {
    pollfd ready{fd.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    std::string packet(kMaxPacketBytes, '\0');
    const auto n = ::recv(fd.get(), packet.data(), packet.size(), 0);
    if (n <= 0) continue;
    if (const auto server = offeringServer(
            std::string_view(packet).substr(0, static_cast<std::size_t>(n)), transaction))
      servers.insert(*server);
  }
  return servers;
}

}  // namespace muster::app
