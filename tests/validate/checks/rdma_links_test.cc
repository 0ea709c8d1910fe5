// SPDX-License-Identifier: Apache-2.0
// rdma.links over a folder that stands for the node's /sys, which changes while the check waits.
#include "validate/checks/rdma_links.h"
#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"
#include "tests/run_async.h"
#include "validate/gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::validate {
namespace {

using ::testing::HasSubstr;
using wire::CheckStatus;

class RdmaLinks : public ::testing::Test {
 protected:
  RdmaLinks() { port("mlx5_0", "InfiniBand"); }

  void put(const std::string& file, const std::string& text) {
    const auto path = host_.root / file;
    std::filesystem::create_directories(path.parent_path());
    ASSERT_TRUE(io::writeFileAtomic(path, text + "\n"));
  }
  void port(const std::string& device, const std::string& layer) {
    const auto at = "sys/class/infiniband/" + device + "/ports/1/";
    put(at + "link_layer", layer), put(at + "rate", "400 Gb/sec (4X NDR)");
    for (const char* name :
         {"symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors",
          "port_rcv_remote_physical_errors", "port_xmit_discards", "local_link_integrity_errors",
          "excessive_buffer_overrun_errors", "port_xmit_constraint_errors",
          "port_rcv_constraint_errors", "port_xmit_wait", "port_xmit_data", "port_rcv_data",
          "port_xmit_packets", "port_rcv_packets"})
      put(at + "counters/" + name, "5");
  }
  void count(const std::string& counter, std::uint64_t value) {
    put("sys/class/infiniband/mlx5_0/ports/1/counters/" + counter, std::to_string(value));
  }
  /// `change` happens between the two readings; each moment of the clock takes a millisecond.
  Verdict check(std::function<void()> change = [] {}, double window = 30) {
    return measureRdmaLinks(
        {{"window_seconds", window}}, host_,
        {[this] { return now_ += 0.001; },
         [this, change](double seconds) { now_ += seconds, waited_ = seconds, change(); }});
  }

  double now_ = 1'000, waited_ = 0;
  muster::test::TempFolder folder_;
  Host host_{folder_.path(),
             [](const io::Command&) -> Result<io::ProcessExit> {
               return fail(ErrorCode::NotFound, "no such program");
             },
             {}};
};

TEST_F(RdmaLinks, whatWasCountedBeforeIsPast) {
  const auto verdict = check();
  EXPECT_EQ(verdict.status, CheckStatus::Pass) << verdict.text;
  EXPECT_LE(verdict.values.at("mlx5_0.port1_ber_at_most"), 1e-12);
}

TEST_F(RdmaLinks, waitsForAsLongAsTheProofTakes) {
  EXPECT_EQ(check([] {}, 1).status, CheckStatus::Pass);
  EXPECT_NEAR(waited_, 8.05, 0.01) << "3e12 bits of a 4xNDR link take 7 s";
  put("sys/class/infiniband/mlx5_0/ports/1/rate", "2.5 Gb/sec (1X SDR)");
  EXPECT_EQ(check([] {}, 1).status, CheckStatus::NoData)
      << "20 minutes at 1xSDR: nobody waits for that";
  EXPECT_EQ(waited_, 120);
}

TEST_F(RdmaLinks, noPortIsNoData) {
  std::filesystem::remove_all(host_.root / "sys");
  EXPECT_EQ(check().status, CheckStatus::NoData);
  port("rxe0", "Ethernet");
  EXPECT_EQ(check().status, CheckStatus::NoData);
}

TEST_F(RdmaLinks, aPortThatVanishesIsNoData) {
  EXPECT_EQ(
      check([this] {
        std::filesystem::remove_all(host_.root / "sys/class/infiniband/mlx5_0/ports/1/counters");
      }).status,
      CheckStatus::NoData);
}

TEST_F(RdmaLinks, aFlapFailsWithTheCablesSerialNumber) {
  std::filesystem::create_directories(host_.root / "sys/class/infiniband/mlx5_0/device/net/ibs0");
  host_.run = [](const io::Command& command) -> Result<io::ProcessExit> {
    EXPECT_EQ(command.program, "ethtool");
    EXPECT_EQ(command.args, (std::vector<std::string>{"-m", "ibs0"}));
    return io::ProcessExit{0, "\tVendor name : NVIDIA\n\tVendor SN : MT2325VB00571\n", ""};
  };
  const auto verdict = check([this] { count("link_downed", 6); });
  EXPECT_EQ(verdict.status, CheckStatus::Fail);
  EXPECT_THAT(verdict.text, HasSubstr("mlx5_0/1: 1 times down"));
  EXPECT_EQ(verdict.evidence.at(0).at("transceiver"), "NVIDIA MT2325VB00571");
}

TEST_F(RdmaLinks, clearedMeanwhileIsNoData) {
  EXPECT_EQ(check([this] { count("port_xmit_data", 1); }).status, CheckStatus::NoData);
}

TEST_F(RdmaLinks, aTestWatchesTheLinksOfItsDevice) {
  port("mlx5_1", "InfiniBand");
  const LinkWatch watch(host_, "mlx5_0", [this] { return now_; });
  now_ += 2;
  EXPECT_TRUE(watch.complaints().empty()) << "two seconds without an error prove nothing bad";
  count("port_rcv_errors", 9);
  put("sys/class/infiniband/mlx5_1/ports/1/counters/link_downed", "99");
  EXPECT_EQ(watch.complaints(), std::vector<std::string>{"mlx5_0/1: 4 damaged packets received"});
}

TEST(RdmaLinksGate, runsOnInfiniBandOnly) {
  inventory::Cluster cluster;
  cluster.fabrics["ib"] = {};
  cluster.fabrics["roce"].roce = inventory::Roce{};
  inventory::Gate gate;
  gate.level = inventory::GateLevel::Medium, gate.groups = {"rdma"};
  const auto asks = [&](const std::string& fabric) {
    inventory::Profile profile;
    profile.fabric = fabric;
    const auto checks = localChecks(cluster, profile, gate);
    return checks && std::any_of(checks->begin(), checks->end(),
                                 [](const auto& check) { return check.id == "rdma.links"; });
  };
  EXPECT_TRUE(asks("ib"));
  EXPECT_FALSE(asks("roce"));
  EXPECT_FALSE(asks(""));
}

}  // namespace
}  // namespace muster::validate
