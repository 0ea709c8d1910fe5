// dnsmasq itself, started by Netboot in a network namespace of its own, asked by hand-made DHCP and TFTP packets from
// another namespace: what firmware and iPXE of known and unknown machines are told.
#include "base/io/files.h"
#include "provision/netboot/netboot.h"

#include "tests/fakes/fake_image_store.h"
#include "tests/provision/clusters.h"
#include "tests/provision/token_gateway.h"
#include "tests/run_async.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <cstring>

namespace muster::provision {
namespace {

constexpr int kTries = 30;  ///< of a second each; dnsmasq may still be starting

struct Offer {
  std::string address, file, vendor_class;
};

constexpr int kHttpArch = 16;

/// A DHCPDISCOVER as firmware sends it.
std::string discover(const Mac& mac, std::optional<int> arch, bool ipxe) {
  std::string packet(236, '\0');
  packet[0] = 1, packet[1] = 1, packet[2] = 6;
  packet.replace(4, 4, "mstr");
  packet[10] = '\x80';  // answer by broadcast
  unsigned bytes[6];
  std::sscanf(mac.str().c_str(), "%x:%x:%x:%x:%x:%x", &bytes[0], &bytes[1], &bytes[2], &bytes[3], &bytes[4], &bytes[5]);
  for (int i = 0; i < 6; ++i) packet[28 + i] = static_cast<char>(bytes[i]);
  const auto option = [&](int number, const std::string& value) {
    packet += static_cast<char>(number);
    packet += static_cast<char>(value.size());
    packet += value;
  };
  packet += "\x63\x82\x53\x63";
  option(53, "\x01");
  option(55, "\x01\x03\x06\x3c\x42\x43");
  if (arch) option(93, std::string{'\0', static_cast<char>(*arch)});
  if (arch == kHttpArch) option(60, "HTTPClient:Arch:00016:UNDI:003001");
  else if (arch) option(60, "PXEClient:Arch:0000" + std::to_string(*arch) + ":UNDI:003016");
  if (ipxe) option(77, "iPXE");
  if (ipxe) option(175, std::string("\xb1\x02\x1a\xf4", 4));
  return packet + '\xff';
}

std::optional<Offer> parseOffer(std::string_view packet) {
  if (packet.size() < 240 || packet[0] != 2 || packet.substr(4, 4) != "mstr") return std::nullopt;
  Offer offer;
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, packet.data() + 16, text, sizeof text);
  offer.address = text;
  offer.file = std::string(packet.substr(108, 128).data());
  for (std::size_t at = 240; at + 1 < packet.size() && packet[at] != '\xff'; at += 2 + static_cast<unsigned char>(packet[at + 1])) {
    if (packet[at] == 60) offer.vendor_class = std::string(packet.substr(at + 2, static_cast<unsigned char>(packet[at + 1])));
    if (packet[at] == 67) offer.file = std::string(packet.substr(at + 2, static_cast<unsigned char>(packet[at + 1])));
  }
  if (const auto end = offer.file.find('\0'); end != std::string::npos) offer.file.resize(end);
  return offer;
}

class DhcpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
    home_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "network namespaces cannot be made here: " << std::strerror(errno);
    io::Command sleep;
    sleep.program = "sleep";
    sleep.args = {"infinity"};
    auto holder = processes_->start(sleep, {});  // keeps the client's namespace, and names it
    ASSERT_TRUE(holder) << holder.error().str();
    client_ = std::move(*holder);
    client_ns_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
    server_ns_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    const auto pid = std::to_string(client_->pid());
    ip("link add server type veth peer name client");
    ip("link set client netns " + pid);
    ip("link set lo up");
    ip("link set server up");
    ip("addr add 10.20.0.1/16 dev server");
    ASSERT_EQ(::setns(client_ns_.get(), CLONE_NEWNET), 0);
    ip("link set client up");
    dhcp_ = openSocket(68);
    ASSERT_EQ(::setns(server_ns_.get(), CLONE_NEWNET), 0);
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    netboot_ =
        makeNetboot(cluster_, images_, gateway_, *processes_, io_.get_executor(), {folder_ / "run", 8080, 8443, std::string(64, 'c')});
    const auto started = netboot_->start();
    ASSERT_TRUE(started) << started.error().str();
  }
  void TearDown() override {
    if (netboot_) netboot_->stop();
    client_.reset();
    if (home_.valid()) ::setns(home_.get(), CLONE_NEWNET);
    if (HasFailure()) std::cerr << io::readFile(folder_ / "run/dnsmasq.log").value_or("no log") << "\n";
  }
  void ip(const std::string& words) {
    io::Command command;
    command.program = "sh";
    command.args = {"-c", "ip " + words};
    const auto done = io::runChecked(command);
    ASSERT_TRUE(done) << done.error().str();
  }
  static io::Fd openSocket(int port) {
    io::Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    const timeval second{1, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
    ::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, "client", 7);
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    const sockaddr_in here{AF_INET, htons(static_cast<std::uint16_t>(port)), {}, {}};
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here), 0) << std::strerror(errno);
    return fd;
  }
  /// Sends until something comes back that `read` accepts.
  template <class Read>
  auto ask(const io::Fd& fd, const std::string& packet, sockaddr_in to, Read read) -> decltype(read(std::string_view())) {
    for (int i = 0; i < kTries; ++i) {
      ::sendto(fd.get(), packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
      char answer[2048];
      const auto n = ::recv(fd.get(), answer, sizeof answer, 0);
      if (n <= 0) continue;
      if (auto accepted = read(std::string_view(answer, static_cast<std::size_t>(n)))) return accepted;
    }
    return {};
  }
  std::optional<Offer> offerTo(const std::string& mac, std::optional<int> arch, bool ipxe) {
    const sockaddr_in all{AF_INET, htons(67), {INADDR_BROADCAST}, {}};
    const auto question = discover(*Mac::parse(mac), arch, ipxe);
    const auto read = [&question](std::string_view answer) {  // an earlier question may be answered late
      return answer.size() > 34 && answer.substr(28, 6) == question.substr(28, 6) ? parseOffer(answer) : std::nullopt;
    };
    return ask(dhcp_, question, all, read);
  }

  /// dnsmasq reads a moment after the change: asks until the answer is right.
  template <class Right>
  bool offerBecomes(const std::string& mac, Right right) {
    for (int i = 0; i < kTries; ++i) {
      const auto offer = offerTo(mac, 7, true);
      if (offer && right(*offer)) return true;
    }
    return false;
  }

  asio::io_context io_;
  muster::test::TempFolder folder_;
  inventory::Cluster cluster_ = twoNodes();
  muster::test::FakeImageStore images_;
  TokenGateway gateway_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> client_;
  std::unique_ptr<Netboot> netboot_;
  io::Fd home_, client_ns_, server_ns_, dhcp_;
};

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
  EXPECT_EQ(offerTo("52:54:00:00:00:01", std::nullopt, false)->file, "") << "an installed system gets an address and nothing to boot";

  const auto stranger = offerTo("52:54:00:ff:ff:ff", 0, true);
  ASSERT_TRUE(stranger);
  EXPECT_TRUE(stranger->address.starts_with("10.20.24")) << stranger->address << " is not from the range";
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
  EXPECT_EQ(offerTo("52:54:00:00:00:01", kHttpArch, true)->file, "http://10.20.0.1:8080/boot/ipxe?mac=${netX/mac}");
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
  EXPECT_TRUE(offerBecomes("52:54:00:00:00:07", [](const Offer& offer) { return offer.address == "10.20.1.7"; })) << "added";
  ASSERT_TRUE(netboot_->follow(small));
  EXPECT_TRUE(offerBecomes("52:54:00:00:00:07", [&](const Offer& offer) { return inRange(offer.address); })) << "removed";
  EXPECT_EQ(offerTo("52:54:00:00:00:01", 7, true)->address, "10.20.1.1") << "the others stay";
  netboot_.reset();
}

