// SPDX-License-Identifier: Apache-2.0
// What firmware and iPXE of known and unknown machines are told by dnsmasq, started by Netboot: on
// the controller's own network, behind a relay, and beside another DHCP server.
#include "base/io/daemon_server.h"
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "provision/netboot/dnsmasq_check.h"
#include "provision/netboot/dnsmasq_config.h"
#include "tests/provision/dhcp_site.h"

#include <sys/un.h>

#include <csignal>
#include <thread>

namespace muster::provision {
namespace {

TEST_F(DhcpTest, firmwareAndIpxeAreToldWhatTheyNeed) {
  const auto bios = offerTo("52:54:00:00:00:02", 0, false);
  ASSERT_TRUE(bios) << "no DHCP offer";
  EXPECT_EQ(bios->address, "10.20.1.2") << "static lease by MAC";
  EXPECT_EQ(bios->file, "undionly.kpxe");
  EXPECT_EQ(offerTo("52:54:00:00:00:01", 7, false)->file, "ipxe.efi");
  EXPECT_EQ(offerTo("52:54:00:00:00:01", 9, false)->file, "ipxe.efi");
  const auto ipxe = offerTo("52:54:00:00:00:01", 7, true);
  EXPECT_EQ(ipxe->address, "10.20.1.1");
  EXPECT_EQ(ipxe->file, "http://10.20.0.1:8080/boot/ipxe?mac=${netX/mac}");
  EXPECT_EQ(offerTo("52:54:00:00:00:01", std::nullopt, false)->file, "")
      << "an installed system gets an address and nothing to boot";

  const auto unknown = offerTo("52:54:00:ff:ff:ff", 0, true);
  ASSERT_TRUE(unknown);
  EXPECT_TRUE(unknown->address.starts_with("10.20.24"))
      << unknown->address << " is not from the range";
}

TEST_F(DhcpTest, uefiThatBootsByHttpGetsAUrlAndItsOwnVendorClass) {
  const auto http = offerTo("52:54:00:00:00:01", kHttpArch, false);
  ASSERT_TRUE(http) << "no DHCP offer";
  EXPECT_EQ(http->address, "10.20.1.1");
  EXPECT_EQ(http->file, "http://10.20.0.1:8080/boot/ipxe.efi");
  EXPECT_EQ(http->vendor_class, "HTTPClient") << "firmware drops an offer without it";
  const auto pxe = offerTo("52:54:00:00:00:01", 7, false);
  EXPECT_EQ(pxe->file, "ipxe.efi");
  EXPECT_EQ(pxe->vendor_class, "") << "PXE must not be told that it is HTTP";
  EXPECT_EQ(offerTo("52:54:00:00:00:01", kHttpArch, true)->file,
            "http://10.20.0.1:8080/boot/ipxe?mac=${netX/mac}");
}

TEST_F(DhcpTest, nodeWithSecureBootGetsShim) {
  ASSERT_TRUE(offerTo("52:54:00:00:00:01", 7, false)) << "dnsmasq is up, and takes a signal";
  auto secure = cluster_;
  secure.profiles.at("uefi").secure_boot = true;
  ASSERT_TRUE(netboot_->follow(secure));
  EXPECT_TRUE(offerBecomes("52:54:00:00:00:01", 7, false, [](const Offer& offer) {
    return offer.file == "shimx64.efi" && offer.address == "10.20.1.1";
  }));
  EXPECT_EQ(offerTo("52:54:00:00:00:01", kHttpArch, false)->file,
            "http://10.20.0.1:8080/boot/medium.iso")
      << "the signed GRUB has no HTTP; the medium brings it all";
  EXPECT_EQ(offerTo("52:54:00:00:00:02", 7, false)->file, "ipxe.efi") << "the others as before";
  netboot_.reset();
}

/// Which files firmware can start its own number tells, whatever the profile says.
TEST_F(DhcpTest, firmwareOfArm64GetsShimOfItsProcessor) {
  constexpr int kArm64 = 11, kHttpArm64 = 19;
  const auto pxe = offerTo("52:54:00:00:00:01", kArm64, false);
  ASSERT_TRUE(pxe) << "no DHCP offer";
  EXPECT_EQ(pxe->file, "shimaa64.efi");
  EXPECT_EQ(pxe->address, "10.20.1.1");
  EXPECT_EQ(pxe->vendor_class, "");
  const auto http = offerTo("52:54:00:00:00:01", kHttpArm64, false);
  EXPECT_EQ(http->vendor_class, "HTTPClient") << "firmware drops an offer without it";
  EXPECT_EQ(http->file, "http://10.20.0.1:8080/boot/medium.iso")
      << "the signed GRUB, loaded by HTTP, does not know where it came from";
}

TEST_F(DhcpTest, aNodeThatBootsByVirtualMediaGetsItsAddressAlone) {
  ASSERT_TRUE(offerTo("52:54:00:00:00:01", 7, false)) << "dnsmasq is up, and takes a signal";
  auto by_medium = cluster_;
  by_medium.profiles.at("uefi").boot_source = inventory::BootSource::VirtualMedia;
  ASSERT_TRUE(netboot_->follow(by_medium));
  for (const auto& [arch, ipxe] :
       {std::pair{7, false}, {7, true}, {11, false}, {16, false}, {19, false}}) {
    EXPECT_TRUE(offerBecomes("52:54:00:00:00:01", arch, ipxe, [](const Offer& offer) {
      return offer.file.empty() && offer.address == "10.20.1.1";
    })) << arch;
  }
  EXPECT_EQ(offerTo("52:54:00:00:00:02", 7, false)->file, "ipxe.efi") << "the others as before";
  netboot_.reset();
}

TEST_F(DhcpTest, nodesComeAndGoWhileDnsmasqRuns) {
  const auto inRange = [](const std::string& address) { return address.starts_with("10.20.24"); };
  const auto before = offerTo("52:54:00:00:00:07", 7, true);
  ASSERT_TRUE(before) << "no DHCP offer";
  EXPECT_TRUE(inRange(before->address)) << before->address;
  const auto small = cluster_;
  auto bigger = cluster_;
  auto added = cluster_.nodes[0];
  added.name = NodeName("gpu007");
  added.mac = *Mac::parse("52:54:00:00:00:07");
  added.address = *Ipv4::parse("10.20.1.7");
  bigger.nodes.push_back(added);
  ASSERT_TRUE(netboot_->follow(bigger));
  EXPECT_TRUE(offerBecomes("52:54:00:00:00:07", 7, true, [](const Offer& offer) {
    return offer.address == "10.20.1.7";
  })) << "added";
  ASSERT_TRUE(netboot_->follow(small));
  EXPECT_TRUE(offerBecomes("52:54:00:00:00:07", 7, true, [&](const Offer& offer) {
    return inRange(offer.address);
  })) << "removed";
  EXPECT_EQ(offerTo("52:54:00:00:00:01", 7, true)->address, "10.20.1.1") << "the others stay";
  netboot_.reset();
}

TEST_F(DhcpTest, dnsmasqOfAKilledControllerMakesRoom) {
  ASSERT_TRUE(offerTo("52:54:00:00:00:01", 7, true)) << "dnsmasq is up";
  const auto pid_file = folder_ / "run/dnsmasq.pid";
  const auto before = io::PidFile{pid_file}.alive();
  ASSERT_TRUE(before);
  const auto killed = std::move(netboot_);  // it does nothing more, and its dnsmasq runs on
  netboot_ = makeNetboot(
      cluster_, images_, gateway_, *processes_, io_.get_executor(),
      {folder_ / "run", 8080, 8443, std::string(64, 'c'), folder_ / "hosts", folder_ / "tftp"});
  const auto started = netboot_->start();
  ASSERT_TRUE(started) << started.error().str();
  const auto after = io::PidFile{pid_file}.alive();
  ASSERT_TRUE(after);
  EXPECT_NE(*after, *before);
  EXPECT_FALSE(std::filesystem::exists(fmt::format("/proc/{}/exe", *before)))
      << "two of them would answer each other's nodes";
  EXPECT_EQ(offerTo("52:54:00:00:00:01", 7, true)->address, "10.20.1.1");
  netboot_->stop();
}

TEST_F(DhcpTest, ipxeComesByTftp) {
  ASSERT_TRUE(offerTo("52:54:00:00:00:02", 0, false)) << "dnsmasq is up";
  io::Fd socket;
  in(client_, [&] {
    ip("addr add 10.20.1.2/16 dev client");
    socket = openSocket(0, "client");
  });
  sockaddr_in tftp{AF_INET, htons(69), {}, {}};
  ::inet_pton(AF_INET, "10.20.0.1", &tftp.sin_addr);
  const auto read = [](std::string_view packet) { return std::optional<std::string>(packet); };
  const auto request = [](const std::string& file) {
    return std::string("\0\1", 2) + file + '\0' + "octet" + '\0';
  };
  const auto data = ask(socket, request("undionly.kpxe"), tftp, read);
  ASSERT_TRUE(data);
  const auto file = io::readFile("/usr/lib/ipxe/undionly.kpxe");
  EXPECT_EQ(data->substr(0, 4), std::string("\0\3\0\1", 4)) << "the first block of data";
  EXPECT_EQ(data->substr(4), file->substr(0, 512));
}

/// gpu001's rack is behind a router that relays: server – router – far.
class RelayTest : public DhcpTest {
 protected:
  void declare() override {
    auto& network = cluster_.networks[0];
    network.dhcp_mode = inventory::DhcpMode::Relay;
    network.boot_servers = {{"b1", *Ipv4::parse("10.21.0.2"), "", {}},
                            {"b7", *Ipv4::parse("10.20.0.7"), "", {"r7"}}};
    cluster_.nodes[1].rack = "r7";
    inventory::Subnet row;
    row.name = "row-a";
    row.cidr = *Cidr::parse("10.21.0.0/24");
    row.gateway = *Ipv4::parse("10.21.0.1");
    row.dhcp_range = std::pair(*Ipv4::parse("10.21.0.200"), *Ipv4::parse("10.21.0.210"));
    row.boot_server = "b1";
    network.subnets = {row};
    cluster_.nodes[0].address = *Ipv4::parse("10.21.0.11");
  }
  void surround() override {
    auto &router = makeSpace(), &far = makeSpace();
    joinLan(router, "wan");
    ip("route add 10.21.0.0/24 via 10.20.0.254");
    in(router, [&] {
      ip("addr add 10.20.0.254/16 dev wan && ip link add inside type veth peer name far");
      ip("link set far netns " + far.pid() +
         " && ip link set inside up && ip addr add 10.21.0.1/24 dev inside");
      startOther({"--dhcp-relay=10.21.0.1,10.20.0.1",
                  "--dhcp-leasefile=" + (folder_ / "relay.leases").string()});
    });
    in(far, [&] {
      ip("link set far up");
      far_ = openSocket(68, "far");
    });
  }
  io::Fd far_;
};

TEST_F(RelayTest, requestsOfTwoSubnetsAreAnsweredEachWithItsOwn) {
  const auto node = offerTo("52:54:00:00:00:01", 7, false, far_);
  ASSERT_TRUE(node) << "no offer through the relay";
  EXPECT_EQ(node->address, "10.21.0.11");
  EXPECT_EQ(node->router, "10.21.0.1");
  EXPECT_EQ(node->file, "ipxe.efi");
  EXPECT_EQ(node->tftp_server, "10.21.0.2") << "the boot server of its subnet";
  EXPECT_EQ(offerTo("52:54:00:00:00:01", 7, true, far_)->file,
            "http://10.20.0.1:8080/boot/ipxe?mac=${netX/mac}")
      << "scripts come from the controller";
  const auto unknown = offerTo("52:54:00:ff:ff:ff", 0, false, far_);
  ASSERT_TRUE(unknown);
  EXPECT_TRUE(unknown->address.starts_with("10.21.0.20") || unknown->address == "10.21.0.210")
      << unknown->address;
  EXPECT_EQ(unknown->router, "10.21.0.1");
  EXPECT_EQ(unknown->tftp_server, "10.20.0.1");
  const auto near = offerTo("52:54:00:00:00:02", 0, false);
  ASSERT_TRUE(near) << "the controller's own network";
  EXPECT_EQ(near->address, "10.20.1.2");
  EXPECT_EQ(near->router, "") << "no gateway is declared there";
  EXPECT_EQ(near->tftp_server, "10.20.0.7") << "the boot server of its rack";
}

Task<io::ServerResponse> notHere() { co_return io::ServerResponse::text(404, "not here\n"); }

/// Somebody else's DHCP server has the addresses.
class ProxyTest : public DhcpTest {
 protected:
  static constexpr const char *kForeign = "10.20.0.5", *kOurs = "10.20.0.1";
  static constexpr int kPxePort = 4011;

