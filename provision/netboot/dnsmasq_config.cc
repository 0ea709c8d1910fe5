// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/dnsmasq_config.h"

#include "base/ip_address.h"

#include "inventory/model/cluster.h"
#include "inventory/model/leases.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "provision/netboot/netboot.h"

#include <fmt/format.h>

namespace muster::provision {

namespace {

constexpr const char* kLeaseTime = "1h";
constexpr int kMaxLeases = 65536;  // dnsmasq gives up at 1,000 of its own

/// Option 93 of firmware that boots by TFTP. 7 and 9 are both in use for x86-64 UEFI. Debian's iPXE
/// binaries fit all but arm64's, which gets shim.
/// Source: RFC 4578; IANA, "Processor Architecture Types" of DHCPv6 parameters
struct ClientArch {
  int number;
  const char* tag;
  const char* service;  ///< dnsmasq's name in pxe-service
};
constexpr ClientArch kArchs[] = {{0, "bios", "x86PC"},
                                 {7, "uefi", "BC_EFI"},
                                 {9, "uefi", "X86-64_EFI"},
                                 {11, "arm64", "ARM64_EFI"}};

/// Of firmware that boots by HTTP.
constexpr int kHttpArch = 16, kHttpArchArm64 = 19;

std::string bootUrl(const inventory::Network& network, const DnsmasqSite& site) {
  // netX is the interface that iPXE boots from; net0 need not be.
  return fmt::format("http://{}:{}/boot/ipxe?mac=${{netX/mac}}", network.controller.str(),
                     site.http_port);
}

/// UEFI's HTTP client takes an offer only from a server that says so too (option 60), and boots
/// from a URL. Debian's signed GRUB does not know where it came from when HTTP brought it, so nodes
/// with Secure Boot and those with arm64 get the boot medium as one file. Who is not armed is told
/// so at once by 404, and its firmware goes on; without an answer it would ask for a minute.
std::string httpBoot(const inventory::Network& network, const DnsmasqSite& site) {
  const auto base = fmt::format("http://{}:{}", network.controller.str(), site.http_port);
  return fmt::format(
      "dhcp-match=set:http,option:client-arch,{0}\n"
      "dhcp-match=set:http-arm64,option:client-arch,{3}\n"
      "dhcp-boot=tag:!ipxe,tag:http,tag:!secure,tag:!medium,{1}{2}\n"
      "dhcp-boot=tag:!ipxe,tag:http,tag:secure,tag:!medium,{1}{4}\n"
      "dhcp-boot=tag:!ipxe,tag:http-arm64,tag:!medium,{1}{4}\n"
      "dhcp-option-force=tag:!ipxe,tag:http,tag:!medium,60,HTTPClient\n"
      "dhcp-option-force=tag:!ipxe,tag:http-arm64,tag:!medium,60,HTTPClient\n",
      kHttpArch, base, kIpxeUefiRoute, kHttpArchArm64, kMediumRoute);
}

/// `tag`: "" for the controller's own part of the network, else what dnsmasq sets for requests from
/// a subnet.
std::string addresses(const Cidr& cidr, const std::optional<std::pair<Ipv4, Ipv4>>& range,
                      const std::string& tag) {
  const auto mask = cidr.netmask().str();
  const auto set = tag.empty() ? "" : fmt::format("set:{},", tag);
  if (range)
    return fmt::format("dhcp-range={}{},{},{},{}\n", set, range->first.str(), range->second.str(),
                       mask, kLeaseTime);
  return fmt::format("dhcp-range={}{},static,{},{}\n", set, cidr.network.str(), mask, kLeaseTime);
}

std::string joined(const std::vector<Ipv4>& addresses) {
  std::string out;
  for (const auto& address : addresses) out += "," + address.str();
  return out;
}

std::string networks(const inventory::Network& network) {
  auto out = addresses(network.cidr, network.dhcp_range, "");
  // An option without a value keeps dnsmasq from announcing itself.
  out += network.gateway ? fmt::format("dhcp-option=option:router,{}\n", network.gateway->str())
                         : "dhcp-option=option:router\n";
  out += "dhcp-option=option:dns-server" + joined(network.dns) + "\n";
  // dnsmasq finds the subnet of a relayed request by the relay's address.
  for (const auto& subnet : network.subnets) {
    const auto tag = "net-" + subnet.name;
    out += addresses(subnet.cidr, subnet.dhcp_range, tag);
    out += fmt::format("dhcp-option=tag:{},option:router,{}\n", tag, subnet.gateway.str());
    if (!subnet.dns.empty())
      out += fmt::format("dhcp-option=tag:{},option:dns-server{}\n", tag, joined(subnet.dns));
  }
  return out;
}

std::string bootTag(const inventory::BootServer& server) { return "boot-" + server.name; }

/// Which file firmware gets, and from whom. Exactly one line fits a machine.
std::string firstFiles(const inventory::Network& network) {
  std::string elsewhere, out;
  for (const auto& server : network.boot_servers) {
    if (!server.tftp) continue;
    elsewhere += ",tag:!" + bootTag(server);
    out += fmt::format("dhcp-boot=tag:!ipxe,tag:bios,tag:{},{},,{}\n", bootTag(server), kIpxeBios,
                       server.tftp->str());
    out += fmt::format("dhcp-boot=tag:!ipxe,tag:uefi,tag:!secure,tag:!medium,tag:{},{},,{}\n",
                       bootTag(server), kIpxeUefi, server.tftp->str());
  }
  out += fmt::format("dhcp-boot=tag:!ipxe,tag:bios{},{}\n", elsewhere, kIpxeBios);
  out += fmt::format("dhcp-boot=tag:!ipxe,tag:uefi,tag:!secure,tag:!medium{},{}\n", elsewhere,
                     kIpxeUefi);
  return out + fmt::format(
                   "dhcp-boot=tag:!ipxe,tag:uefi,tag:secure,tag:!medium,{}\n"
                   "dhcp-boot=tag:!ipxe,tag:arm64,tag:!medium,{}\n",
                   kShim, kShimArm64);
}

/// Sole DHCP server (also behind relays): the boot file is part of the lease.
std::string leaseMode(const inventory::Cluster& cluster, const DnsmasqSite& site) {
  const auto& network = cluster.provisioning();
  std::string out = "dhcp-authoritative\n";
  out += fmt::format("dhcp-leasefile={}\n", dnsmasqLeaseFile(site.run_folder).string());
  out += networks(network);
  out += firstFiles(network);
  out += httpBoot(network, site);
  out += fmt::format("dhcp-boot=tag:ipxe,tag:!medium,{}\n", bootUrl(network, site));
  out += fmt::format("dhcp-hostsdir={}\n", site.hosts_folder.string());
  out += fmt::format("dhcp-lease-max={}\n", kMaxLeases);
  return out;
}

bool isArm64(const ClientArch& arch) { return std::string_view(arch.tag) == "arm64"; }

std::string_view fileOf(const ClientArch& arch) {
  return std::string_view(arch.tag) == "bios" ? kIpxeBios : kIpxeUefi;
}

std::string service(const std::string& tags, const ClientArch& arch, std::string_view file) {
  return fmt::format("pxe-service={},{},\"muster\",{}", tags, arch.service, file);
}

/// Beside somebody else's DHCP server: addresses come from there, only the boot answer is ours.
/// dnsmasq answers PXE clients alone this way: firmware set to HTTP boot must be set to PXE there.
std::string proxyMode(const inventory::Cluster& cluster, const DnsmasqSite& site) {
  const auto& network = cluster.provisioning();
  std::string out = fmt::format("dhcp-range={},proxy,{}\n", network.cidr.network.str(),
                                network.cidr.netmask().str());
  out += fmt::format("dhcp-hostsdir={}\n", site.hosts_folder.string());
  std::string elsewhere;
  for (const auto& server : network.boot_servers) {
    if (!server.tftp) continue;
    elsewhere += ",tag:!" + bootTag(server);
    for (const auto& arch : kArchs)
      if (!isArm64(arch))
        out += service("tag:!ipxe,tag:!secure,tag:!medium,tag:" + bootTag(server), arch,
                       fileOf(arch)) +
               "," + server.tftp->str() + "\n";
  }
  for (const auto& arch : kArchs) {
    if (isArm64(arch)) {
      out += service("tag:!ipxe,tag:!medium", arch, kShimArm64) + "\n";
      continue;
    }
    const bool bios = fileOf(arch) == kIpxeBios;
    out += service("tag:!ipxe,tag:!secure,tag:!medium" + elsewhere, arch, fileOf(arch)) + "\n";
    if (!bios) out += service("tag:!ipxe,tag:secure,tag:!medium", arch, kShim) + "\n";
  }
  // In the offer itself; others ask again at port 4011. iPXE takes a file from a proxy only beside
  // a server's address.
  return out + fmt::format("dhcp-boot=tag:ipxe,tag:!medium,{},,{}\n", bootUrl(network, site),
                           network.controller.str());
}

}  // namespace

HostLines renderHosts(const inventory::Cluster& cluster) {
  HostLines out;
  const auto& network = cluster.provisioning();
  const bool ours = inventory::leasesAddresses(network);
  for (const auto& node : cluster.nodes) {
    auto line = node.mac.str();
    if (cluster.profileOf(node).secure_boot) line += ",set:secure";
    if (cluster.profileOf(node).boot_source == inventory::BootSource::VirtualMedia)
      line += ",set:medium";
    if (const auto* server = inventory::bootServerOf(network, node.rack, node.address);
        server && server->tftp)
      line += ",set:" + bootTag(*server);
    if (ours) line += fmt::format(",{},{}", node.address.str(), node.name.str());
    if (line != node.mac.str())
      out[node.name.str()] = line + "\n";  // beside another DHCP server most nodes need no line
  }
  return out;
}

std::vector<std::string> dnsmasqArguments(const std::filesystem::path& configuration) {
  return {"--keep-in-foreground", "--conf-file=" + configuration.string(), "--log-facility=-"};
}

std::string renderDnsmasq(const inventory::Cluster& cluster, const DnsmasqSite& site) {
  std::string out = "# Written by muster from the inventory; changes are lost.\n";
  out += "port=0\n";  // no DNS
  out += "no-resolv\nno-hosts\n";
  out += "pid-file=\n";  // else all of this machine share one
  out += fmt::format("interface={}\nexcept-interface=lo\nbind-interfaces\n", site.interface);
  out += "log-dhcp\n";
  out += fmt::format("user={}\n", kDnsmasqUser);
  out += fmt::format("enable-tftp\ntftp-root={}\n", site.tftp_root.string());
  out += fmt::format("tftp-unique-root={}\n",
                     inventory::leasesAddresses(cluster.provisioning()) ? "ip" : "mac");
  out += "dhcp-match=set:ipxe,175\ndhcp-userclass=set:ipxe,iPXE\n";
  for (const auto& arch : kArchs)
    out += fmt::format("dhcp-match=set:{},option:client-arch,{}\n", arch.tag, arch.number);
  return out + (cluster.provisioning().dhcp_mode == inventory::DhcpMode::Proxy
                    ? proxyMode(cluster, site)
                    : leaseMode(cluster, site));
}

}  // namespace muster::provision
