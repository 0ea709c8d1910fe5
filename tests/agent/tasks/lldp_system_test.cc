// SPDX-License-Identifier: Apache-2.0
// A cable (veth) in a network namespace of the test's own: the switch's end sends LLDP frames, the
// agent's end listens.
#include "agent/tasks/lldp.h"
#include "base/io/files.h"
#include "base/io/process.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;

void ip(std::vector<std::string> args) {
  io::Command command;
  command.program = "ip";
  command.args = std::move(args);
  const auto done = io::runChecked(command);
  ASSERT_TRUE(done) << done.error().str();
}

std::string frame(const std::string& port) {
  std::string out("\x01\x80\xc2\x00\x00\x0e\x02\x00\x00\x00\x00\x01\x88\xcc", 14);
  out += std::string("\x02\x07\x04\x02\x00\x00\x00\x00\x01", 9);
  out += std::string("\x04") + static_cast<char>(port.size() + 1) + "\x05" + port;
  return out + std::string("\x06\x02\x00\x78\x0a\x05leaf1\x00\x00", 13);
}

TEST(LldpSystem, theSwitchAtTheOtherEndIsHeard) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
  const io::Fd home(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (::unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "network namespaces cannot be made here";
  ip({"link", "add", "n0", "type", "veth", "peer", "name", "s0"});
  ip({"link", "add", "n1", "type", "veth", "peer", "name", "s1"});
  for (const char* name : {"n0", "s0", "n1", "s1"}) ip({"link", "set", name, "up"});
  io::Fd sender(::socket(AF_PACKET, SOCK_RAW, 0));
  ASSERT_TRUE(sender.valid());
  std::atomic<bool> heard{false};
  // Cables crossed: port 1 sends into n1, port 2 into n0. Again and again, since the listener may
  // still be starting.
  std::thread sw([&sender, &heard, s0 = ::if_nametoindex("s0"), s1 = ::if_nametoindex("s1")] {
    while (!heard) {
      for (const auto& [index, port] : {std::pair(s0, "swp2"), std::pair(s1, "swp1")}) {
        sockaddr_ll to{};
        to.sll_family = AF_PACKET;
        to.sll_ifindex = static_cast<int>(index);
        const auto bytes = frame(port);
        (void)::sendto(sender.get(), bytes.data(), bytes.size(), 0,
                       reinterpret_cast<const sockaddr*>(&to), sizeof to);
      }
      std::this_thread::yield();
    }
  });
  const auto seen = listenLldpOn({{"n0", "aa:00"}, {"n1", "aa:01"}}, 20s);
  heard = true;
  sw.join();
  const bool back = ::setns(home.get(), CLONE_NEWNET) == 0;
  ASSERT_TRUE(back);
  ASSERT_TRUE(seen) << seen.error().str();
  ASSERT_EQ(seen->size(), 2u);
  EXPECT_EQ((*seen)[0].nic, "n0");
  EXPECT_EQ((*seen)[0].port, "swp2");
  EXPECT_EQ((*seen)[1].port, "swp1");
  EXPECT_EQ((*seen)[1].switch_name, "leaf1");
}

TEST(LldpSystem, silenceEndsInTime) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto none = listenLldpOn({{"lo", ""}}, 30ms);
  ASSERT_TRUE(none) << none.error().str();
  EXPECT_TRUE(none->empty());
  EXPECT_FALSE(listenLldpOn({{"nosuch0", ""}}, 30ms));
}

}  // namespace
}  // namespace muster::agent