  /// `item`: the boot server type that BIOS firmware has chosen from the menu (option 43, 9), and
  /// asks for (71).
  std::optional<Offer> fileFor(const std::string& mac, const std::string& from, int arch = 7,
                               const std::string& item = "") {
    auto request = discover(*Mac::parse(mac), arch, false);
    request[242] = 3;  // DHCPREQUEST
    if (!item.empty()) {
      request.pop_back();
      request += std::string("\x2b\x07\x47\x04", 4) + item + std::string("\0\0\xff\xff", 4);
    }
    in_addr address{};
    ::inet_pton(AF_INET, from.c_str(), &address);
    request.replace(12, 4, reinterpret_cast<const char*>(&address), 4);
    sockaddr_in to{AF_INET, htons(kPxePort), {}, {}};
    ::inet_pton(AF_INET, kOurs, &to.sin_addr);
    return ask(pxe_, request, to,
               [&request](std::string_view answer) { return parseOffer(answer, request); });
  }
  void declare() override {
    auto& network = cluster_.networks[0];
    network.dhcp_mode = inventory::DhcpMode::Proxy;
    network.dhcp_range.reset();
    cluster_.profiles.at("bios").secure_boot =
        true;  // gpu002 stands for a node with Secure Boot here
  }
  void surround() override {
    auto& foreign = makeSpace();
    joinLan(foreign, "other");
    in(foreign, [&] {
      ip("addr add 10.20.0.5/16 dev other");
      startOther({"--interface=other", "--bind-interfaces", "--dhcp-authoritative", "--no-ping",
                  "--dhcp-range=10.20.50.1,10.20.50.99,255.255.0.0,1h",
                  "--dhcp-leasefile=" + (folder_ / "other.leases").string()});
    });
  }
  io::Fd pxe_;
};

TEST_F(ProxyTest, addressesComeFromTheForeignServerAndBootFilesFromMuster) {
  const auto address = offerTo("52:54:00:00:00:01", 7, false, dhcp_, kForeign);
  ASSERT_TRUE(address) << "the foreign server is silent";
  EXPECT_TRUE(address->address.starts_with("10.20.50.")) << address->address;
  EXPECT_EQ(address->file, "");
  const auto ours = offerTo("52:54:00:00:00:01", 7, false, dhcp_, kOurs);
  ASSERT_TRUE(ours) << "muster is silent";
  EXPECT_EQ(ours->address, "0.0.0.0") << "muster gives no address";
  EXPECT_EQ(ours->vendor_class, "PXEClient");
  const auto script = offerTo("52:54:00:00:00:01", 7, true, dhcp_, kOurs);
  ASSERT_TRUE(script);
  EXPECT_EQ(script->file, "http://10.20.0.1:8080/boot/ipxe?mac=${netX/mac}");

  // Firmware then has its address from the foreign server, and asks muster's for the file.
  in(client_, [&] {
    ip("addr add " + address->address + "/16 dev client");
    pxe_ = openSocket(kPxePort, "client");
  });
  const auto file = fileFor("52:54:00:00:00:01", address->address);
  ASSERT_TRUE(file) << "muster is silent at port 4011";
  EXPECT_EQ(file->file, "ipxe.efi");
  EXPECT_EQ(file->tftp_server, kOurs);
  EXPECT_EQ(fileFor("52:54:00:00:00:02", address->address)->file, "shimx64.efi");

  // BIOS firmware takes the only entry of the menu that muster offers, and asks for it.
  const auto menu = offerTo("52:54:00:00:00:01", 0, false, dhcp_, kOurs);
  ASSERT_TRUE(menu) << "muster is silent to BIOS firmware";
  const auto entry = menu->pxe.find("muster");
  ASSERT_TRUE(entry != std::string::npos && entry >= 3) << "there is no menu";
  const auto bios =
      fileFor("52:54:00:00:00:01", address->address, 0, menu->pxe.substr(entry - 3, 2));
  ASSERT_TRUE(bios);
  EXPECT_EQ(bios->file, "undionly.kpxe");
  EXPECT_EQ(bios->tftp_server, kOurs);
}

/// SeaBIOS with the network ROM that QEMU has (iPXE): an address from the foreign server, the
/// script from muster.
TEST_F(ProxyTest, aBiosMachineBootsBesideTheForeignServer) {
  io::ServerOptions options;
  options.address = kOurs;
  options.port = 8080;
  auto http = io::startHttpServer(io_.get_executor(), options);
  ASSERT_TRUE(http) << http.error().str();
  bool kernel_wanted = false;
  (*http)->addRoutes(netboot_->routes());
  (*http)->addRoutes({{"GET", "/ramos/", [&kernel_wanted](io::ServerRequest) {
                         kernel_wanted = true;
                         return notHere();
                       }}});
  ASSERT_TRUE(netboot_->arm(NodeName("gpu001")));
  ip("tuntap add tap0 mode tap && ip link set tap0 master lan && ip link set tap0 up");
  io::Command command{.program = "qemu-system-x86_64"};
  command.args = {"-machine",
                  "pc,accel=tcg,graphics=off",
                  "-m",
                  "256",
                  "-display",
                  "none",
                  "-monitor",
                  "none",
                  "-no-reboot",
                  "-serial",
                  "file:" + (folder_ / "console").string(),
                  "-boot",
                  "n",
                  "-netdev",
                  "tap,id=n,ifname=tap0,script=no,downscript=no",
                  "-device",
                  "virtio-net-pci,netdev=n,mac=52:54:00:00:00:01"};
  auto machine = processes_->start(command, folder_ / "qemu.log");
  ASSERT_TRUE(machine) << machine.error().str();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(300);
  while (!kernel_wanted && (*machine)->running() && std::chrono::steady_clock::now() < until)
    io_.run_for(std::chrono::milliseconds(200));
  (*machine)->terminate(std::chrono::seconds(3));
  EXPECT_TRUE(kernel_wanted) << "its script did not come, or did not lead to the RAM OS: "
                             << io::readFile(folder_ / "console").value_or("")
                             << io::readFile(folder_ / "qemu.log").value_or("");
}

/// dnsmasq as its unit runs it, with the real check of its files.
class NetbootUnit : public DhcpTest {
 protected:
  void SetUp() override {
    DhcpTest::SetUp();
    if (IsSkipped()) return;
    netboot_->stop();
    netboot_.reset();
    unit_ = {"muster-dnsmasq", folder_ / "socket", folder_ / "own", ::geteuid()};
    std::filesystem::create_directory(unit_.folder);
    daemon_ = {
        .name = "dnsmasq",
        .command = {.program = "dnsmasq", .args = dnsmasqArguments(unit_.folder / kDnsmasqConf)},
        .check =
            [this](const std::string& name, const std::string& text) {
              return checkDnsmasqFile(name, text, {unit_.folder, folder_.path()});
            },
        .needed = {kDnsmasqConf},
        .first = {"dnsmasq.leases"},
        .removed = {}};
    serving_ = {.folder = unit_.folder, .asker = ::geteuid(), .idle = std::chrono::seconds(1)};
    listening_ = io::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, unit_.socket.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    ASSERT_EQ(::listen(listening_.get(), 4), 0);
    // It has this thread's network.
    server_ = std::jthread([this] { (void)io::serveDaemon(listening_.get(), daemon_, serving_); });
    netboot_ = makeNetboot(cluster_, images_, gateway_, *processes_, io_.get_executor(), options());
  }
  NetbootOptions options() const {
    NetbootOptions out{folder_ / "run", 8080, 8443, std::string(64, 'c'), folder_ / "hosts",
                       folder_ / "tftp"};
    out.dnsmasq_unit = unit_;
    return out;
  }

