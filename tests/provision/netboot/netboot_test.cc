// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/netboot.h"

#include "base/ip_address.h"

#include "base/io/files.h"
#include "base/limits.h"
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "provision/images/ramos.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/provision/clusters.h"
#include "tests/provision/enrollment_gateway.h"
#include "tests/provision/netboot/netboot_site.h"
#include "tests/run_async.h"
#include "tests/slowed_clock.h"

#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <set>

namespace muster::provision {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(NetbootTest, onlyTheArmedNodeBootsIntoTheRamOs) {
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  const auto script = ask("/boot/ipxe?mac=52:54:00:00:00:01");
  EXPECT_THAT(script, HasSubstr("muster.enrolment=enrollment-gpu001-1 muster.node=gpu001"));
  EXPECT_EQ(ask("/boot/ipxe?mac=52%3A54%3A00%3A00%3A00%3A01"), script)
      << "asking again is not another arming";
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:02", "10.20.1.2"), HasSubstr("sanboot"));
  netboot().disarm(NodeName("gpu001"));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), Not(HasSubstr("muster.enrolment")));
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), HasSubstr("enrollment-gpu001-2"))
      << "each arming has an id of its own";
}

TEST_F(NetbootTest, aNodeThatAProcessBeforeThisOneHasStartedIsArmedWhenItAsks) {
  on_its_way = {NodeName("gpu001")};
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01", "10.20.1.2"), HasSubstr("sanboot"));
  const auto script = ask("/boot/ipxe?mac=52:54:00:00:00:01");
  EXPECT_THAT(script, HasSubstr("muster.enrolment=enrollment-gpu001-1 "));
  EXPECT_EQ(ask("/boot/ipxe?mac=52:54:00:00:00:01"), script) << "once";
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:02", "10.20.1.2"), HasSubstr("sanboot"));
}

TEST_F(NetbootTest, theScriptOfTheSecondHostLoadsFromItAndNamesTheOthersToo) {
  auto& network = cluster.networks[0];
  network.controllers = {*Ipv4::parse("10.20.0.1"), *Ipv4::parse("10.20.0.2"),
                         *Ipv4::parse("10.20.0.3")};
  ASSERT_TRUE(inventory::putOnHost(network, {*Ipv4::parse("10.20.0.2")}));
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  const auto script = ask("/boot/ipxe?mac=52:54:00:00:00:01");
  EXPECT_THAT(
      script,
      HasSubstr(
          " muster.url=https://10.20.0.2:8443,https://10.20.0.1:8443,https://10.20.0.3:8443 "));
  EXPECT_THAT(script, HasSubstr("initrd http://10.20.0.2:8080/ramos/initrd.img"));
  EXPECT_THAT(script, Not(HasSubstr("10.20.0.1:8080")));
  auto other = cluster;
  other.networks[0].controllers.pop_back();
  EXPECT_FALSE(netboot().follow(other)) << "another list needs a start";
}

TEST_F(NetbootTest, aScriptEndsWithItsToken) {
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  clock.advance(gateway::kEnrollmentWindow);
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), HasSubstr("enrollment-gpu001-1"));
  clock.advance(std::chrono::seconds(1));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), HasSubstr("sanboot"))
      << "the RAM OS could not enroll any more";
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), HasSubstr("enrollment-gpu001-2"));
}

TEST_F(NetbootTest, aScriptHoldsLongerWhereMachinesStartSlowly) {
  place.set(3);
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  clock.advance(3 * gateway::kEnrollmentWindow);
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), HasSubstr("enrollment-gpu001-1"));
  clock.advance(std::chrono::seconds(1));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), HasSubstr("sanboot"));
}

TEST_F(NetbootTest, unknownAndMalformedRequestsStayOnDisk) {
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  for (const auto* target : {"/boot/ipxe", "/boot/ipxe?mac=", "/boot/ipxe?mac=junk",
                             "/boot/ipxe?mac=52:54:00:ff:ff:ff"}) {
    EXPECT_THAT(ask(target), HasSubstr("sanboot --no-describe --drive 0x80")) << target;
  }
}

