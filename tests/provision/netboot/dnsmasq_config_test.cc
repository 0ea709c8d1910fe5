// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/dnsmasq_config.h"

#include "base/ip_address.h"

#include "base/io/process.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "provision/netboot/dnsmasq_check.h"
#include "tests/golden.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <set>
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

// What the unit lets dnsmasq read: what muster writes, and of dnsmasq's own list of options nothing
// that could leave DHCP and TFTP.
const DnsmasqFolders kUnitFolders{"/var/lib/muster-dnsmasq", "/run/muster"};
const DnsmasqSite kUnitSite{.interface = "br0",
                            .run_folder = kUnitFolders.own,
                            .hosts_folder = "/run/muster/hosts-0123456789ab",
                            .tftp_root = "/run/muster/tftp-0123456789ab"};

std::string refusal(const std::string& text) {
  const auto done = checkDnsmasqFile("dnsmasq.conf", text, kUnitFolders);
  return done ? "" : done.error().str();
}
std::string withLine(const std::string& line) {
  return renderDnsmasq(twoNodes(), kUnitSite) + line;
}

TEST(DnsmasqCheck, takesWhatMusterWrites) {
  auto cluster = twoNodes();
  EXPECT_EQ(refusal(renderDnsmasq(cluster, kUnitSite)), "");
  auto& network = cluster.networks[0];
  network.gateway = *Ipv4::parse("10.20.0.254");
  network.dns = {*Ipv4::parse("10.20.0.53"), *Ipv4::parse("10.20.0.54")};
  network.boot_servers.push_back({.name = "rack1", .tftp = *Ipv4::parse("10.20.0.9")});
  for (const auto mode : {inventory::DhcpMode::Authoritative, inventory::DhcpMode::Proxy}) {
    network.dhcp_mode = mode;
    EXPECT_EQ(refusal(renderDnsmasq(cluster, kUnitSite)), "");
  }
}

/// Options of the dnsmasq that is installed here, as it lists them itself.
std::set<std::string> optionsOfDnsmasq() {
  const auto help = io::runChecked({.program = "dnsmasq", .args = {"--help"}});
  EXPECT_TRUE(help) << help.error().str();
  std::set<std::string> out;
  std::istringstream words(help.value_or(""));
  for (std::string word; words >> word;)
    if (word.starts_with("--")) out.insert(word.substr(2, word.find_first_of("=[,") - 2));
  return out;
}

TEST(DnsmasqCheck, ofAllOptionsOfDnsmasqOnlyThese) {
  const std::set<std::string> taken_with_text{"dhcp-match",       "dhcp-userclass", "dhcp-range",
                                              "dhcp-option",      "dhcp-boot",      "pxe-service",
                                              "dhcp-option-force"};
  const std::set<std::string> taken_alone{"no-resolv", "no-hosts",    "bind-interfaces",
                                          "log-dhcp",  "enable-tftp", "dhcp-authoritative"};
  const auto options = optionsOfDnsmasq();
  ASSERT_GT(options.size(), 150u);
  for (const char* known :
       {"dhcp-script", "conf-dir", "conf-file", "dhcp-luascript", "log-facility", "dhcp-hostsfile",
        "enable-dbus", "server", "addn-hosts", "dumpfile"})
    EXPECT_TRUE(options.contains(known)) << known << ": does this still read dnsmasq's list?";
  for (const auto& option : options) {
    EXPECT_EQ(refusal(withLine(option + "=/tmp/x\n")).empty(), taken_with_text.contains(option))
        << option;
    EXPECT_EQ(refusal(withLine(option + "\n")).empty(), taken_alone.contains(option)) << option;
  }
}

TEST(DnsmasqCheck, valuesThatLeadElsewhere) {
  for (const char* line : {"port=53",
                           "pid-file=/etc/passwd",
                           "user=root",
                           "interface=",
                           "interface=a b",
                           "interface=an-interface-name-too-long",
                           "except-interface=eth0",
                           "tftp-root=/etc",
                           "tftp-root=/run/muster",
                           "tftp-root=/run/muster/../../etc",
                           "tftp-root=run/muster/tftp",
                           "tftp-root=/run/muster-other",
                           "dhcp-hostsdir=/run/muster/hosts/",
                           "tftp-unique-root=",
                           "dhcp-leasefile=/run/muster/leases",
                           "dhcp-lease-max=-1",
                           "dhcp-lease-max=",
                           "dhcp-boot=",
                           "dhcp-boot",
                           " dhcp-script=/bin/sh",
                           "--dhcp-script=/bin/sh",
                           "dhcp-script =/bin/sh",
                           "DHCP-SCRIPT=/bin/sh",
                           "dhcp-option=a\\b",
                           "dhcp-option=a\tb",
                           "dhcp-option=a\rdhcp-script=/bin/sh",
                           "#dhcp"})
    EXPECT_THAT(refusal(withLine(std::string(line) + "\n")), ::testing::HasSubstr("line ")) << line;
  EXPECT_THAT(refusal(withLine(std::string("dhcp-option=a\0b", 15) + "\n")),
              ::testing::HasSubstr("line "));
}

/// It reads pieces of 1,024 bytes, and each piece is a line to it.
TEST(DnsmasqCheck, aLongLineIsTwoForDnsmasqAndNoneHere) {
  muster::test::TempFolder folder;
  const auto file = folder / "dnsmasq.conf";
  const auto begin = std::string("dhcp-boot=");
  const auto hidden = begin + std::string(1024 - begin.size(), 'a') + "no-such-option=/bin/sh\n";
  ASSERT_TRUE(io::writeFileAtomic(file, "port=0\n" + hidden));
  const auto said =
      io::runBlocking({.program = "dnsmasq", .args = {"--test", "--conf-file=" + file.string()}});
  ASSERT_TRUE(said) << said.error().str();
  EXPECT_NE(said->code, 0) << "dnsmasq has not seen the second option: the limit has no reason";
  EXPECT_THAT(refusal(withLine(hidden)), ::testing::HasSubstr("more than 1000 bytes"));
}

TEST(DnsmasqCheck, withoutThemItWouldServeDnsOrEveryNetwork) {
  for (const std::string needed : {"port=0\n", "interface=br0\n", "bind-interfaces\n"}) {
    auto text = renderDnsmasq(twoNodes(), kUnitSite);
    const auto at = text.find("\n" + needed);
    ASSERT_NE(at, std::string::npos) << needed;
    text.erase(at + 1, needed.size());
    EXPECT_THAT(refusal(text), ::testing::HasSubstr("is missing")) << needed;
  }
  EXPECT_NE(refusal(""), "");
}

TEST(DnsmasqCheck, leasesAndNothingElse) {
  EXPECT_TRUE(checkDnsmasqFile(
      "dnsmasq.leases", "1764152000 52:54:00:00:00:01 10.20.1.1 gpu001 01:52:54:00:00:00:01\n",
      kUnitFolders));
  EXPECT_FALSE(checkDnsmasqFile("dnsmasq.leases", "a\x1b[2J\n", kUnitFolders));
  for (const char* name : {"", "hosts", "../dnsmasq.conf", "/etc/dnsmasq.conf"})
    EXPECT_FALSE(checkDnsmasqFile(name, "", kUnitFolders)) << name;
}

}  // namespace
}  // namespace muster::provision
