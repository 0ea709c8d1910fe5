// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/dnsmasq_config.h"

#include "base/ip_address.h"

#include "base/io/process.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "tests/golden.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"

#include <sstream>

namespace muster::provision {
namespace {

const DnsmasqSite kSite{"br0", "/run/muster"};

/// dnsmasq's own opinion of the file.
void expectAccepted(const std::string& text) {
  muster::test::TempFolder folder;
  ASSERT_TRUE(io::writeFileAtomic(folder / "dnsmasq.conf", text));
  io::Command command;
  command.program = "dnsmasq";
  command.args = {"--test", "--conf-file=" + (folder / "dnsmasq.conf").string()};
  const auto exit = io::runBlocking(command);
  ASSERT_TRUE(exit) << exit.error().str();
  EXPECT_EQ(exit->code, 0) << exit->err;
}

TEST(DnsmasqConfig, authoritativeWithRange) {
  const auto text = renderDnsmasq(twoNodes(), kSite);
  muster::test::expectGolden("provision/golden/dnsmasq-authoritative.conf", text);
  expectAccepted(text);
}

TEST(DnsmasqConfig, proxyBesideAnotherServer) {
  auto cluster = twoNodes();
  cluster.networks[0].dhcp_mode = inventory::DhcpMode::Proxy;
  const auto text = renderDnsmasq(cluster, kSite);
  muster::test::expectGolden("provision/golden/dnsmasq-proxy.conf", text);
  expectAccepted(text);
}

TEST(DnsmasqConfig, onlyKnownMachinesWithoutRange) {
  auto cluster = twoNodes();
  cluster.networks[0].dhcp_range.reset();
  cluster.networks[0].gateway = *Ipv4::parse("10.20.0.254");
  cluster.networks[0].dns = {*Ipv4::parse("10.20.0.53"), *Ipv4::parse("10.20.0.54")};
  const auto text = renderDnsmasq(cluster, kSite);
  muster::test::expectGolden("provision/golden/dnsmasq-static.conf", text);
  expectAccepted(text);
}

TEST(DnsmasqConfig, aNodeThatBootsByVirtualMediaGetsAnAddressAndNothingToBoot) {
  auto cluster = twoNodes();
  cluster.profiles.at("uefi").boot_source = inventory::BootSource::VirtualMedia;
  EXPECT_EQ(renderHosts(cluster).at("gpu001"), "52:54:00:00:00:01,set:medium,10.20.1.1,gpu001\n");
  for (const auto mode : {inventory::DhcpMode::Authoritative, inventory::DhcpMode::Proxy}) {
    cluster.networks[0].dhcp_mode = mode;
    std::istringstream lines(renderDnsmasq(cluster, kSite));
    for (std::string line; std::getline(lines, line);) {
      const bool bios =
          line.find("tag:bios") != std::string::npos || line.find("x86PC") != std::string::npos;
      if (line.starts_with("dhcp-boot=") || line.starts_with("pxe-service=") ||
          line.starts_with("dhcp-option-force="))
        EXPECT_TRUE(bios || line.find("tag:!medium") != std::string::npos) << line;
    }
  }
}

TEST(DnsmasqConfig, everyNodeHasAFileOfItsOwn) {
  auto cluster = twoNodes();
  const HostLines wanted{{"gpu001", "52:54:00:00:00:01,10.20.1.1,gpu001\n"},
                         {"gpu002", "52:54:00:00:00:02,10.20.1.2,gpu002\n"}};
  EXPECT_EQ(renderHosts(cluster), wanted);
  cluster.networks[0].dhcp_mode = inventory::DhcpMode::Proxy;
  EXPECT_TRUE(renderHosts(cluster).empty()) << "the other server gives the addresses";
}

TEST(DnsmasqConfig, secureNodesAreToldByTheirLine) {
  auto cluster = twoNodes();
  cluster.profiles.at("uefi").secure_boot = true;
  EXPECT_EQ(renderHosts(cluster).at("gpu001"), "52:54:00:00:00:01,set:secure,10.20.1.1,gpu001\n");
  EXPECT_EQ(renderHosts(cluster).at("gpu002"), "52:54:00:00:00:02,10.20.1.2,gpu002\n");
}

TEST(DnsmasqConfig, subnetsBehindRelaysAndServersOfRacks) {
  auto cluster = twoNodes();
  auto& network = cluster.networks[0];
  network.boot_servers = {{"b1", *Ipv4::parse("10.21.0.2"), "", {}},
                          {"b2", std::nullopt, "http://10.20.0.9", {"r2"}},
                          {"b3", *Ipv4::parse("10.20.0.8"), "", {"r3"}}};
  inventory::Subnet ranged{"row-a",
                           *Cidr::parse("10.21.0.0/24"),
                           *Ipv4::parse("10.21.0.1"),
                           std::pair(*Ipv4::parse("10.21.0.200"), *Ipv4::parse("10.21.0.210")),
                           {*Ipv4::parse("10.21.0.53")},
                           {},
                           "b1",
                           {}};
  inventory::Subnet fixed{
      "row-b", *Cidr::parse("10.22.0.0/24"), *Ipv4::parse("10.22.0.1"), std::nullopt, {}, {}, "",
      {}};
  network.subnets = {ranged, fixed};
  cluster.nodes[0].address = *Ipv4::parse("10.21.0.11");
  cluster.nodes[1].rack = "r3";
  const auto text = renderDnsmasq(cluster, kSite);
  muster::test::expectGolden("provision/golden/dnsmasq-subnets.conf", text);
  expectAccepted(text);
  EXPECT_EQ(renderHosts(cluster).at("gpu001"), "52:54:00:00:00:01,set:boot-b1,10.21.0.11,gpu001\n");
  EXPECT_EQ(renderHosts(cluster).at("gpu002"), "52:54:00:00:00:02,set:boot-b3,10.20.1.2,gpu002\n");
}

}  // namespace
}  // namespace muster::provision
