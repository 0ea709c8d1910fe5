// SPDX-License-Identifier: Apache-2.0
#include "discovery/watch.h"

#include "base/ip_address.h"

#include "base/io/files.h"

#include <fmt/format.h>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/multicast.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace muster::discovery {
namespace {

using asio::ip::udp;
using boost::system::error_code;

constexpr std::size_t kPacketBytes = 9'216;
constexpr int kSearchWaitSeconds = 2;

/// UDP to port 67, unfragmented: anything else stays in the kernel.
constexpr std::array<sock_filter, 10> kOnlyDhcp = {{
    BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 17, 0, 7),
    BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 5, 0),
    BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
    BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 67, 0, 2),
    BPF_STMT(BPF_RET | BPF_K, 0x40000),
    BPF_STMT(BPF_RET | BPF_K, 0),
    BPF_STMT(BPF_RET | BPF_K, 0),
}};

Error socketError(const std::string& what) {
  const auto code = errno == EPERM || errno == EACCES ? ErrorCode::Denied : ErrorCode::Unavailable;
  return Error(code, fmt::format("{}: {}{}", what, std::strerror(errno),
                                 code == ErrorCode::Denied ? "; it needs root" : ""));
}

Result<io::Fd> packetSocket(const std::string& interface) {
  const unsigned index = ::if_nametoindex(interface.c_str());
  if (index == 0)
    return fail(ErrorCode::NotFound, fmt::format("there is no network interface {}", interface));
  io::Fd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                     0));  // deaf until it is bound: nothing slips in unfiltered
  if (!fd.valid()) return fail(socketError("listening to DHCP"));
  auto filter = kOnlyDhcp;
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
    return fail(socketError("the filter for DHCP"));
  sockaddr_ll where{};
  where.sll_family = AF_PACKET;
  where.sll_protocol = htons(ETH_P_IP);
  where.sll_ifindex = static_cast<int>(index);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
    return fail(socketError("listening on " + interface));
  return fd;
}

/// Ends what waits on the socket when the time is over.
template <class Socket>
void closeAfter(asio::steady_timer& timer, Socket& socket, std::chrono::milliseconds limit) {
  timer.expires_after(limit);
  timer.async_wait([&socket](error_code error) {
    error_code ignored;
    if (!error) socket.cancel(ignored);
  });
}

}  // namespace

Async<void> watchDhcp(std::string interface, std::chrono::milliseconds limit,
                      std::function<void(DhcpRequest)> heard) {
  CO_TRY(fd, packetSocket(interface));
  auto executor = co_await asio::this_coro::executor;
  asio::posix::stream_descriptor socket(executor, fd.release());
  asio::steady_timer timer(executor);
  const auto until = std::chrono::steady_clock::now() + limit;
  closeAfter(timer, socket, limit);
  std::vector<char> packet(kPacketBytes);
  while (std::chrono::steady_clock::now() < until) {
    error_code error;
    auto buffer = asio::buffer(packet);
    const auto size =
        co_await socket.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) break;
    if (error)
      co_return fail(ErrorCode::Unavailable,
                     fmt::format("listening to DHCP on {}: {}", interface, error.message()));
    const auto payload = dhcpPayload(std::string_view(packet.data(), size));
    if (!payload) continue;
    if (auto request = parseDhcp(*payload)) heard(std::move(*request));
  }
  co_return Result<void>();
}

Async<void> watchSsdp(Ipv4 address, std::chrono::milliseconds limit,
                      std::function<void(SsdpService)> heard) {
  auto executor = co_await asio::this_coro::executor;
  error_code error;
  const auto group = asio::ip::make_address_v4(std::string(kSsdpGroup));
  const auto local = asio::ip::make_address_v4(address.value());
  udp::socket socket(executor);
  socket.open(udp::v4(), error);
  socket.set_option(udp::socket::reuse_address(true), error);
  socket.bind(udp::endpoint(asio::ip::address_v4::any(), kSsdpPort), error);
  if (error)
    co_return fail(ErrorCode::Conflict, fmt::format("UDP port {}: {}", kSsdpPort, error.message()));
  socket.set_option(asio::ip::multicast::join_group(group, local), error);
  if (error)
    co_return fail(ErrorCode::NotFound,
                   fmt::format("joining {} at {}: {}", kSsdpGroup, address.str(), error.message()));
  socket.set_option(asio::ip::multicast::outbound_interface(local), error);
  asio::steady_timer timer(executor);
  const auto until = std::chrono::steady_clock::now() + limit;
  closeAfter(timer, socket, limit);
  const auto search = ssdpSearch(kSearchWaitSeconds);
  auto question = asio::buffer(search);
  co_await socket.async_send_to(
      question, udp::endpoint(group, kSsdpPort),
      asio::redirect_error(asio::use_awaitable,
                           error));  // where it cannot be asked, announcements are still heard
  std::vector<char> datagram(kPacketBytes);
  while (std::chrono::steady_clock::now() < until) {
    udp::endpoint from;
    auto buffer = asio::buffer(datagram);
    const auto size = co_await socket.async_receive_from(
        buffer, from, asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) break;
    if (error)
      co_return fail(ErrorCode::Unavailable, fmt::format("listening to SSDP: {}", error.message()));
    auto service =
        parseSsdp(std::string_view(datagram.data(), size), Ipv4(from.address().to_v4().to_uint()));
    if (service && !service->gone) heard(std::move(*service));
  }
  co_return Result<void>();
}

namespace {

struct LocalAddress {
  std::string interface;
  Ipv4 address;
};
Result<std::vector<LocalAddress>> localAddresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return fail(socketError("listing the network interfaces"));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
  std::vector<LocalAddress> out;
  for (const auto* at = list; at; at = at->ifa_next) {
    if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in in{};
    std::memcpy(&in, at->ifa_addr, sizeof in);
    out.push_back({at->ifa_name, Ipv4(ntohl(in.sin_addr.s_addr))});
  }
  return out;
}

}  // namespace

Result<std::string> interfaceOf(Ipv4 address) {
  TRY(all, localAddresses());
  for (const auto& local : all)
    if (local.address == address) return local.interface;
  return fail(
      ErrorCode::NotFound,
      fmt::format("no network interface of this machine has the address {}; say --interface",
                  address.str()));
}

Result<Ipv4> addressOf(const std::string& interface) {
  TRY(all, localAddresses());
  for (const auto& local : all)
    if (local.interface == interface) return local.address;
  return fail(
      ErrorCode::NotFound,
      fmt::format("no network interface {} of this machine has an IPv4 address", interface));
}

}  // namespace muster::discovery