TEST_F(NetbootTest, anotherNodeDoesNotGetTheToken) {
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01", "10.20.1.2"),
              Not(HasSubstr("muster.enrolment")));
}

TEST_F(NetbootTest, aUnknownSenderWithTheNodesMacDoesNotGetTheToken) {
  for (const auto mode : {inventory::DhcpMode::Authoritative, inventory::DhcpMode::Relay}) {
    cluster.networks[0].dhcp_mode = mode;
    ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
    for (const auto* from : {"10.20.240.77", "192.0.2.1", "junk", ""}) {
      EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01", from), Not(HasSubstr("muster.enrolment")))
          << from;
    }
    EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), HasSubstr("muster.enrolment="));
  }
}

TEST_F(NetbootTest, besideAnotherDhcpServerAnyAddressButAnotherNodesIsTheNode) {
  cluster.networks[0].dhcp_mode = inventory::DhcpMode::Proxy;
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01", "10.20.240.77"),
              HasSubstr("muster.enrolment="));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01", "10.20.1.2"),
              Not(HasSubstr("muster.enrolment")));
}

TEST_F(NetbootTest, firmwareThatBootsByHttpGetsIpxe) {
  const auto routes = netboot().routes();
  const auto route = std::find_if(routes.begin(), routes.end(),
                                  [](const io::Route& r) { return r.path == "/boot/ipxe.efi"; });
  ASSERT_NE(route, routes.end());
  io::ServerRequest request;
  request.target = "/boot/ipxe.efi";
  const auto response = muster::test::runAsync(call(route->handle, request)).value();
  const auto* file = std::get_if<io::FileBody>(&response.body);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(io::readFile(file->path).value_or("").substr(0, 2), "MZ")
      << file->path << " is no EFI program";
}

TEST_F(NetbootTest, armingSaysWhatIsMissing) {
  images.ram_os.reset();
  const auto without = netboot().arm(NodeName("gpu001"));
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().str(), HasSubstr("muster image build"));
  EXPECT_EQ(netboot().arm(NodeName("gpu999")).error().code(), ErrorCode::NotFound);
}

TEST_F(NetbootTest, startsDnsmasqOnTheControllersInterface) {
  ASSERT_TRUE(netboot().start());
  ASSERT_EQ(processes.daemons.size(), 1u);
  EXPECT_EQ(processes.daemons[0]->command.program, "dnsmasq");
  const auto file = io::readFile(folder / "run/dnsmasq.conf");
  ASSERT_TRUE(file);
  EXPECT_THAT(*file, HasSubstr("interface=lo\n"));
  netboot().stop();
  EXPECT_TRUE(processes.daemons[0]->terminated);
}

TEST_F(NetbootTest, folderThatDnsmasqCouldNotReadIsAnError) {
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0700));
  const auto started = netboot().start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), ErrorCode::Denied);
  EXPECT_THAT(started.error().str(), HasSubstr("is shut to other users"));
  EXPECT_TRUE(processes.daemons.empty());
}

TEST_F(NetbootTest, addressThatNoInterfaceHasIsAnError) {
  cluster.networks[0].controller = *Ipv4::parse("192.0.2.77");
  const auto started = netboot().start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().str(), HasSubstr("192.0.2.77"));
}

TEST_F(NetbootTest, nothingIsStartedWhenSomebodyElseDoesDhcp) {
  cluster.networks[0].dhcp_mode = inventory::DhcpMode::None;
  EXPECT_TRUE(netboot().start());
  EXPECT_TRUE(processes.daemons.empty());
}

