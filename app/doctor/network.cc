// SPDX-License-Identifier: Apache-2.0
#include "app/doctor/checks.h"
#include "app/doctor/dhcp_rival.h"
#include "inventory/model/networks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pwd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>

namespace muster::app::doctor {
namespace {

namespace fs = std::filesystem;
using enum DoctorVerdict;

constexpr int kTcpListen = 0x0A, kUdpBound = 0x07;  ///< of /proc/net/{tcp,udp}

struct HostAddress {
  std::string interface;
  Ipv4 address;
};

struct HostNetwork {
  std::vector<HostAddress> addresses;
  std::vector<std::string> interfaces;  ///< without lo
};

HostNetwork networkOfHost() {
  HostNetwork out;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return out;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, &::freeifaddrs);
  for (const auto* i = all; i; i = i->ifa_next) {
    const std::string name = i->ifa_name;
    if ((i->ifa_flags & IFF_LOOPBACK) == 0 &&
        std::ranges::find(out.interfaces, name) == out.interfaces.end())
      out.interfaces.push_back(name);
    if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
      out.addresses.push_back(
          {name, Ipv4(ntohl(reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr.s_addr))});
  }
  return out;
}

struct Bound {
  Ipv4 address;
  std::uint16_t port = 0;
  unsigned long inode = 0;
  uid_t user = 0;
};

/// proc(5): lines of /proc/net/tcp and udp; addresses are hexadecimal, in the byte order of the
/// machine.
std::vector<Bound> boundPorts(const char* file, int state) {
  std::vector<Bound> out;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    unsigned address = 0, port = 0, found = 0, user = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), " %*d: %8X:%4X %*8X:%*4X %2X %*s %*s %*s %u %*d %lu", &address,
                    &port, &found, &user, &inode) == 5 &&
        static_cast<int>(found) == state)
      out.push_back({Ipv4(ntohl(address)), static_cast<std::uint16_t>(port), inode, user});
  }
  return out;
}

/// Who has it open: "dnsmasq (4711)"; empty where that may not be seen.
std::string ownerOf(unsigned long inode) {
  const auto wanted = fmt::format("socket:[{}]", inode);
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const auto pid = process.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code hidden;
    for (const auto& fd : fs::directory_iterator(process.path() / "fd", hidden)) {
      if (fs::read_symlink(fd.path(), hidden) != wanted) continue;
      std::string name;
      std::ifstream comm(process.path() / "comm");
      std::getline(comm, name);
      return fmt::format("{} ({})", name, pid);
    }
  }
  return {};
}

/// Whether it is a process of this muster: the monitor, or the dnsmasq with its configuration.
bool isOurs(const std::string& owner, const fs::path& state) {
  if (owner.starts_with("muster")) return true;
  const auto pid = owner.substr(std::min(owner.find('(') + 1, owner.size()));
  std::ifstream in("/proc/" + pid.substr(0, pid.find(')')) + "/cmdline");
  std::string line((std::istreambuf_iterator<char>(in)), {});
  return line.find((fs::absolute(state) / "run").string()) != std::string::npos;
}

/// Of the unit that runs dnsmasq (docs/adr/0360), whose processes only root may look at.
bool isUnits(uid_t user) {
  const auto* found = ::getpwnam("muster-dnsmasq");
  return found && found->pw_uid == user;
}

struct NeededPort {
  const char* name;
  std::uint16_t port;
  bool udp, dhcp;
};
constexpr std::array<NeededPort, 4> kPorts{{{"DHCP", 67, true, true},
                                            {"TFTP", 69, true, false},
                                            {"HTTP", 8080, false, false},
                                            {"HTTPS of agents", 8443, false, false}}};

}  // namespace