  io::DaemonUnit unit_;
  io::ServedDaemon daemon_;
  io::DaemonServerOptions serving_;
  io::Fd listening_;
  std::jthread server_;  ///< ends when it has been idle
};

TEST_F(NetbootUnit, servesNodesByTheUnitFollowsTheInventoryAndEndsWithIt) {
  const auto started = netboot_->start();
  ASSERT_TRUE(started) << started.error().str();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/dnsmasq.pid"))
      << "another's process is nobody's to end by its number";
  const auto& node = cluster_.nodes.front();
  auto offer = offerTo(node.mac.str(), 0, false);
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->address, node.address.str());
  EXPECT_TRUE(std::filesystem::exists(unit_.folder / "dnsmasq.leases"));

  auto changed = cluster_;
  changed.nodes.front().address = *Ipv4::parse("10.20.1.77");
  const auto followed = netboot_->follow(changed);
  ASSERT_TRUE(followed) << followed.error().str();
  EXPECT_TRUE(offerBecomes(node.mac.str(), 0, false,
                           [](const Offer& now) { return now.address == "10.20.1.77"; }));

  // The next run of the same process goes on with it.
  auto running = netboot_->release();
  ASSERT_TRUE(running.child);
  const auto pid = running.child->pid();
  netboot_ = makeNetboot(changed, images_, gateway_, *processes_, io_.get_executor(), options());
  const auto went_on = netboot_->goOn(std::move(running));
  ASSERT_TRUE(went_on) << went_on.error().str();
  EXPECT_EQ(::kill(pid, 0), 0);
  EXPECT_TRUE(offerTo(node.mac.str(), 0, false));
  netboot_->stop();
  EXPECT_NE(::kill(pid, 0), 0) << "DHCP never lives on without its master";
}

TEST_F(NetbootUnit, leasesOfBeforeGoAlong) {
  const std::string lease = "1999999999 02:00:00:00:00:09 10.20.9.9 other *\n";
  ASSERT_TRUE(io::makeDirs(folder_ / "run"));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "run/dnsmasq.leases", lease));
  const auto started = netboot_->start();
  ASSERT_TRUE(started) << started.error().str();
  EXPECT_EQ(io::readFile(unit_.folder / "dnsmasq.leases").value_or(""), lease);
}

}  // namespace
}  // namespace muster::provision
