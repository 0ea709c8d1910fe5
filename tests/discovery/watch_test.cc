// SPDX-License-Identifier: Apache-2.0
// Real sockets on loopback, in a network namespace that the test makes.
#include "discovery/watch.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "base/ip_address.h"
#include "tests/run_async.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/multicast.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace muster::discovery {
namespace {

using asio::ip::udp;
using namespace std::chrono_literals;

class WatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
    home_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "network namespaces cannot be made here";
    run({"link", "set", "lo", "up", "multicast", "on"});
    run({"route", "add", "multicast", "239.0.0.0/8", "dev", "lo"});
  }
  void TearDown() override {
    const bool home = !home_.valid() || ::setns(home_.get(), CLONE_NEWNET) == 0;
    ASSERT_TRUE(home);
  }
  static void run(std::vector<std::string> args) {
    io::Command command;
    command.program = "ip";
    command.args = std::move(args);
    const auto done = io::runChecked(command);
    ASSERT_TRUE(done) << done.error().str();
  }
  io::Fd home_;
};

std::string discoverPacket() {
  std::string packet(236, '\0');
  packet[0] = 1, packet[1] = 1, packet[2] = 6;
  packet.replace(28, 6, std::string("\x52\x54\x00\x20\x00\x07", 6));
  return packet + "\x63\x82\x53\x63" + "\x3c\x09PXEClient\xff";
}

/// Sends until somebody says that it was heard; the listener may still be starting.
Async<void> sendUntil(std::uint16_t port, std::string text, std::shared_ptr<bool> heard) {
  auto executor = co_await asio::this_coro::executor;
  udp::socket socket(executor, udp::v4());
  asio::steady_timer pause(executor);
  while (!*heard) {
    boost::system::error_code ignored;
    auto buffer = asio::buffer(text);
    co_await socket.async_send_to(buffer, udp::endpoint(asio::ip::make_address("127.0.0.1"), port),
                                  asio::redirect_error(asio::use_awaitable, ignored));
    pause.expires_after(20ms);
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return Result<void>();
}

template <class T>
struct Heard {
  std::shared_ptr<bool> any = std::make_shared<bool>(false);
  std::vector<T> all;
  asio::io_context io;
  /// Ends the loop with the first one.
  auto sink() {
    return [this](T one) {
      all.push_back(std::move(one));
      *any = true;
      io.stop();
    };
  }
};

TEST_F(WatchTest, dhcpRequestsAreHeardBesideWhoeverServesThePort) {
  Heard<DhcpRequest> heard;
  udp::socket server(heard.io, udp::endpoint(udp::v4(), 67));  // the network's own DHCP server
  asio::co_spawn(heard.io, watchDhcp("lo", 20s, heard.sink()),
                 [](std::exception_ptr, Result<void>) {});
  asio::co_spawn(heard.io, sendUntil(67, discoverPacket(), heard.any),
                 [](std::exception_ptr, Result<void>) {});
  asio::co_spawn(heard.io, sendUntil(68, discoverPacket(), heard.any),
                 [](std::exception_ptr, Result<void>) {});
  heard.io.run_for(20s);
  ASSERT_FALSE(heard.all.empty());
  EXPECT_EQ(heard.all[0].mac.str(), "52:54:00:20:00:07");
  EXPECT_TRUE(heard.all[0].boots());
}

TEST_F(WatchTest, anInterfaceThatIsNotThereIsSaid) {
  const auto ended = test::runAsync(watchDhcp("nosuch0", 1s, [](DhcpRequest) {}));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(interfaceOf(*Ipv4::parse("10.99.99.99")));
  EXPECT_EQ(*interfaceOf(*Ipv4::parse("127.0.0.1")), "lo");
}

/// A BMC that answers searches as DSP0266 says.
Async<void> ssdpResponder(std::shared_ptr<udp::socket> socket) {
  std::vector<char> datagram(2048);
  const std::string answer =
      "HTTP/1.1 200 OK\r\nCACHE-CONTROL:max-age=1800\r\nST:urn:dmtf-org:service:redfish-rest:1\r\n"
      "USN:uuid:92384634-2938-2342-8820-489239905423::urn:dmtf-org:service:redfish-rest:1\r\nAL:"
      "https://127.0.0.1/redfish/v1\r\nEXT:\r\n\r\n";
  while (true) {
    udp::endpoint from;
    boost::system::error_code error;
    auto buffer = asio::buffer(datagram);
    const auto size = co_await socket->async_receive_from(
        buffer, from, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return Result<void>();
    const std::string_view text(datagram.data(), size);
    if (!text.starts_with("M-SEARCH") || text.find("redfish-rest") == std::string_view::npos)
      continue;
    auto reply = asio::buffer(answer);
    co_await socket->async_send_to(reply, from, asio::redirect_error(asio::use_awaitable, error));
  }
}

TEST_F(WatchTest, servicesAnswerTheSearchAndUnknownSendersAreDropped) {
  Heard<SsdpService> heard;
  auto bmc = std::make_shared<udp::socket>(heard.io, udp::v4());
  bmc->set_option(udp::socket::reuse_address(true));
  bmc->bind(udp::endpoint(asio::ip::make_address("239.255.255.250"), kSsdpPort));
  bmc->set_option(asio::ip::multicast::join_group(asio::ip::make_address_v4("239.255.255.250"),
                                                  asio::ip::make_address_v4("127.0.0.1")));
  asio::co_spawn(heard.io, ssdpResponder(bmc), [](std::exception_ptr, Result<void>) {});
  asio::co_spawn(
      heard.io, sendUntil(kSsdpPort, "NOTIFY * HTTP/1.1\r\nNT: upnp:rootdevice\r\n\r\n", heard.any),
      [](std::exception_ptr, Result<void>) {});
  asio::co_spawn(heard.io, watchSsdp(*Ipv4::parse("127.0.0.1"), 20s, heard.sink()),
                 [](std::exception_ptr, Result<void>) {});
  heard.io.run_for(20s);
  ASSERT_FALSE(heard.all.empty());
  EXPECT_EQ(heard.all[0].url, "https://127.0.0.1");
}

TEST_F(WatchTest, aWatchEndsWhenItsTimeIsOver) {
  EXPECT_TRUE(test::runAsync(watchDhcp("lo", 50ms, [](DhcpRequest) {})));
  EXPECT_TRUE(test::runAsync(watchSsdp(*Ipv4::parse("127.0.0.1"), 50ms, [](SsdpService) {})));
}

}  // namespace
}  // namespace muster::discovery