TEST_F(NetbootTest, followsTheInventoryWithoutARestart) {
  ASSERT_TRUE(netboot().start());
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  auto bigger = cluster;
  auto added = cluster.nodes[1];
  added.name = NodeName("gpu003");
  added.mac = *Mac::parse("52:54:00:00:00:03");
  added.address = *Ipv4::parse("10.20.1.3");
  bigger.nodes.push_back(added);
  ASSERT_TRUE(netboot().follow(bigger));
  EXPECT_EQ(io::readFile(folder / "hosts/gpu003").value_or("none"),
            "52:54:00:00:00:03,10.20.1.3,gpu003\n");
  EXPECT_TRUE(processes.daemons[0]->signals.empty()) << "dnsmasq sees a new file by itself";
  ASSERT_TRUE(netboot().arm(NodeName("gpu003")));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:03", "10.20.1.3"),
              HasSubstr("muster.node=gpu003"));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), HasSubstr("muster.enrolment="))
      << "others stay armed";
  ASSERT_TRUE(netboot().follow(cluster));
  EXPECT_FALSE(std::filesystem::exists(folder / "hosts/gpu003"));
  EXPECT_EQ(processes.daemons[0]->signals, std::vector<int>{SIGHUP});
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:03", "10.20.1.3"),
              Not(HasSubstr("muster.enrolment")));
  EXPECT_EQ(netboot().arm(NodeName("gpu003")).error().code(), ErrorCode::NotFound);
  EXPECT_EQ(processes.daemons.size(), 1u);
  netboot().stop();
}

TEST_F(NetbootTest, nodeWithAnotherMacIsDisarmed) {
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  auto replaced = cluster;
  replaced.nodes[0].mac = *Mac::parse("52:54:00:00:00:aa");
  ASSERT_TRUE(netboot().follow(replaced));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:aa"), Not(HasSubstr("muster.enrolment")))
      << "the arming was for the old board";
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), Not(HasSubstr("muster.enrolment")));
  ASSERT_TRUE(netboot().follow(cluster));
}

TEST_F(NetbootTest, secureNodeFindsItsScriptOnlyByTftpAndOnlyWhileArmed) {
  for (const auto* name : {"vmlinuz", "initrd.img", "agent.img"})
    ASSERT_TRUE(io::writeFileAtomic(folder / name, name));
  images.ram_os = RamOs{folder / "vmlinuz", folder / "initrd.img", folder / "agent.img"};
  cluster.profiles.at("uefi").secure_boot = true;
  const auto tftp = folder / "tftp", own = tftp / "10.20.1.1";
  ASSERT_TRUE(netboot().start());
  EXPECT_FALSE(std::filesystem::exists(tftp / "shimx64.efi"))
      << "who is not armed must find nothing to boot";
  EXPECT_EQ(io::readFile(tftp / "ipxe.efi").value_or("").substr(0, 2), "MZ");
  const auto armed = netboot().arm(NodeName("gpu001"));
  ASSERT_TRUE(armed) << armed.error().str();
  EXPECT_THAT(io::readFile(own / "grub/grub.cfg").value_or(""),
              HasSubstr("'muster.enrolment=enrollment-gpu001-1' 'muster.node=gpu001'"));
  EXPECT_EQ(std::filesystem::status(own).permissions(), std::filesystem::perms::owner_all)
      << "nobody else on this machine writes there";
  for (const auto* name : {"shimx64.efi", "grubx64.efi"})
    EXPECT_EQ(io::readFile(own / name).value_or("").substr(0, 2), "MZ") << name;
  for (const auto* name : {"vmlinuz", "initrd.img", "agent.img"})
    EXPECT_EQ(io::readFile(own / "ramos" / name).value_or(""), name);
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), Not(HasSubstr("muster.enrolment")))
      << "iPXE is not signed";
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  EXPECT_THAT(io::readFile(own / "grub/grub.cfg").value_or(""), HasSubstr("enrollment-gpu001-2"));
  netboot().disarm(NodeName("gpu001"));
  EXPECT_FALSE(std::filesystem::exists(own));
  netboot().stop();
}

