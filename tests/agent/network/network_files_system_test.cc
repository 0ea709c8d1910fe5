// SPDX-License-Identifier: Apache-2.0
// What others make of the files: netplan's generator, NetworkManager's own reader, and
// systemd-networkd with a kernel.
#include "agent/network/network_files.h"

#include "tests/agent/network/networks.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "validate/checks/node_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace muster::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

/// Sections of an INI file, each as the set of its lines; sections that repeat are numbered.
using Ini = std::map<std::string, std::multiset<std::string>>;

Ini parseIni(const std::string& text) {
  Ini out;
  std::string section;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.front() != '[') {
      if (line == "PrimarySlave=true") line = "PrimarySlave=yes";  // networkd takes both
      out[section].insert(line);
      continue;
    }
    section = line;
    for (int i = 2; out.contains(section); ++i) section = line + std::to_string(i);
    out[section];
  }
  return out;
}

/// The first of these programs; empty: none.
std::string firstOf(std::initializer_list<const char*> places) {
  std::error_code error;
  for (const char* place : places)
    if (fs::exists(place, error)) return place;
  return {};
}

Result<io::ProcessExit> run(std::string program, std::vector<std::string> args,
                            std::string input = {}) {
  io::Command command{.program = std::move(program), .args = std::move(args)};
  command.stdin_text = std::move(input);
  return io::runBlocking(command);
}

/// What netplan says beyond our files, and why it makes no difference.
void removeKnownDifferences(Ini& theirs) {
  if (auto netdev = theirs.find("[NetDev]"); netdev != theirs.end())
    std::erase_if(netdev->second,  // set when the link is made; ours by its .network file
                  [](const std::string& line) { return line.starts_with("MTUBytes="); });
  if (auto link = theirs.find("[Link]"); link != theirs.end()) {
    std::erase_if(link->second,  // the bond's, which its .netdev file says already
                  [](const std::string& line) { return line.starts_with("MACAddress="); });
    if (link->second.empty()) theirs.erase(link);
  }
}

TEST(NetworkSystem, netplanMakesWhatTheFilesForNetworkdSay) {
  const auto generate = firstOf({"/usr/libexec/netplan/generate", "/usr/lib/netplan/generate"});
  if (generate.empty()) GTEST_SKIP() << "netplan.io is not installed";
  const test::TempFolder root;
  ASSERT_TRUE(io::makeDirs(root / "usr/sbin"));
  ASSERT_TRUE(writeNetworkFiles(root.path(), sampleNodeNetwork(), NetworkStack::Netplan));
  const auto made = run(generate, {"--root-dir", root.path().string()});
  ASSERT_TRUE(made) << made.error().str();
  ASSERT_EQ(made->code, 0) << made->err;
  std::size_t compared = 0;
  for (const auto& file : networkdFiles(sampleNodeNetwork())) {
    const auto name = fs::path(file.path).filename().string();
    if (name.starts_with("90-")) continue;
    auto theirs = parseIni(io::readFile(root / ("run/systemd/network/10-netplan-" +
                                                name.substr(std::string("10-muster-").size())))
                               .value_or("(missing)"));
    removeKnownDifferences(theirs);
    EXPECT_EQ(parseIni(file.content), theirs) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 11u);
}

TEST(NetworkSystem, networkManagerReadsEachKeyfileWhole) {
  const auto there = run("nmcli", {"--version"});
  if (!there || there->code != 0) GTEST_SKIP() << "nmcli (network-manager) is not installed";
  for (const auto& file : keyfiles(sampleNodeNetwork())) {
    const auto read =
        run("nmcli", {"--offline", "connection", "modify", "connection.autoconnect", "yes"},
            file.content);
    ASSERT_TRUE(read) << read.error().str();
    ASSERT_EQ(read->code, 0) << file.path << ": " << read->err;
    const auto theirs = parseIni(read->out);
    for (const auto& [section, entries] : parseIni(file.content))
      for (const auto& entry : entries)
        EXPECT_TRUE(theirs.contains(section) && theirs.at(section).contains(entry))
            << file.path << ": " << section << " " << entry << "\n"
            << read->out;
  }
}

