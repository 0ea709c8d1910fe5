// SPDX-License-Identifier: Apache-2.0
// Which console a node has, and what a domain's description says of its serial port.
#include "bmc/composite_bmc.h"
#include "bmc/console/console_recorder.h"
#include "inventory/model/access.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/profile.h"
#include "tests/bmc/values_store.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

namespace muster::bmc {
namespace {

using testing::HasSubstr;

TEST(SerialOfDomain, isATerminalOrASocket) {
  EXPECT_EQ(*serialOfDomain("<devices><serial type='pty'>\n<source path='/dev/pts/3'/><target "
                            "port='0'/></serial></devices>"),
            "/dev/pts/3");
  EXPECT_EQ(
      *serialOfDomain(
          "<serial type='unix'><source mode='bind' path='/run/x.sock'/><log file='/l'/></serial>"),
      "/run/x.sock");
  EXPECT_FALSE(
      serialOfDomain("<serial type='tcp'><source mode='bind' host='::' service='1'/></serial>"));
  EXPECT_FALSE(serialOfDomain("<serial type='pty'><target port='0'/></serial>"))
      << "a domain that is off";
  EXPECT_FALSE(serialOfDomain("<devices><console type='pty'/></devices>"));
}

class TellingBmc final : public ForwardingBmc {
 public:
  using ForwardingBmc::ForwardingBmc;
  SerialConsoleEndpoint told;
  Async<SerialConsoleEndpoint> serialConsole() override { co_return told; }
};

struct OneBmc final : BmcFleet {
  test::FakeBmc fake;
  TellingBmc bmc{fake};
  Bmc& at(const NodeName&) override { return bmc; }
  Async<void> close() override { co_return Result<void>(); }
};

class FinderTest : public testing::Test {
 protected:
  FinderTest() {
    inventory::Profile profile;
    profile.name = "p";
    cluster.profiles["p"] = profile;
    inventory::Node node;
    node.name = NodeName("gpu001");
    node.profile = "p";
    node.bmc.url = "https://10.0.0.1:8443";
    cluster.nodes.push_back(node);
  }
  std::string nameOf() {
    auto source = find(NodeName("gpu001"));
    return source ? source->name() : "none";
  }
  test::TempFolder folder;
  SystemClock clock;
  Workers workers{1};
  inventory::Cluster cluster;
  test::ValuesStore store;
  std::unique_ptr<BmcFleet> bmcs = makeBmcFleet(cluster, store, clock, workers);
  ConsoleFactory find = makeConsoleFactory({cluster, store, clock, workers, *bmcs}, folder.path());
};

TEST_F(FinderTest, isWhatTheProfileDeclares) {
  EXPECT_EQ(nameOf(), "none") << "no password goes to a BMC for a console that nobody declared";
  cluster.profiles["p"].console = inventory::ConsoleSpec{.via = inventory::ConsoleVia::Sol};
  EXPECT_EQ(nameOf(), "no console") << "no such credential";
  cluster.credentials["bmc"].username = "admin";
  EXPECT_EQ(nameOf(), "serial over LAN of 10.0.0.1");
  cluster.profiles["p"].console = inventory::ConsoleSpec{.via = inventory::ConsoleVia::Redfish};
  EXPECT_EQ(nameOf(), "serial console of 10.0.0.1 by SSH");
  cluster.profiles["p"].console =
      inventory::ConsoleSpec{.via = inventory::ConsoleVia::Socket, .path = "/run/c/{node}.sock"};
  EXPECT_EQ(nameOf(), "/run/c/gpu001.sock");
  cluster.profiles["p"].console.reset();
  cluster.nodes[0].bmc.url = "libvirt:one";
  EXPECT_EQ(nameOf(), "the serial port of domain one");
}

TEST_F(FinderTest, saysWhatIsMissingWhereTheBmcDoesNotTellEnough) {
  cluster.credentials["bmc"].username = "admin";
  cluster.profiles["p"].console = inventory::ConsoleSpec{.via = inventory::ConsoleVia::Redfish};
  OneBmc fleet;
  const auto asked = [&](SerialConsoleEndpoint told) {
    fleet.bmc.told = std::move(told);
    asio::io_context io;
    auto line = test::runAsync(io, makeConsoleFactory({cluster, store, clock, workers, fleet},
                                                      folder.path())(NodeName("gpu001"))
                                       ->open());
    return line ? std::string() : line.error().str();
  };
  EXPECT_THAT(asked({}), HasSubstr("switch it on"));
  EXPECT_THAT(asked({.ipmi = true}), HasSubstr("via: sol"));
  EXPECT_THAT(asked({.ssh = true}), HasSubstr("by what command"));
  EXPECT_THAT(asked({.ssh = true, .ssh_command = "start\nreset"}), HasSubstr("by what command"));
  EXPECT_TRUE(store.values["bmc.console.gpu001"].empty())
      << "only a place that can be used is remembered";
}

TEST_F(FinderTest, remembersWhatTheBmcSaidAndNotWhatIsDeclared) {
  cluster.credentials["bmc"].username = "admin";
  cluster.profiles["p"].console =
      inventory::ConsoleSpec{.via = inventory::ConsoleVia::Redfish, .command = "vsp"};
  OneBmc fleet;
  fleet.bmc.told = {.ssh = true};
  asio::io_context io;
  auto source = makeConsoleFactory({cluster, store, clock, workers, fleet},
                                   folder.path())(NodeName("gpu001"));
  EXPECT_FALSE(test::runAsync(io, source->open())) << "no password is declared";
  EXPECT_EQ(store.values["bmc.console.gpu001"], "22");
  fleet.bmc.told = {.ssh = true, .ssh_port = 2200, .ssh_command = "start"};
  store.values.clear();
  EXPECT_FALSE(test::runAsync(io, source->open()));
  EXPECT_EQ(store.values["bmc.console.gpu001"], "2200 start");
}

TEST(TerminalDevice, isALineLikeAnother) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(master, 0);
  ASSERT_EQ(::grantpt(master) + ::unlockpt(master), 0);
  const std::string path = ::ptsname(master);
  asio::io_context io;
  auto source = makeSocketConsole(path);
  auto line = test::runAsync(io, source->open());
  ASSERT_TRUE(line) << line.error().str();
  ASSERT_EQ(::write(master, "login: ", 7), 7);
  EXPECT_EQ(test::runAsync(io, (*line)->read()).value_or(""), "login: ");
  ASSERT_TRUE(test::runAsync(io, (*line)->write("root\r")));
  char typed[16] = {};
  ASSERT_EQ(::read(master, typed, sizeof typed), 5);
  EXPECT_STREQ(typed, "root\r") << "raw: nothing is turned into anything";
  ::close(master);
  EXPECT_EQ(test::runAsync(io, (*line)->read()).value_or("an error"), "") << "its end";
}

}  // namespace
}  // namespace muster::bmc
