// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/record.h"
#include "inventory/model/gates.h"
#include "inventory/model/rollout_policy.h"
#include "lifecycle/rollout/freeze.h"
#include "lifecycle/rollout/gate.h"
#include "lifecycle/rollout/overlay.h"
#include "tests/fakes/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::lifecycle {
namespace {

using testing::ElementsAre;

TEST(RolloutRecord, isReadBackAsItWasWritten) {
  test::MemoryStore store;
  Rollout rollout;
  rollout.id = "r7";
  rollout.user = "ann";
  rollout.policy.canary.racks = 2;
  rollout.policy.max_unavailable.rack = {2, 10};
  rollout.policy.on_failure = inventory::OnFailure::RollBack;
  rollout.waves = {{"canary", {NodeName("n1")}}, {"to 100 %", {NodeName("n2")}}};
  GateReport gate;
  gate.wave = "canary";
  gate.reasons = {"because"};
  gate.comparisons =
      compareMeasures({{NodeName("n0"), {{"gemm_gflops", 100}}, {{"gemm_gflops", 90}}},
                       {NodeName("n1"), {{"gemm_gflops", 100}}, {{"gemm_gflops", 91}}}},
                      {});
  rollout.gates = {gate};
  std::map<NodeName, NodeProgress> progress;
  for (int i = 0; i < 300; ++i) progress[NodeName(fmt::format("n{}", i))] = {};
  progress[NodeName("n1")] = {RolloutNodeState::Failed,
                              "it was \"odd\"",
                              WallTime(std::chrono::milliseconds(5)),
                              {{"gemm_gflops", 1.5}}};
  const std::map<NodeName, FrozenNode> frozen{
      {NodeName("n1"), {{{"n1/driver.x", "1", Disruption::Drain}}, {{"gemm_gflops", 2}}}}};
  ASSERT_TRUE(RolloutRecord::draft(store, rollout, frozen, progress).begin());
  auto read = RolloutRecord::newest(store);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(toJson(read->rollout()), toJson(rollout));
  EXPECT_EQ(read->progress().size(), 300u);
  EXPECT_EQ(toJson(read->of(NodeName("n1"))), toJson(progress[NodeName("n1")]));
  ASSERT_TRUE(read->frozen(NodeName("n1")));
  EXPECT_EQ(toJson(*read->frozen(NodeName("n1"))), toJson(frozen.at(NodeName("n1"))));
  auto stale = *RolloutRecord::newest(store);
  ASSERT_TRUE(read->takeOver(RolloutDirection::Forward));
  EXPECT_EQ(stale.put(NodeName("n2"), {RolloutNodeState::Done, "", {}, {}}).error().code(),
            ErrorCode::Conflict);
  EXPECT_EQ(stale.save(stale.rollout()).error().code(), ErrorCode::Conflict);
  ASSERT_TRUE(store.putValue("rollout.r7", "{}"));
  EXPECT_EQ(RolloutRecord::newest(store).error().code(), ErrorCode::Corrupt);
}

/// Two hosts freeze at the same time and begin one after the other.
TEST(RolloutRecord, ofTwoThatWereFrozenSideBySideOneBegins) {
  test::MemoryStore store;
  Rollout one, other;
  one.id = "r1";
  other.id = "r2";
  auto first = RolloutRecord::draft(store, one, {}, {{NodeName("n1"), {}}});
  auto second = RolloutRecord::draft(store, other, {}, {{NodeName("n1"), {}}});
  ASSERT_TRUE(first.begin());
  const auto begun = second.begin();
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(begun.error().text(), testing::HasSubstr("rollout r1 is running"));
  EXPECT_THAT(*RolloutRecord::list(store), ElementsAre("r1"));
  one.state = RolloutState::Aborted;
  ASSERT_TRUE(first.save(one));
  auto third = RolloutRecord::draft(store, other, {}, {{NodeName("n1"), {}}});
  EXPECT_TRUE(third.begin());
}

TEST(RolloutOrders, takeEffectAtOnceWhereNobodyWouldObeyThem) {
  test::MemoryStore store;
  Rollout rollout;
  rollout.id = "r7";
  auto draft = RolloutRecord::draft(store, rollout, {}, {{NodeName("n1"), {}}});
  ASSERT_TRUE(draft.begin());
  std::optional<RolloutRecord> record(std::move(draft));
  ASSERT_TRUE(record);
  ASSERT_TRUE(orderRollout(*record, Order::Pause, "ann", false));
  EXPECT_EQ(record->rollout().state, RolloutState::Running) << "whoever runs it will obey";
  EXPECT_EQ(record->order()->order, Order::Pause);
  ASSERT_TRUE(orderRollout(*record, Order::Pause, "ann", true));
  EXPECT_EQ(record->rollout().state, RolloutState::Paused);
  EXPECT_FALSE(orderRollout(*record, Order::Pause, "ann", true)) << "it is paused";
  ASSERT_TRUE(orderRollout(*record, Order::Abort, "ann", false))
      << "a paused one has nobody to tell";
  EXPECT_EQ(record->rollout().state, RolloutState::Aborted);
  EXPECT_FALSE(orderRollout(*record, Order::Abort, "ann", true));
}

}  // namespace
}  // namespace muster::lifecycle
