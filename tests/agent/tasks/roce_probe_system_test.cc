// SPDX-License-Identifier: Apache-2.0
// What a node reads of its RoCE interfaces, with real lldpd at both ends of real (virtual) cables
// in namespaces of the test's own, and real dcb. A veth has no DCB: that dcb's refusal is told, and
// not taken for a marking, is what this can show of it.
#include "agent/tasks/roce_probe.h"

#include "base/io/files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <thread>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;

/// Programs see the namespace of the node, and lldpctl the node's own lldpd.
class InNamespace final : public io::ProcessRunner {
 public:
  InNamespace(std::string name, std::filesystem::path socket)
      : name_(std::move(name)), socket_(std::move(socket)) {}
  Async<io::ProcessExit> run(io::Command command) override {
    std::vector<std::string> args = {"netns", "exec", name_, command.program};
    if (command.program == "lldpctl") args.insert(args.end(), {"-u", socket_.string()});
    args.insert(args.end(), command.args.begin(), command.args.end());
    command.program = "ip", command.args = std::move(args);
    co_return co_await real_->run(std::move(command));
  }
  Result<std::unique_ptr<io::Child>> start(io::Command command,
                                           std::filesystem::path log) override {
    return real_->start(std::move(command), std::move(log));
  }
  Result<pid_t> startDetached(io::Command command, std::filesystem::path log) override {
    return real_->startDetached(std::move(command), std::move(log));
  }

 private:
  const std::string name_;
  const std::filesystem::path socket_;
  const std::unique_ptr<io::ProcessRunner> real_ = io::makeProcessRunner();
};

class RoceSystem : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
    if (!io::runBlocking(words("lldpd", {"-v"}))) GTEST_SKIP() << "lldpd is not installed";
    std::filesystem::permissions(
        folder_.path(),
        std::filesystem::perms(0711));  // lldpd gives up its rights before it opens its own socket
    for (const auto& name : {node_, leaf_})
      ASSERT_TRUE(io::runChecked(words("ip", {"netns", "add", name})));
    cable("eth0", "swp1");
    cable("eth1", "swp2");
    for (const char* device : {"mlx5_0", "mlx5_1"}) {
      const std::string at = std::string("sys/class/infiniband/") + device;
      put(at + "/ports/1/link_layer", "Ethernet\n");
      std::filesystem::create_directories(folder_ / (at + "/device/net/eth" + device[5]));
      put(std::string("sys/class/net/eth") + device[5] + "/mtu", "9000\n");
    }
    put("sys/class/infiniband/mlx5_0/tc/1/traffic_class", "Global tclass=106\n");
    lldpd(node_);
    lldpd(leaf_);
  }
  void TearDown() override {
    for (auto& daemon : daemons_) daemon->terminate(5s);
    daemons_.clear();
    for (const auto& name : {node_, leaf_})
      (void)io::runBlocking(words("ip", {"netns", "del", name}));
  }

  static io::Command words(std::string program, std::vector<std::string> args) {
    io::Command command;
    command.program = std::move(program), command.args = std::move(args);
    return command;
  }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder_ / path).parent_path());
    ASSERT_TRUE(io::writeFileAtomic(folder_ / path, text));
  }
  void cable(const std::string& nic, const std::string& port) {
    ASSERT_TRUE(io::runChecked(words("ip", {"link", "add", nic, "netns", node_, "type", "veth",
                                            "peer", "name", port, "netns", leaf_})));
    ASSERT_TRUE(io::runChecked(words("ip", {"-n", node_, "link", "set", nic, "up"})));
    ASSERT_TRUE(io::runChecked(words("ip", {"-n", leaf_, "link", "set", port, "up"})));
  }
  std::filesystem::path socketOf(const std::string& name) const {
    return folder_ / (name + ".sock");
  }
  /// In a UTS namespace too: it tells the host name.
  void lldpd(const std::string& name) {
    const auto socket = socketOf(name).string();
    auto daemon =
        processes_->start(words("ip", {"netns", "exec", name, "unshare", "-u", "sh", "-c",
                                       "hostname \"$1\" && exec lldpd -d -u \"$2\" -S \"$1\"", "sh",
                                       name == leaf_ ? "leaf-su1-r0" : "gpu001", socket}),
                          folder_ / (name + ".log"));
    ASSERT_TRUE(daemon) << daemon.error().str();
    daemons_.push_back(std::move(*daemon));
    ASSERT_TRUE(eventually([&] { return ask(socket, {"resume"}); }))
        << io::readFile(folder_ / (name + ".log")).value_or("");
    ASSERT_TRUE(ask(socket, {"configure", "lldp", "tx-interval", "1"}));
    ASSERT_TRUE(ask(socket, {"configure", "lldp", "portidsubtype", "ifname"}));
  }
  static bool ask(const std::string& socket, std::vector<std::string> args) {
    args.insert(args.begin(), {"-u", socket});
    const auto done = io::runBlocking(words("lldpcli", std::move(args)));
    return done && done->code == 0;
  }
  static bool eventually(const std::function<bool()>& holds) {
    for (const auto until = std::chrono::steady_clock::now() + 30s;
         std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(50ms))
      if (holds()) return true;
    return holds();
  }
  static Async<std::string> wrapped(Task<std::string> work) { co_return co_await std::move(work); }
  json probe() {
    InNamespace inside(node_, socketOf(node_));
    TaskTools tools{folder_.path(), "", inside, workers_, clock_, "muster-agent", {}};
    return json::parse(muster::test::runAsync(context_, wrapped(roceProbe(tools))).value());
  }
  std::string path(const std::string& way) {
    InNamespace inside(node_, socketOf(node_));
    TaskTools tools{folder_.path(), "", inside, workers_, clock_, "muster-agent", {}};
    return muster::test::runAsync(context_, wrapped(rocePathProbe(tools, way))).value();
  }
  bool sees(const char* device, const char* port) {
    const auto row = probe().at(device);
    return row.contains("neighbour") && row["neighbour"].value("switch", "") == "leaf-su1-r0" &&
           row["neighbour"].value("port", "") == port;
  }

  const std::string node_ = fmt::format("muster-n{}", ::getpid()),
                    leaf_ = fmt::format("muster-s{}", ::getpid());
  muster::test::TempFolder folder_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::vector<std::unique_ptr<io::Child>> daemons_;
  Workers workers_{1};
  SystemClock clock_;
  asio::io_context context_;
};