/// The controller has no package of their loaders: they came with the RAM OS.
TEST_F(NetbootTest, aNodeWithArm64LoadsWhatCameWithItsRamOs) {
  for (const auto* name : {"vmlinuz", "initrd.img", "agent.img", "shim.efi", "grub.efi"})
    ASSERT_TRUE(io::writeFileAtomic(folder / name, name));
  images.ram_os = RamOs{folder / "vmlinuz", folder / "initrd.img", folder / "agent.img",
                        folder / "shim.efi", folder / "grub.efi"};
  cluster.profiles.at("uefi").arch = Architecture::Arm64;
  const auto own = folder / "tftp/10.20.1.1";
  ASSERT_TRUE(netboot().start());
  EXPECT_FALSE(std::filesystem::exists(folder / "tftp/shimaa64.efi"))
      << "who is not armed must find nothing to boot";
  const auto armed = netboot().arm(NodeName("gpu001"));
  ASSERT_TRUE(armed) << armed.error().str();
  EXPECT_EQ(io::readFile(own / "shimaa64.efi").value_or(""), "shim.efi");
  EXPECT_EQ(io::readFile(own / "grubaa64.efi").value_or(""), "grub.efi");
  EXPECT_EQ(io::readFile(own / "ramos/vmlinuz").value_or(""), "vmlinuz");
  EXPECT_FALSE(std::filesystem::exists(own / "shimx64.efi"));
  EXPECT_THAT(io::readFile(own / "grub/grub.cfg").value_or(""),
              AllOf(HasSubstr("'muster.node=gpu001'"), HasSubstr("'console=ttyAMA0'"),
                    Not(HasSubstr("ttyS0"))));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), Not(HasSubstr("muster.enrolment")))
      << "there is no iPXE for it";
  auto other = cluster;
  other.profiles.at("uefi").arch = Architecture::Amd64;
  ASSERT_TRUE(netboot().follow(other));
  EXPECT_FALSE(std::filesystem::exists(own)) << "it would get another processor's files";
  netboot().stop();
}

/// Size and times say nothing: what is built so that it can be built again has the same times.
TEST_F(NetbootTest, whatASecureNodeLoadsIsWhatMusterHas) {
  const auto put = [this](const std::string& name, const std::string& content) {
    ASSERT_TRUE(io::writeFileAtomic(folder / name, content));
    std::filesystem::last_write_time(folder / name,
                                     std::filesystem::file_time_type::clock::time_point{});
  };
  put("vmlinuz", "kernel 1"), put("initrd.img", "initrd 1"), put("agent.img", "agent 1");
  images.ram_os = RamOs{folder / "vmlinuz", folder / "initrd.img", folder / "agent.img"};
  cluster.profiles.at("uefi").secure_boot = true;
  cluster.nodes[1].profile = "uefi";
  const auto tftp = folder / "tftp";
  const auto loads = [&tftp](const char* address, const char* name) {
    return io::readFile(tftp / address / "ramos" / name).value_or("");
  };
  ASSERT_TRUE(netboot().start());
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  ASSERT_EQ(loads("10.20.1.1", "initrd.img"), "initrd 1");
  put("vmlinuz", "kernel 2"), put("initrd.img", "initrd 2"), put("agent.img", "agent 2");
  ASSERT_TRUE(netboot().arm(NodeName("gpu002")));
  EXPECT_EQ(loads("10.20.1.2", "vmlinuz"), "kernel 2");
  EXPECT_EQ(loads("10.20.1.2", "initrd.img"), "initrd 2");
  EXPECT_EQ(loads("10.20.1.1", "vmlinuz"), "kernel 1")
      << "who is loading gets kernel and initrd of one RAM OS";
  EXPECT_EQ(loads("10.20.1.1", "agent.img"), "agent 1");
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  EXPECT_EQ(loads("10.20.1.1", "initrd.img"), "initrd 2");
  const auto sets = std::count_if(
      std::filesystem::directory_iterator(tftp), std::filesystem::directory_iterator(),
      [](const auto& entry) { return entry.path().filename().string().starts_with("ramos-"); });
  EXPECT_EQ(sets, 1) << "what nobody loads is not kept";

  const auto copy = std::filesystem::canonical(tftp / "10.20.1.1/ramos/initrd.img");
  const auto times = std::filesystem::last_write_time(copy);
  std::ofstream(copy) << "initrd 3";  // of the same size
  std::filesystem::last_write_time(copy, times);
  ASSERT_TRUE(netboot().arm(NodeName("gpu002")));
  EXPECT_EQ(loads("10.20.1.2", "initrd.img"), "initrd 2") << "a damaged copy is made anew";
  netboot().stop();
}