/// systemd-networkd itself, in a namespace of its own, with the kernel's answer read by the check
/// that runs on nodes.
class NetworkdTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root for namespaces";
    if (firstOf({"/lib/systemd/systemd-networkd"}).empty())
      GTEST_SKIP() << "systemd-networkd is not installed";
  }
  static bool kernelHas(const char* kind) {
    const auto made = run("unshare", {"-n", "ip", "link", "add", "x0", "type", kind});
    return made && made->code == 0;
  }
  /// `port_channel`: Ethernets whose other ends a switch has joined.
  validate::KernelNetwork configure(const wire::NodeNetwork& network,
                                    const std::string& port_channel = {}) {
    const auto files = folder_ / "files";
    EXPECT_TRUE(io::makeDirs(files));
    for (const auto& file : networkdFiles(network))
      if (!file.path.ends_with("90-muster-fallback.network"))
        EXPECT_TRUE(io::writeFileAtomic(files / fs::path(file.path).filename(), file.content));
    std::vector<std::string> args = {
        "--mount", "--net",
        (test::sourceFolder() / "tests/agent/network/networkd_namespace.sh").string(),
        files.string(), folder_.path().string()};
    for (const auto& link : network.links)
      if (link.kind == wire::LinkKind::Ethernet) args.push_back(link.name);
    io::Command command{.program = "unshare", .args = args};
    command.env["SWITCH"] = port_channel;
    command.timeout = std::chrono::seconds(120);
    const auto ran = io::runBlocking(command);
    EXPECT_TRUE(ran && ran->code == 0) << (ran ? ran->err : ran.error().str());
    const auto text = [&](const char* name) {
      return io::readFile(folder_ / name).value_or("(missing)");
    };
    auto seen =
        validate::parseKernelNetwork(text("addr.json"), text("route4.json"), text("route6.json"));
    EXPECT_TRUE(seen) << seen.error().str() << text("log");
    return seen.value_or(validate::KernelNetwork());
  }
  /// veth pairs have neither a permanent address nor a place.
  static wire::NodeNetwork onVeth(wire::NodeNetwork network) {
    for (auto& link : network.links)
      if (link.kind == wire::LinkKind::Ethernet) link.mac.clear(), link.pci.clear();
    return network;
  }

  test::TempFolder folder_;
};

TEST_F(NetworkdTest, theKernelHasAddressesRoutesAndMtuAsDeclared) {
  auto network = onVeth(sampleNodeNetwork());
  std::erase_if(network.links, [](const wire::NetworkLink& link) {
    return link.kind != wire::LinkKind::Ethernet;
  });
  network.links[1].mtu = 9000;
  network.links[1].addresses = {"10.30.1.1/16", "fd00:30::101/64"};
  network.links[1].routes = {{"10.40.0.0/16", "10.30.0.254", 50},
                             {"fd00:40::/48", "fd00:30::fffe", 0}};
  const auto seen = configure(network);
  EXPECT_THAT(validate::networkProblems(network, seen), IsEmpty());
  network.links[1].mtu = 8000;
  network.links[1].addresses[0] = "10.30.1.2/16";
  network.links[1].routes[0].metric = 51;
  EXPECT_THAT(validate::networkProblems(network, seen),
              testing::UnorderedElementsAre(
                  HasSubstr("data0 has the MTU 9000"), HasSubstr("10.30.1.2/16 is missing"),
                  HasSubstr("10.30.1.1/16 is not declared"), HasSubstr("10.40.0.0/16")))
      << "the check can fail";
}

TEST_F(NetworkdTest, bondsAndVlansAsDeclared) {
  if (!kernelHas("bond")) GTEST_SKIP() << "this kernel has no bonding";
  const auto network = onVeth(sampleNodeNetwork());
  const auto seen = configure(network, "data0 data1");
  EXPECT_THAT(validate::networkProblems(network, seen), IsEmpty());
  auto other = network;
  other.links[5].bond.mode = wire::BondMode::BalanceXor;
  other.links[7].vlan_id = 31;
  EXPECT_THAT(validate::networkProblems(other, seen),
              ElementsAre(HasSubstr("bond0 has the mode 802.3ad, declared is balance-xor"),
                          HasSubstr("stor is vlan 30 on bond0, declared is VLAN 31 on bond0")));
}

TEST_F(NetworkdTest, aMemberThatTheSwitchDidNotJoinIsNamed) {
  if (!kernelHas("bond")) GTEST_SKIP() << "this kernel has no bonding";
  const auto network = onVeth(sampleNodeNetwork());
  EXPECT_THAT(validate::networkProblems(network, configure(network, "data0")),
              ElementsAre(HasSubstr("bond0: its member data1 did not join by LACP")));
}

}  // namespace
}  // namespace muster::agent