TEST_F(RoceSystem, neighboursAreThoseOfTheCables) {
  ASSERT_TRUE(eventually([this] { return sees("mlx5_0", "swp1") && sees("mlx5_1", "swp2"); }))
      << probe().dump(1);
  // The cables are exchanged at the node; the former neighbours stay listed until their time is
  // over.
  ASSERT_TRUE(io::runChecked(words("ip", {"-n", node_, "link", "del", "eth0"})));
  ASSERT_TRUE(io::runChecked(words("ip", {"-n", node_, "link", "del", "eth1"})));
  cable("eth1", "swp1");
  cable("eth0", "swp2");
  EXPECT_TRUE(eventually([this] { return sees("mlx5_0", "swp2") && sees("mlx5_1", "swp1"); }))
      << probe().dump(1);
}

// The way of a packet has an MTU at each port; that of the first switch is told by LLDP, those
// behind it show only when a packet is sent.
TEST_F(RoceSystem, theMtuIsThatOfTheWholeWay) {
  const auto ip = [](std::vector<std::string> args) {
    ASSERT_TRUE(io::runChecked(words("ip", std::move(args))));
  };
  if (!io::runBlocking(words("ping", {"-V"}))) GTEST_SKIP() << "ping is not installed";
  const std::string peer = node_ + "p";
  ip({"netns", "add", peer});
  ip({"link", "add", "eth0", "netns", peer, "type", "veth", "peer", "name", "swp3", "netns",
      leaf_});
  ip({"-n", leaf_, "link", "add", "br0", "type", "bridge"});
  for (const char* port : {"swp1", "swp3"})
    ip({"-n", leaf_, "link", "set", port, "mtu", "9000", "up", "master", "br0"});
  ip({"-n", leaf_, "link", "set", "br0", "up"});
  for (const auto& [name, address] :
       {std::pair(node_, "10.9.0.1/24"), std::pair(peer, "10.9.0.2/24")}) {
    ip({"-n", name, "link", "set", "eth0", "mtu", "9000", "up"});
    ip({"-n", name, "addr", "add", address, "dev", "eth0"});
  }
  EXPECT_EQ(path("mlx5_0.10.9.0.2"), "passes 9000");
  EXPECT_EQ(probe().at("mlx5_0").at("address"), "10.9.0.1");
  ip({"-n", leaf_, "link", "set", "swp3", "mtu", "1500"});
  EXPECT_EQ(path("mlx5_0.10.9.0.2"), "blocked 9000");
  EXPECT_THAT(path("mlx5_0.10.9.0.77"), ::testing::StartsWith("silent: "));
  EXPECT_THAT(path("mlx5_7.10.9.0.2"), ::testing::StartsWith("silent: mlx5_7 has no interface"));
  // lldpd tells no frame size of its own; as a custom part (802.3, subtype 4: 9,000 and 1,500
  // bytes) it tells what other switches do.
  for (const auto& [port, bytes] : {std::pair("swp1", "23,28"), std::pair("swp2", "05,dc")})
    ASSERT_TRUE(ask(socketOf(leaf_), {"configure", "ports", port, "lldp", "custom-tlv", "oui",
                                      "00,12,0f", "subtype", "4", "oui-info", bytes}));
  const auto frame = [this](const char* device) {
    return probe().at(device).value("neighbour", json::object()).value("frame_bytes", 0);
  };
  EXPECT_TRUE(eventually([&] { return frame("mlx5_0") == 9000 && frame("mlx5_1") == 1500; }))
      << probe().dump(1);
  ip({"netns", "del", peer});
}