std::string lookAtAddress(const inventory::Network& network, Lines& out) {
  const auto host = networkOfHost();
  const auto wanted = inventory::controllersOf(network);
  for (const auto& each : host.addresses)
    if (std::ranges::find(wanted, each.address) != wanted.end()) {
      ok(out, "address", fmt::format("{} on {}", each.address.str(), each.interface));
      return each.interface;
    }
  // An interface that is on the network already, with another address; else the first one.
  std::string interface = host.interfaces.empty() ? "INTERFACE" : host.interfaces.front();
  std::error_code error;
  for (const auto& each : host.interfaces)  // rather one with hardware behind it
    if (fs::exists(fs::path("/sys/class/net") / each / "device", error)) {
      interface = each;
      break;
    }
  for (const auto& each : host.addresses)
    if (network.cidr.contains(each.address)) interface = each.interface;
  std::vector<std::string> texts;
  for (const auto address : wanted) texts.push_back(address.str());
  out.push_back(
      {"address", Bad,
       fmt::format("no interface of this host has {} (controller of the provisioning network)",
                   fmt::join(texts, " or ")),
       "nodes cannot reach muster, and dnsmasq does not start",
       fmt::format("ip address add {}/{} dev {}   (interfaces here: {})", wanted.front().str(),
                   network.cidr.prefix_bits, interface, fmt::join(host.interfaces, ", "))});
  return {};
}

void lookAtPorts(const Options& options, const inventory::Network& network, Lines& out) {
  const auto udp = boundPorts("/proc/net/udp", kUdpBound);
  const auto tcp = boundPorts("/proc/net/tcp", kTcpListen);
  bool all_free = true;
  for (const auto& needed : kPorts) {
    if (needed.dhcp && network.dhcp_mode == inventory::DhcpMode::None) continue;
    for (const auto& bound : needed.udp ? udp : tcp) {
      // On another address it is in nobody's way.
      if (bound.port != needed.port ||
          (bound.address.value() != 0 && bound.address != network.controller))
        continue;
      const auto owner = ownerOf(bound.inode);
      if (isUnits(bound.user) || isOurs(owner, options.state)) continue;
      all_free = false;
      const auto name = owner.substr(0, owner.find(' '));
      out.push_back(
          {"ports", Bad,
           fmt::format("port {} ({}, {}) is taken by {}", needed.port, needed.udp ? "UDP" : "TCP",
                       needed.name, owner.empty() ? "a process that this user cannot see" : owner),
           "muster cannot serve it",
           owner.empty()
               ? fmt::format("ss -lnp 'sport = :{}' as root says whose it is", needed.port)
               : fmt::format("systemctl status {0}; systemctl disable --now {0}", name)});
      break;
    }
  }
  if (all_free) ok(out, "ports", "67, 69, 8080 and 8443 are free, or muster's own");
}

void lookForDhcp(const inventory::Network& network, const std::string& interface, Lines& out) {
  const auto servers = dhcpServersOn(interface);
  if (!servers) {
    out.push_back({"dhcp", Warning, fmt::format("not looked for: {}", servers.error().str()),
                   "another DHCP server would give nodes other addresses and boot files",
                   servers.error().code() == ErrorCode::Denied
                       ? "run muster doctor as root"
                       : fmt::format("end the DHCP client on {} for a moment", interface)});
    return;
  }
  std::vector<std::string> others;
  for (const auto server : *servers)
    if (!inventory::isController(network, server)) others.push_back(server.str());
  const bool proxy = network.dhcp_mode == inventory::DhcpMode::Proxy;
  const auto named = fmt::format("{}", fmt::join(others, ", "));
  if (network.dhcp_mode == inventory::DhcpMode::None)
    return ok(out, "dhcp", others.empty() ? "nobody answers" : "answers: " + named);
  if (proxy && !others.empty()) return ok(out, "dhcp", fmt::format("{} gives addresses", named));
  if (proxy) {
    out.push_back({"dhcp", Bad, fmt::format("no DHCP server answers on {}", interface),
                   "mode proxy gives no addresses: nodes need another server for them",
                   "start that server, or set networks.provisioning.dhcp to {mode: authoritative, "
                   "range: …}"});
    return;
  }
  if (others.empty())
    return ok(out, "dhcp", fmt::format("no other server answers on {}", interface));
  out.push_back(
      {"dhcp", Bad, fmt::format("another DHCP server answers on {}: {}", interface, named),
       "nodes take the offer that comes first, so some boot elsewhere or not at all",
       fmt::format("find it (ip neighbour show {}), and end it on this network; or let it "
                   "give the addresses: dhcp: {{mode: proxy}}",
                   others.front())});
}

}  // namespace muster::app::doctor
