// SPDX-License-Identifier: Apache-2.0
// dnsmasq itself, started by Netboot in a network namespace of its own, asked by hand-made DHCP and
// TFTP packets from another namespace.
#pragma once

#include "base/ids.h"
#include "base/io/files.h"
#include "provision/netboot/netboot.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/provision/clusters.h"
#include "tests/provision/dhcp_packets.h"
#include "tests/provision/enrollment_gateway.h"
#include "tests/run_async.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <cstring>

namespace muster::provision {

inline constexpr int kTries = 30;  ///< of a second each; dnsmasq may still be starting

/// A network namespace, kept by a process that sleeps in it.
struct Netns {
  std::unique_ptr<io::Child> holder;
  io::Fd fd;
  std::string pid() const { return std::to_string(holder->pid()); }
};

class DhcpTest : public ::testing::Test {
 protected:
  /// What the test's cluster has beyond twoNodes, before dnsmasq starts.
  virtual void declare() {}
  /// Who else is on the network; runs in the server's namespace.
  virtual void surround() {}

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
    home_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (::unshare(CLONE_NEWNET) != 0)
      GTEST_SKIP() << "network namespaces cannot be made here: " << std::strerror(errno);
    client_ = hold();
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
    server_ns_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    ip("link add server type veth peer name client");
    ip("link set client netns " + client_.pid());
    ip("link set lo up");
    ip("link set server up");
    ip("addr add 10.20.0.1/16 dev server");
    in(client_, [this] {
      ip("link set client up");
      dhcp_ = openSocket(68, "client");
    });
    declare();
    surround();
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    netboot_ = makeNetboot(
        cluster_, images_, gateway_, *processes_, io_.get_executor(),
        {folder_ / "run", 8080, 8443, std::string(64, 'c'), folder_ / "hosts", folder_ / "tftp"});
    const auto started = netboot_->start();
    ASSERT_TRUE(started) << started.error().str();
  }
  void TearDown() override {
    if (netboot_) netboot_->stop();
    others_.clear();
    spaces_.clear();
    client_.holder.reset();
    if (home_.valid()) ::setns(home_.get(), CLONE_NEWNET);
    if (HasFailure())
      std::cerr << io::readFile(folder_ / "run/dnsmasq.log").value_or("no log") << "\n";
    if (HasFailure()) std::cerr << io::readFile(folder_ / "other.log").value_or("") << "\n";
  }
  /// Keeps this thread's namespace, and names it by a pid.
  Netns hold() {
    io::Command sleep{.program = "sleep", .args = {"infinity"}};
    auto holder = processes_->start(sleep, {});
    EXPECT_TRUE(holder) << holder.error().str();
    return {std::move(*holder), io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC))};
  }
  Netns& makeSpace() {
    EXPECT_EQ(::unshare(CLONE_NEWNET), 0);
    spaces_.push_back(std::make_unique<Netns>(hold()));
    EXPECT_EQ(::setns(server_ns_.get(), CLONE_NEWNET), 0);
    return *spaces_.back();
  }
  template <class Work>
  void in(const Netns& space, Work work) {
    ASSERT_EQ(::setns(space.fd.get(), CLONE_NEWNET), 0);
    work();
    ASSERT_EQ(::setns(server_ns_.get(), CLONE_NEWNET), 0);
  }
  /// Puts another machine on the controller's network: the wires there become a bridge, which has
  /// the controller's address then.
  void joinLan(const Netns& space, const std::string& device) {
    ip("link add lan type bridge && ip addr flush dev server && ip link set server master lan && "
       "ip addr add 10.20.0.1/16 dev lan && ip link set lan up");
    ip("link add port type veth peer name " + device);
    ip("link set " + device + " netns " + space.pid() +
       " && ip link set port master lan && ip link set port up");
    in(space, [&] { ip("link set lo up && ip link set " + device + " up"); });
  }
  /// Another dnsmasq, of somebody else.
  void startOther(std::vector<std::string> args) {
    args.insert(args.begin(), {"--keep-in-foreground", "--conf-file=/dev/null", "--port=0",
                               "--pid-file=", "--log-facility=-", "--log-dhcp"});
    auto child =
        processes_->start({.program = "dnsmasq", .args = std::move(args)}, folder_ / "other.log");
    ASSERT_TRUE(child) << child.error().str();
    others_.push_back(std::move(*child));
  }
  void ip(const std::string& words) {
    io::Command command;
    command.program = "sh";
    command.args = {"-c", "ip " + words};
    const auto done = io::runChecked(command);
    ASSERT_TRUE(done) << done.error().str();
  }
  static io::Fd openSocket(int port, const std::string& device) {
    io::Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    const timeval second{1, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
    ::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, device.c_str(),
                 static_cast<socklen_t>(device.size()));
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    const sockaddr_in here{AF_INET, htons(static_cast<std::uint16_t>(port)), {}, {}};
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here), 0)
        << std::strerror(errno);
    return fd;
  }
  /// Sends until something comes back that `read` accepts.
  template <class Read>
  auto ask(const io::Fd& fd, const std::string& packet, sockaddr_in to, Read read)
      -> decltype(read(std::string_view())) {
    for (int i = 0; i < kTries; ++i) {
      ::sendto(fd.get(), packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&to),
               sizeof to);
      char answer[2048];
      while (true) {  // somebody else's answers may come first
        const auto n = ::recv(fd.get(), answer, sizeof answer, 0);
        if (n <= 0) break;
        if (auto accepted = read(std::string_view(answer, static_cast<std::size_t>(n))))
          return accepted;
      }
    }
    return {};
  }
  std::optional<Offer> offerTo(const std::string& mac, std::optional<int> arch, bool ipxe) {
    return offerTo(mac, arch, ipxe, dhcp_);
  }
  /// `server`: whose offer is wanted, where there are several; empty: anybody's.
  std::optional<Offer> offerTo(const std::string& mac, std::optional<int> arch, bool ipxe,
                               const io::Fd& from, const std::string& server = "") {
    const sockaddr_in all{AF_INET, htons(67), {INADDR_BROADCAST}, {}};
    const auto question = discover(*Mac::parse(mac), arch, ipxe);
    const auto read = [&question, &server](std::string_view answer) {
      auto offer = parseOffer(answer, question);
      if (offer && !server.empty() && offer->dhcp_server != server) offer.reset();
      return offer;
    };
    return ask(from, question, all, read);
  }

  /// dnsmasq reads a moment after the change: asks until the answer is right.
  template <class Right>
  bool offerBecomes(const std::string& mac, int arch, bool ipxe, Right right) {
    for (int i = 0; i < kTries; ++i) {
      const auto offer = offerTo(mac, arch, ipxe);
      if (offer && right(*offer)) return true;
    }
    return false;
  }

  asio::io_context io_;
  muster::test::TempFolder folder_;
  inventory::Cluster cluster_ = twoNodes();
  muster::test::FakeImageStore images_;
  EnrollmentGateway gateway_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  Netns client_;
  std::vector<std::unique_ptr<Netns>> spaces_;
  std::vector<std::unique_ptr<io::Child>> others_;
  std::unique_ptr<Netboot> netboot_;
  io::Fd home_, server_ns_, dhcp_;
};

}  // namespace muster::provision