TEST_F(NetbootTest, aSecureNodeThatDoesNotComeFindsNothingOnceItsTokenHasExpired) {
  for (const auto* name : {"vmlinuz", "initrd.img", "agent.img"})
    ASSERT_TRUE(io::writeFileAtomic(folder / name, name));
  images.ram_os = RamOs{folder / "vmlinuz", folder / "initrd.img", folder / "agent.img"};
  cluster.profiles.at("uefi").secure_boot = true;
  cluster.nodes[1].profile = "uefi";
  const auto own = folder / "tftp/10.20.1.1", other = folder / "tftp/10.20.1.2";
  ASSERT_TRUE(netboot().start());
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  clock.advance(gateway::kEnrollmentWindow - std::chrono::minutes(1));
  ASSERT_TRUE(netboot().arm(NodeName("gpu002")));
  io.run_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(std::filesystem::exists(own)) << "it may still come";
  clock.advance(std::chrono::minutes(1) + std::chrono::seconds(1));
  for (int looks = 0; looks < 1000 && std::filesystem::exists(own); ++looks) {
    io.restart();
    io.run_for(std::chrono::milliseconds(5));
  }
  EXPECT_FALSE(std::filesystem::exists(own));
  EXPECT_TRUE(std::filesystem::exists(other));
  netboot().disarm(NodeName("gpu002"));
  netboot().stop();
}

TEST_F(NetbootTest, aNodeWithALiveImageStartsThatImagesKernel) {
  cluster.images["bookworm"].kind = inventory::ImageKind::Live;
  images.add("bookworm", "d1d1");
  images.images["bookworm"].live = true;
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), HasSubstr("/ramos/vmlinuz"))
      << "its kernel is not taken out yet: the RAM OS's own will do for all else";
  images.images["bookworm"].kernel = folder / "kernel";
  images.images["bookworm"].modules = folder / "modules";
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  const auto script = ask("/boot/ipxe?mac=52:54:00:00:00:01");
  EXPECT_THAT(script, HasSubstr("http://127.0.0.1:8080/images/d1d1/vmlinuz"));
  EXPECT_THAT(script, HasSubstr("muster.image=d1d1"));
}

TEST_F(NetbootTest, aSecureNodeFindsTheKernelOfItsLiveImageByTftp) {
  for (const auto* name : {"vmlinuz", "initrd.img", "agent.img", "live-kernel", "live-modules"})
    ASSERT_TRUE(io::writeFileAtomic(folder / name, name));
  images.ram_os = RamOs{folder / "vmlinuz", folder / "initrd.img", folder / "agent.img"};
  images.add("bookworm", "d1d1");
  images.images["bookworm"].live = true;
  images.images["bookworm"].kernel = folder / "live-kernel";
  images.images["bookworm"].modules = folder / "live-modules";
  cluster.images["bookworm"].kind = inventory::ImageKind::Live;
  cluster.profiles.at("uefi").secure_boot = true;
  const auto own = folder / "tftp/10.20.1.1";
  ASSERT_TRUE(netboot().start());
  const auto armed = netboot().arm(NodeName("gpu001"));
  ASSERT_TRUE(armed) << armed.error().str();
  EXPECT_THAT(io::readFile(own / "grub/grub.cfg").value_or(""),
              HasSubstr("linux /images/d1d1/vmlinuz "));
  EXPECT_EQ(io::readFile(own / "images/d1d1/vmlinuz").value_or(""), "live-kernel");
  EXPECT_EQ(io::readFile(own / "images/d1d1/modules.img").value_or(""), "live-modules");
  EXPECT_EQ(io::readFile(own / "ramos/initrd.img").value_or(""), "initrd.img");
  netboot().stop();
}

