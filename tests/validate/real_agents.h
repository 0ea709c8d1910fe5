// SPDX-License-Identifier: Apache-2.0
// Real agents for the real program: each node is a network namespace with a cable to the bridge of
// the controller's side, which is the test's own namespace. Every cable has its rate by tc, in both
// directions, so low that not the processors are what limits a test.
#pragma once

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "tests/cli/muster_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <sched.h>
#include <unistd.h>

#include <functional>
#include <iostream>
#include <thread>

namespace muster::test {

using namespace std::chrono_literals;

class RealAgents : public ::testing::Test {
 protected:
  static constexpr const char* kInventory = R"(cluster: {name: real-agents}
networks:
  provisioning: {cidr: 10.20.0.0/16, dhcp: {mode: authoritative, range: 10.20.240.1-10.20.247.254}}
credentials:
  bmc: {username: admin, password: {file: bmc-password}}
)";
  static constexpr auto kLimit = 120s;

  /// Nodes n1, n2, … of profile "node"; `more` is the inventory without its nodes.
  void start(int nodes, int per_rack, const std::string& more, const char* rate_of_all) {
    nodes_ = nodes;
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
    ip({"link", "set", "lo", "up"});
    // An address of its own: else it takes that of whichever port has the lowest, and whoever asked
    // before calls into the void.
    ip({"link", "add", "br0", "address", "02:00:0a:14:00:01", "type", "bridge"});
    ip({"addr", "add", "10.20.0.1/16", "dev", "br0"});
    ip({"link", "set", "br0", "up"});
    auto inventory = head() + more + "nodes:\n";
    for (int n = 1; n <= nodes; ++n)
      inventory += fmt::format(
          "  - {{names: {}, profile: node, mac: \"{}\", address: 10.20.1.{}, bmc: "
          "\"https://10.20.250.{}\", rack: r{}, unit: {}}}\n",
          name(n), mac(n), n, n, (n - 1) / per_rack + 1, n);
    folder_.write("cluster.yaml", inventory);
    auto authority = io::CertificateAuthority::loadOrCreate(folder_ / "state" / "ca", "muster CA");
    ASSERT_TRUE(authority) << authority.error().str();
    for (int n = 1; n <= nodes; ++n) {
      cable(n, rate_of_all);
      agent(n, *authority);
    }
  }
  /// What the inventory begins with.
  virtual std::string head() const { return kInventory; }
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
  }
  void TearDown() override {
    if (HasFailure())
      for (int n = 1; n <= nodes_; ++n)
        std::cerr << "---- " << name(n) << "\n"
                  << io::readFile(folder_ / name(n) / "log").value_or("no log") << "\n";
    agents_.clear();
    for (int n = 1; n <= nodes_; ++n)
      (void)io::runBlocking(words("ip", {"netns", "del", namespaceOf(n)}));
  }

  static std::string name(int n) { return fmt::format("n{}", n); }
  static std::string mac(int n) { return fmt::format("52:54:00:20:00:{:02x}", n); }
  static io::Command words(std::string program, std::vector<std::string> args) {
    io::Command command;
    command.program = std::move(program), command.args = std::move(args);
    return command;
  }
  static void run(std::string program, std::vector<std::string> args) {
    const auto done = io::runChecked(words(std::move(program), std::move(args)));
    ASSERT_TRUE(done) << done.error().str();
  }
  static void ip(std::vector<std::string> args) { run("ip", std::move(args)); }

  /// Both directions of the node's cable. A queue that holds all that a test has under way: nothing
  /// is lost, so TCP has nothing to guess.
  static void rate(int n, const char* verb, const std::string& rate) {
    const std::vector<std::string> shape{"root",  "tbf",  "rate",  rate,
                                         "burst", "64kb", "limit", "6mb"};
    std::vector<std::string> here{"qdisc", verb, "dev", fmt::format("port{}", n)},
        there{"-n", namespaceOf(n), "qdisc", verb, "dev", "eth0"};
    for (auto* args : {&here, &there}) {
      args->insert(args->end(), shape.begin(), shape.end());
      run("tc", *args);
    }
  }
  io::ProcessExit muster(std::vector<std::string> typed, std::chrono::seconds limit = 300s) const {
    auto command = folder_.command(std::move(typed));
    command.timeout = limit;
    auto ended = io::runBlocking(command);
    return ended ? std::move(*ended) : io::ProcessExit{-1, "", ended.error().str()};
  }
  static bool eventually(const std::function<bool()>& holds) {
    for (const auto until = std::chrono::steady_clock::now() + kLimit;
         std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(20ms))
      if (holds()) return true;
    return holds();
  }

  MusterFolder folder_;
  std::string image_digest_ = "none";  ///< what agents say they run
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();

 private:
  static std::string namespaceOf(int n) { return fmt::format("muster-agent{}-{}", ::getpid(), n); }
  static void cable(int n, const char* rate_of_all) {
    const auto port = fmt::format("port{}", n);
    ip({"netns", "add", namespaceOf(n)});
    ip({"link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespaceOf(n)});
    ip({"link", "set", port, "master", "br0", "up"});
    ip({"-n", namespaceOf(n), "addr", "add", fmt::format("10.20.1.{}/16", n), "dev", "eth0"});
    for (const char* device : {"lo", "eth0"})
      ip({"-n", namespaceOf(n), "link", "set", device, "up"});
    rate(n, "add", rate_of_all);
  }
  /// As the installed system of node n runs it. A veth is no hardware, so sysfs shows the agent a
  /// NIC that is.
  void agent(int n, const io::CertificateAuthority& authority) {
    const auto home = folder_ / name(n);
    const auto write = [&home](const std::string& file, const std::string& text) {
      ASSERT_TRUE(io::makeDirs((home / file).parent_path()));
      ASSERT_TRUE(io::writeFileAtomic(home / file, text, 0600));
    };
    const auto made = io::makeKeyAndRequest(name(n));
    ASSERT_TRUE(made);
    const auto certificate = authority.signClient(made->csr_pem, name(n), 24h);
    ASSERT_TRUE(certificate);
    write("key", made->key_pem.reveal());
    write("certificate", *certificate);
    write("ca", authority.certificatePem());
    write("net/eth0/address", mac(n) + "\n");
    ASSERT_TRUE(io::makeDirs(home / "net/eth0/device"));
    const nlohmann::json config{{"url", "https://10.20.0.1:8443"},
                                {"node", name(n)},
                                {"ca_pem_file", home / "ca"},
                                {"key_file", home / "key"},
                                {"certificate_file", home / "certificate"},
                                {"image_digest", image_digest_}};
    write("agent.json", config.dump());
    auto child = processes_->start(
        words("ip",
              {"netns", "exec", namespaceOf(n), "sh", "-c",
               "mount --bind \"$1\" /sys/class/net && exec \"$2\" --config \"$3\" --state \"$4\"",
               "sh", home / "net", (binFolder() / "muster-agent").string(), home / "agent.json",
               home / "state"}),
        home / "log");
    ASSERT_TRUE(child) << child.error().str();
    agents_.push_back(std::move(*child));
  }

  int nodes_ = 0;
  std::vector<std::unique_ptr<io::Child>> agents_;
};

}  // namespace muster::test
