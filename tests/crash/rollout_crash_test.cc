// SPDX-License-Identifier: Apache-2.0
// A rollout with the real phases on machines in memory: jobs end first, each node is changed and
// certified once, what was rolled out stays, and is undone; and all of it with a kill -9 at every
// write.
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/profile.h"
#include "tests/crash/real_rollout.h"
#include "tests/fakes/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using lifecycle::RolloutDirection;
using lifecycle::RolloutNodeState;
using lifecycle::RolloutRecord;
using lifecycle::RolloutState;
using ::testing::IsEmpty;

class RealRollout : public ::testing::Test {
 protected:
  void inThePool(std::vector<std::string> names) {
    rack_ = std::make_unique<SimulatedRack>(std::move(names));
    store_ = std::make_unique<MemoryStore>();
    const auto end = live(*rack_, *store_);
    ASSERT_TRUE(end.ok) << end.problems;
    rack_->forgetCounts();
    rack_->startJob("gpu001", 300s);
  }
  void expectDriver(const std::string& version, int installs) {
    EXPECT_THAT(rack_->violations, IsEmpty());
    for (const auto& [node, machine] : rack_->machines) {
      EXPECT_EQ(machine.software.at("package.rdma-core"), version) << node.str();
      int count = 0;
      for (const auto& [driver, times] : machine.driver_installs) count += times;
      EXPECT_EQ(count, installs) << node.str();
      EXPECT_EQ(machine.image_writes, 0);
      EXPECT_TRUE(rack_->inPool(node.str()));
    }
    EXPECT_THAT(*store_->openIntents(), IsEmpty());
    EXPECT_THAT(*store_->claims(), IsEmpty());
  }
  std::unique_ptr<SimulatedRack> rack_;
  std::unique_ptr<MemoryStore> store_;
};

TEST_F(RealRollout, aDriverIsRolledOutStaysAndIsAbsorbedByTheInventory) {
  inThePool({"gpu001", "gpu002", "gpu003"});
  const auto end = rollOut(*rack_, *store_, toDriver45());
  ASSERT_TRUE(end.ok) << end.problems;
  expectDriver("45.0", 1);

  const auto applied = live(*rack_, *store_);  // the inventory's file still says 44.0
  EXPECT_TRUE(applied.ok) << applied.problems;
  expectDriver("45.0", 1);

  rack_->cluster.drivers["rdma-45"] = {
      .name = "rdma-45", .packages = {"rdma-core=45.0"}, .verify = {{"package.rdma-core", "45.0"}}};
  rack_->cluster.profiles["gpu-node"].drivers = {"rdma-45"};
  const auto checks = rack_->agents.submitted().size();
  const auto absorbed = live(*rack_, *store_);
  EXPECT_TRUE(absorbed.ok) << absorbed.problems;
  expectDriver("45.0", 1);
  for (std::size_t i = checks; i < rack_->agents.submitted().size(); ++i)
    EXPECT_NE(rack_->agents.submitted()[i].second.kind, wire::TaskKind::RunChecks)
        << "its certificates hold: nothing is tested again";
}

TEST_F(RealRollout, aDriverComesBack) {
  inThePool({"gpu001", "gpu002"});
  ASSERT_TRUE(rollOut(*rack_, *store_, toDriver45()).ok);
  const auto before = rack_->wall.now();
  const auto back = rollOut(*rack_, *store_, "", RolloutDirection::Back);
  EXPECT_TRUE(back.ok) << back.problems;
  EXPECT_LT(rack_->wall.now() - before, 10min) << "it waits for nothing";
  expectDriver("44.0", 2);
  const auto applied = live(*rack_, *store_);
  EXPECT_TRUE(applied.ok) << applied.problems;
  expectDriver("44.0", 2);
}

TEST_F(RealRollout, firmwareIsFlashedOnceAndBackAgain) {
  inThePool({"gpu001", "gpu002"});
  const auto change = toBios150(*rack_);
  const auto end = rollOut(*rack_, *store_, change);
  ASSERT_TRUE(end.ok) << end.problems;
  for (const auto* node : {"gpu001", "gpu002"}) {
    EXPECT_EQ(rack_->bmcs.fake(NodeName(node)).components["BIOS"].version, "1.5.0");
    EXPECT_EQ(rack_->uploads(node, "BIOS"), 1);
    EXPECT_EQ(rack_->uploads(node, "BMC"), 0);
  }
  const auto back = rollOut(*rack_, *store_, "", RolloutDirection::Back);
  EXPECT_TRUE(back.ok) << back.problems;
  for (const auto* node : {"gpu001", "gpu002"})
    EXPECT_EQ(rack_->bmcs.fake(NodeName(node)).components["BIOS"].version, "1.4.2");
  EXPECT_THAT(rack_->violations, IsEmpty());
}

TEST_F(RealRollout, killedAtEveryWriteInstallsOnceAndKillsNoJob) {
  inThePool({"gpu001"});
  const auto whole = rollOut(*rack_, *store_, toDriver45());
  ASSERT_TRUE(whole.ok) << whole.problems;
  ASSERT_GT(whole.writes, 30);
  for (int at = 0; at < whole.writes; ++at) {
    const bool lost =
        at % 2 ==
        0;  // both ways at each write are tested with fakes, which cost less (tests/lifecycle)
    SCOPED_TRACE(fmt::format("write {} of {} {}", at, whole.writes, lost ? "lost" : "kept"));
    inThePool({"gpu001"});
    ASSERT_TRUE(rollOut(*rack_, *store_, toDriver45(), RolloutDirection::Forward,
                        {.crash_at = at, .lost = lost})
                    .crashed);
    const auto begun = RolloutRecord::newest(*store_);
    if (!begun || begun->rollout().isOpen()) {
      const auto end = rollOut(*rack_, *store_, begun ? "" : toDriver45());
      EXPECT_TRUE(end.ok) << end.problems;
    }
    EXPECT_EQ(RolloutRecord::newest(*store_)->rollout().state, RolloutState::Done);
    expectDriver("45.0", 1);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace muster::test
