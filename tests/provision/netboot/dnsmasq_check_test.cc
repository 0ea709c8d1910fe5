// SPDX-License-Identifier: Apache-2.0
// What the unit lets dnsmasq read: what muster writes, and of dnsmasq's own list of options nothing
// that could leave DHCP and TFTP.
#include "provision/netboot/dnsmasq_check.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "provision/netboot/dnsmasq_config.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <sstream>

namespace muster::provision {
namespace {

using ::testing::HasSubstr;

const DnsmasqFolders kFolders{"/var/lib/muster-dnsmasq", "/run/muster"};
const DnsmasqSite kSite{.interface = "br0",
                        .run_folder = kFolders.own,
                        .hosts_folder = "/run/muster/hosts-0123456789ab",
                        .tftp_root = "/run/muster/tftp-0123456789ab"};

std::string refusal(const std::string& text) {
  const auto done = checkDnsmasqFile("dnsmasq.conf", text, kFolders);
  return done ? "" : done.error().str();
}
std::string withLine(const std::string& line) { return renderDnsmasq(twoNodes(), kSite) + line; }

TEST(DnsmasqCheck, takesWhatMusterWrites) {
  auto cluster = twoNodes();
  EXPECT_EQ(refusal(renderDnsmasq(cluster, kSite)), "");
  auto& network = cluster.networks[0];
  network.gateway = *Ipv4::parse("10.20.0.254");
  network.dns = {*Ipv4::parse("10.20.0.53"), *Ipv4::parse("10.20.0.54")};
  network.boot_servers.push_back({.name = "rack1", .tftp = *Ipv4::parse("10.20.0.9")});
  for (const auto mode : {inventory::DhcpMode::Authoritative, inventory::DhcpMode::Proxy}) {
    network.dhcp_mode = mode;
    EXPECT_EQ(refusal(renderDnsmasq(cluster, kSite)), "");
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
    EXPECT_THAT(refusal(withLine(std::string(line) + "\n")), HasSubstr("line ")) << line;
  EXPECT_THAT(refusal(withLine(std::string("dhcp-option=a\0b", 15) + "\n")), HasSubstr("line "));
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
  EXPECT_THAT(refusal(withLine(hidden)), HasSubstr("more than 1000 bytes"));
}

TEST(DnsmasqCheck, withoutThemItWouldServeDnsOrEveryNetwork) {
  for (const std::string needed : {"port=0\n", "interface=br0\n", "bind-interfaces\n"}) {
    auto text = renderDnsmasq(twoNodes(), kSite);
    const auto at = text.find("\n" + needed);
    ASSERT_NE(at, std::string::npos) << needed;
    text.erase(at + 1, needed.size());
    EXPECT_THAT(refusal(text), HasSubstr("is missing")) << needed;
  }
  EXPECT_NE(refusal(""), "");
}

TEST(DnsmasqCheck, leasesAndNothingElse) {
  EXPECT_TRUE(checkDnsmasqFile(
      "dnsmasq.leases", "1764152000 52:54:00:00:00:01 10.20.1.1 gpu001 01:52:54:00:00:00:01\n",
      kFolders));
  EXPECT_FALSE(checkDnsmasqFile("dnsmasq.leases", "a\x1b[2J\n", kFolders));
  for (const char* name : {"", "hosts", "../dnsmasq.conf", "/etc/dnsmasq.conf"})
    EXPECT_FALSE(checkDnsmasqFile(name, "", kFolders)) << name;
}

}  // namespace
}  // namespace muster::provision