TEST_F(NetbootTest, besideAnotherDhcpServerASecureNodesFolderIsNamedByItsMac) {
  for (const auto* name : {"vmlinuz", "initrd.img", "agent.img"})
    ASSERT_TRUE(io::writeFileAtomic(folder / name, name));
  images.ram_os = RamOs{folder / "vmlinuz", folder / "initrd.img", folder / "agent.img"};
  cluster.profiles.at("uefi").secure_boot = true;
  cluster.networks[0].dhcp_mode = inventory::DhcpMode::Proxy;
  ASSERT_TRUE(netboot().start());
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  EXPECT_TRUE(std::filesystem::exists(folder / "tftp/52-54-00-00-00-01/grub/grub.cfg"))
      << "as dnsmasq finds it by ARP";
  netboot().stop();
}

TEST_F(NetbootTest, whatAKilledControllerHadArmedIsNotArmedAnyMore) {
  ASSERT_TRUE(io::makeDirs(folder / "tftp/10.20.1.1/grub"));
  ASSERT_TRUE(netboot().start());
  EXPECT_FALSE(std::filesystem::exists(folder / "tftp/10.20.1.1"));
  netboot().stop();
}

TEST_F(NetbootTest, nodesOfABootServerLoadFromThere) {
  cluster.networks[0].boot_servers = {{"b1", std::nullopt, "http://10.20.0.9:8000", {"r1"}}};
  cluster.nodes[0].rack = "r1";
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  const auto script = ask("/boot/ipxe?mac=52:54:00:00:00:01");
  EXPECT_THAT(script, HasSubstr("kernel http://10.20.0.9:8000/ramos/vmlinuz "));
  EXPECT_THAT(script, HasSubstr("muster.url=https://127.0.0.1:8443 "))
      << "the agent asks the controller";
}

TEST_F(NetbootTest, dnsmasqRunsOnFromOneControllerToTheNext) {
  ASSERT_TRUE(netboot().start());
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  auto running = netboot().release();
  netboot_.reset();
  EXPECT_FALSE(processes.daemons[0]->terminated);
  cluster.nodes.pop_back();
  ASSERT_TRUE(netboot().goOn(std::move(running)));
  EXPECT_EQ(processes.daemons.size(), 1u) << "the same dnsmasq";
  EXPECT_EQ(processes.daemons[0]->signals, std::vector<int>{SIGHUP}) << "gpu002 is gone";
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), Not(HasSubstr("muster.enrolment")))
      << "nobody is armed by another controller";

  running = netboot().release();
  netboot_.reset();
  cluster.networks[0].gateway = *Ipv4::parse("10.20.0.254");
  ASSERT_TRUE(netboot().goOn(std::move(running)));
  EXPECT_TRUE(processes.daemons[0]->terminated) << "another network is another dnsmasq";
  EXPECT_EQ(processes.daemons.size(), 2u);

  running = netboot().release();
  netboot_.reset();
  processes.daemons[1]->running = false;
  ASSERT_TRUE(netboot().goOn(std::move(running)));
  EXPECT_EQ(processes.daemons.size(), 3u) << "one that has died is started anew";
  netboot().stop();
  EXPECT_TRUE(processes.daemons[2]->terminated);
}

TEST_F(NetbootTest, anotherNetworkIsNotFollowed) {
  ASSERT_TRUE(netboot().start());
  auto moved = cluster;
  moved.networks[0].dhcp_range.reset();
  const auto followed = netboot().follow(moved);
  ASSERT_FALSE(followed);
  EXPECT_EQ(followed.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(followed.error().str(), HasSubstr("start muster again"));
  netboot().stop();
}

}  // namespace
}  // namespace muster::provision