TEST_F(DhcpTest, ipxeComesByTftp) {
  ASSERT_TRUE(offerTo("52:54:00:00:00:02", 0, false)) << "dnsmasq is up";
  ASSERT_EQ(::setns(client_ns_.get(), CLONE_NEWNET), 0);
  ip("addr add 10.20.1.2/16 dev client");
  const auto socket = openSocket(0);
  ASSERT_EQ(::setns(server_ns_.get(), CLONE_NEWNET), 0);
  sockaddr_in tftp{AF_INET, htons(69), {}, {}};
  ::inet_pton(AF_INET, "10.20.0.1", &tftp.sin_addr);
  const auto read = [](std::string_view packet) { return std::optional<std::string>(packet); };
  const auto request = [](const std::string& file) { return std::string("\0\1", 2) + file + '\0' + "octet" + '\0'; };
  const auto data = ask(socket, request("undionly.kpxe"), tftp, read);
  ASSERT_TRUE(data);
  const auto file = io::readFile("/usr/lib/ipxe/undionly.kpxe");
  EXPECT_EQ(data->substr(0, 4), std::string("\0\3\0\1", 4)) << "the first block of data";
  EXPECT_EQ(data->substr(4), file->substr(0, 512));
}

}  // namespace
}  // namespace muster::provision
