#include "provision/netboot/dnsmasq_config.h"

#include "inventory/leases.h"

#include <fmt/format.h>

namespace muster::provision {

namespace {

constexpr const char* kLeaseTime = "1h";
constexpr int kMaxLeases = 65536;  // dnsmasq gives up at 1,000 of its own

/// Option 93 (RFC 4578) of firmware that Debian's iPXE binaries fit. 7 and 9 are both in use for x86-64 UEFI.
struct ClientArch {
  int number;
  const char* tag;
  const char* service;  ///< dnsmasq's name in pxe-service
};
constexpr ClientArch kArchs[] = {{0, "bios", "x86PC"}, {7, "uefi", "BC_EFI"}, {9, "uefi", "X86-64_EFI"}};

constexpr int kHttpArch = 16;  // x86-64 UEFI that boots by HTTP

std::string bootUrl(const inventory::Network& network, const DnsmasqSite& site) {
  // netX is the interface that iPXE boots from; net0 need not be.
  return fmt::format("http://{}:{}/boot/ipxe?mac=${{netX/mac}}", network.controller.str(), site.http_port);
}

/// UEFI's HTTP client takes an offer only from a server that says so too (option 60), and boots from a URL.
std::string httpBoot(const inventory::Network& network, const DnsmasqSite& site) {
  return fmt::format(
      "dhcp-match=set:http,option:client-arch,{}\n"
      "dhcp-boot=tag:!ipxe,tag:http,http://{}:{}{}\n"
      "dhcp-option-force=tag:!ipxe,tag:http,60,HTTPClient\n",
      kHttpArch, network.controller.str(), site.http_port, kIpxeUefiRoute);
}

std::string addresses(const inventory::Network& network) {
  std::string out;
  const auto mask = network.cidr.netmask().str();
  if (network.dhcp_range) {
    out += fmt::format("dhcp-range={},{},{},{}\n", network.dhcp_range->first.str(), network.dhcp_range->second.str(), mask, kLeaseTime);
  } else {
    out += fmt::format("dhcp-range={},static,{},{}\n", network.cidr.network.str(), mask, kLeaseTime);
  }
  // An option without a value keeps dnsmasq from announcing itself.
  out += network.gateway ? fmt::format("dhcp-option=option:router,{}\n", network.gateway->str()) : "dhcp-option=option:router\n";
  std::string dns;
  for (const auto& server : network.dns) dns += "," + server.str();
  out += "dhcp-option=option:dns-server" + dns + "\n";
  return out;
}

/// Sole DHCP server (also behind relays): the boot file is part of the lease.
std::string leaseMode(const inventory::Cluster& cluster, const DnsmasqSite& site) {
  const auto& network = cluster.provisioning();
  std::string out = "dhcp-authoritative\n";
  out += fmt::format("dhcp-leasefile={}\n", (site.run_folder / "dnsmasq.leases").string());
  out += addresses(network);
  out += fmt::format("dhcp-boot=tag:!ipxe,tag:bios,{}\n", kIpxeBios);
  out += fmt::format("dhcp-boot=tag:!ipxe,tag:uefi,{}\n", kIpxeUefi);
  out += httpBoot(network, site);
  out += fmt::format("dhcp-boot=tag:ipxe,{}\n", bootUrl(network, site));
  out += fmt::format("dhcp-hostsdir={}\n", site.hosts_folder.string());
  out += fmt::format("dhcp-lease-max={}\n", kMaxLeases);
  return out;
}

/// Beside somebody else's DHCP server: addresses come from there, only the boot answer is ours. dnsmasq answers PXE clients
/// alone this way: firmware set to HTTP boot must be set to PXE there.
std::string proxyMode(const inventory::Cluster& cluster, const DnsmasqSite& site) {
  const auto& network = cluster.provisioning();
  std::string out = fmt::format("dhcp-range={},proxy,{}\n", network.cidr.network.str(), network.cidr.netmask().str());
  for (const auto& arch : kArchs) {
    const auto* file = std::string_view(arch.tag) == "bios" ? kIpxeBios : kIpxeUefi;
    out += fmt::format("pxe-service=tag:!ipxe,{},\"muster\",{}\n", arch.service, file);
    out += fmt::format("pxe-service=tag:ipxe,{},\"muster\",{}\n", arch.service, bootUrl(network, site));
  }
  return out;
}

}  // namespace

HostLines renderHosts(const inventory::Cluster& cluster) {
  HostLines out;
  if (!inventory::leasesAddresses(cluster.provisioning())) return out;
  for (const auto& node : cluster.nodes) {
    out[node.name.str()] = fmt::format("{},{},{}\n", node.mac.str(), node.address.str(), node.name.str());
  }
  return out;
}

std::string renderDnsmasq(const inventory::Cluster& cluster, const DnsmasqSite& site) {
  std::string out = "# Written by muster from the inventory; changes are lost.\n";
  out += "port=0\n";  // no DNS
  out += "no-resolv\nno-hosts\n";
  out += fmt::format("interface={}\nexcept-interface=lo\nbind-interfaces\n", site.interface);
  out += "log-dhcp\n";
  out += fmt::format("enable-tftp\ntftp-root={}\n", site.tftp_root.string());
  out += "dhcp-match=set:ipxe,175\ndhcp-userclass=set:ipxe,iPXE\n";
  for (const auto& arch : kArchs) out += fmt::format("dhcp-match=set:{},option:client-arch,{}\n", arch.tag, arch.number);
  return out + (cluster.provisioning().dhcp_mode == inventory::DhcpMode::Proxy ? proxyMode(cluster, site) : leaseMode(cluster, site));
}

}  // namespace muster::provision
