// SPDX-License-Identifier: Apache-2.0
// muster monitor as the real program, in a network namespace of its own: SIGHUP brings new nodes to
// the dnsmasq that runs.
#include "base/io/files.h"
#include "lifecycle/rollout/record.h"
#include "tests/cli/muster_folder.h"
#include "tests/own_network.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kLimit{60};

class MonitorReload : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = network_.enter(); !why.empty()) GTEST_SKIP() << why;
    const auto made = network_.addWire("end", "10.20.0.1/16");
    ASSERT_TRUE(made) << made.error().str();
    auto started = processes_->start(folder_.command({"monitor"}), folder_ / "keep.out");
    ASSERT_TRUE(started) << started.error().str();
    keep_ = std::move(*started);
  }
  void TearDown() override {
    keep_.reset();
    // dnsmasq outlives a keep that is ended: it has changed its user, and the kernel then forgets
    // whose child it was.
    if (const auto ended = io::PidFile{folder_ / "state/run/netboot/dnsmasq.pid"}.terminate(
            std::chrono::seconds(2));
        !ended)
      ADD_FAILURE() << ended.error().str();
    network_.leave();
    if (HasFailure()) std::cerr << said();
    std::error_code ignored;
    for (const auto* what : {"hosts-", "tftp-"})
      if (!hosts_.empty())
        fs::remove_all(hosts_.parent_path() /
                           (what + hosts_.filename().string().substr(std::strlen("hosts-"))),
                       ignored);
  }
  std::string said() const { return io::readFile(folder_ / "keep.out").value_or(""); }
  /// Another process works: looking from time to time is all there is.
  template <class Condition>
  bool becomes(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      if (!keep_->running()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  void declareAlso(std::string_view node) {
    folder_.write("cluster.yaml", fmt::format("{}{}", test::MusterFolder::kInventory, node));
  }
  std::string dnsmasqPid() const {
    return io::readFile(folder_ / "state/run/netboot/dnsmasq.pid").value_or("");
  }
  /// As dnsmasq's configuration names it.
  fs::path hostsFolder() {
    const auto text = io::readFile(folder_ / "state/run/netboot/dnsmasq.conf").value_or("");
    const std::string key = "dhcp-hostsdir=";
    const auto at = text.find(key);
    if (at != std::string::npos)
      hosts_ = text.substr(at + key.size(), text.find('\n', at) - at - key.size());
    return hosts_;
  }

  test::MusterFolder folder_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> keep_;
  fs::path hosts_;
  test::OwnNetwork network_;
};

TEST_F(MonitorReload, newNodesBootWithoutAnotherDnsmasqAndABadInventoryChangesNothing) {
  ASSERT_TRUE(becomes([&] { return said().find("muster monitor: 2 nodes") != std::string::npos; }));
  const auto hosts = hostsFolder();
  ASSERT_TRUE(fs::exists(hosts / "gpu002")) << hosts;
  const auto pid = dnsmasqPid();
  ASSERT_NE(pid, "");

  declareAlso("  - {names: gpu003, profile: none, mac: 1}\n");
  keep_->signal(SIGHUP);
  ASSERT_TRUE(becomes([&] {
    return said().find("the inventory as it was before stays in use") != std::string::npos;
  }));
  EXPECT_FALSE(fs::exists(hosts / "gpu003"));

  declareAlso(
      "  - {names: gpu003, profile: gpu-node, mac: \"52:54:00:20:00:03\", address: 10.20.1.3, bmc: "
      "\"https://10.20.250.3\"}\n");
  keep_->signal(SIGHUP);
  ASSERT_TRUE(becomes([&] { return said().find("muster monitor: 3 nodes") != std::string::npos; }));
  EXPECT_EQ(io::readFile(hosts / "gpu003").value_or(""), "52:54:00:20:00:03,10.20.1.3,gpu003\n");
  EXPECT_EQ(dnsmasqPid(), pid) << "the same dnsmasq";
  EXPECT_EQ(::kill(static_cast<pid_t>(std::stol(pid)), 0), 0) << "and it lives";
}

/// Whether it has read the inventory already or not, what was declared before the signal counts.
TEST_F(MonitorReload, aSignalWhileItBeginsIsNotLost) {
  ASSERT_TRUE(becomes([&] { return fs::exists(folder_ / "state/muster.log"); }));
  declareAlso(
      "  - {names: gpu003, profile: gpu-node, mac: \"52:54:00:20:00:03\", address: 10.20.1.3, bmc: "
      "\"https://10.20.250.3\"}\n");
  keep_->signal(SIGHUP);
  ASSERT_TRUE(becomes([&] { return said().find("muster monitor: 3 nodes") != std::string::npos; }));
}

/// As a rollout of another host leaves it in the store.
TEST_F(MonitorReload, aRolloutThatGoesOnBeginsAnotherRunWithTheSameDnsmasq) {
  const auto shifts = [&] {
    const auto text = said();
    int count = 0;
    for (auto at = text.find("muster monitor: 2 nodes"); at != std::string::npos;
         at = text.find("muster monitor: 2 nodes", at + 1))
      ++count;
    return count;
  };
  ASSERT_TRUE(becomes([&] { return shifts() == 1; }));
  const auto pid = dnsmasqPid();
  auto store = lifecycle::openStore("sqlite:" + (folder_ / "state/muster.db").string());
  ASSERT_TRUE(store) << store.error().str();
  lifecycle::Rollout rollout;
  rollout.id = "r1";
  rollout.state = lifecycle::RolloutState::Done;
  auto book = lifecycle::RolloutRecord::draft(
      **store, rollout, {},
      {{NodeName("gpu001"), {lifecycle::RolloutNodeState::Done, "", {}, {}}}});
  ASSERT_TRUE(book.begin());
  ASSERT_TRUE(becomes([&] { return shifts() == 2; }));
  EXPECT_THAT(said(), HasSubstr("a rollout has changed nodes: the inventory is read again"));
  EXPECT_EQ(dnsmasqPid(), pid);
}

}  // namespace
}  // namespace muster::cli