// Soft-RoCE has no PCI device: its interface is that of its GIDs.
TEST_F(RoceSystem, aDeviceWithoutHardwareIsFoundByItsGids) {
  const std::string port = "sys/class/infiniband/rxe0/ports/1/";
  put(port + "link_layer", "Ethernet\n");
  for (const char* index : {"0", "1", "2"}) {
    put(port + "gids/" + index,
        index == std::string("2")   ? "0000:0000:0000:0000:0000:0000:0000:0000\n"
        : index == std::string("1") ? "0000:0000:0000:0000:0000:ffff:0a09:0001\n"
                                    : "fe80:0000:0000:0000:5054:00ff:fe00:0001\n");
    if (index == std::string("2")) continue;  // the kernel refuses to read the rest of an empty row
    put(port + "gid_attrs/ndevs/" + index, "eth1\n");
    put(port + "gid_attrs/types/" + index, "RoCE v2\n");
  }
  const auto row = probe().at("rxe0");
  EXPECT_EQ(row.at("interface"), "eth1");
  EXPECT_EQ(row.at("mtu"), 9000);
  EXPECT_EQ(row.at("gids").size(), 2u) << row.dump(1);
  EXPECT_EQ(row.at("gids").at("1").at("gid"), "0000:0000:0000:0000:0000:ffff:0a09:0001");
  EXPECT_EQ(row.at("gids").at("1").at("type"), "RoCE v2");
  EXPECT_EQ(probe().at("mlx5_0").at("gids"), json::object());
}

TEST_F(RoceSystem, whatDcbCannotSayIsTold) {
  const auto row = probe().at("mlx5_0");
  EXPECT_EQ(row.at("mtu"), 9000);
  EXPECT_EQ(row.at("interface"), "eth0");
  EXPECT_EQ(row.at("traffic_class"), 106);
  EXPECT_TRUE(row.at("app").contains("error") || row.at("pfc").contains("error")) << row.dump(1);
  EXPECT_FALSE(probe().at("mlx5_1").contains("traffic_class"));
}

}  // namespace
}  // namespace muster::agent
