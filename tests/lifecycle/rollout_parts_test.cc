// SPDX-License-Identifier: Apache-2.0
// The pure parts of a rollout: waves, window, regression, the cluster that nodes step over in.
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/gates.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "inventory/model/rollout_policy.h"
#include "lifecycle/rollout/effective_cluster.h"
#include "lifecycle/rollout/freeze.h"
#include "lifecycle/rollout/gate.h"
#include "lifecycle/rollout/overlay.h"
#include "lifecycle/rollout/waves.h"
#include "lifecycle/rollout/window.h"
#include "tests/fakes/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <random>

namespace muster::lifecycle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

inventory::Cluster clusterOf(int nodes, int per_rack) {
  inventory::Cluster cluster;
  cluster.digest = "declared";
  cluster.drivers["nvidia-570"] = {.name = "nvidia-570", .packages = {"nvidia=570"}};
  cluster.profiles["gpu"] = {
      .name = "gpu", .image = "noble", .drivers = {"nvidia-570"}, .pool = "batch", .fabric = "ib"};
  cluster.fabrics["ib"] = {.name = "ib", .nodes_per_su = 8};
  for (int i = 0; i < nodes; ++i) {
    inventory::Node node;
    node.name = NodeName(fmt::format("n{:04}", i));
    node.profile = "gpu";
    node.rack = fmt::format("r{:02}", i / per_rack);
    cluster.nodes.push_back(node);
  }
  return cluster;
}

std::vector<NodeName> namesOf(const inventory::Cluster& cluster) {
  std::vector<NodeName> out;
  for (const auto& node : cluster.nodes) out.push_back(node.name);
  return out;
}

// ---- waves

TEST(RolloutWaves, canariesComeFromDifferentRacksAndWavesGrow) {
  const auto cluster = clusterOf(100, 10);
  const auto waves = makeWaves(cluster, namesOf(cluster), {});
  ASSERT_EQ(waves.size(), 4u);
  EXPECT_THAT(waves[0].nodes, ElementsAre(NodeName("n0000"), NodeName("n0010"), NodeName("n0020")));
  EXPECT_EQ(waves[1].nodes.size(), 7u) << "to 10 %, canaries included";
  EXPECT_EQ(waves[2].nodes.size(), 40u);
  EXPECT_EQ(waves[3].nodes.size(), 50u);
}

TEST(RolloutWaves, everyProfileHasACanaryBeforeARackHasTwo) {
  auto cluster = clusterOf(40, 10);
  cluster.profiles["cpu"] = {.name = "cpu", .image = "noble"};
  cluster.nodes[39].profile = "cpu";
  inventory::RolloutPolicy policy;
  policy.canary.nodes = 2;
  EXPECT_THAT(makeWaves(cluster, namesOf(cluster), policy)[0].nodes,
              ElementsAre(NodeName("n0039"), NodeName("n0000")));
}

TEST(RolloutWaves, wholeRacksAreCanariesWhereThePolicySaysSo) {
  const auto cluster = clusterOf(30, 10);
  inventory::RolloutPolicy policy;
  policy.canary.racks = 1;
  const auto waves = makeWaves(cluster, namesOf(cluster), policy);
  EXPECT_EQ(waves[0].nodes.size(), 10u);
  EXPECT_EQ(waves[0].nodes.back(), NodeName("n0009"));
}

TEST(RolloutWaves, holdEveryNodeOnceWhateverThePolicy) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto cluster =
        clusterOf(1 + static_cast<int>(random() % 60), 1 + static_cast<int>(random() % 9));
    inventory::RolloutPolicy policy;
    policy.canary.nodes = 1 + static_cast<int>(random() % 5);
    if (random() % 3 == 0) policy.canary.racks = 1 + static_cast<int>(random() % 3);
    policy.waves.clear();
    for (int share = 1 + static_cast<int>(random() % 30); share < 100;
         share += 1 + static_cast<int>(random() % 50))
      policy.waves.push_back(share);
    std::vector<NodeName> seen;
    for (const auto& wave : makeWaves(cluster, namesOf(cluster), policy)) {
      EXPECT_FALSE(wave.nodes.empty());
      seen.insert(seen.end(), wave.nodes.begin(), wave.nodes.end());
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, namesOf(cluster));
  }
}

// ---- window

TEST(RolloutWindow, countsEveryGroupOfANode) {
  const auto cluster = clusterOf(32, 4);
  const LeafSwitchesOf leaves = [](const inventory::Cluster& all) {
    std::map<std::string, std::set<std::string>> out;
    for (std::size_t i = 0; i < all.nodes.size(); ++i)
      out[all.nodes[i].name.str()] = {i % 2 ? "leaf-b" : "leaf-a"};
    return out;
  };
  inventory::Unavailability most;
  most.pool = {5, std::nullopt};
  most.rack = {2, std::nullopt};
  most.su = {std::nullopt, 40};  // of 8 nodes: 3
  most.leaf = {4, std::nullopt};
  Window window(domainsOf(cluster, leaves), most);
  const auto go = [&](const char* name) {
    const auto why = window.whyNot(NodeName(name));
    if (why.empty()) window.out(NodeName(name));
    return why;
  };
  EXPECT_EQ(go("n0000"), "");
  EXPECT_EQ(go("n0002"), "");
  EXPECT_EQ(go("n0001"), "2 of 4 nodes of rack r00 are out of work, and 2 may be: n[0000,0002]");
  EXPECT_EQ(go("n0004"), "");
  EXPECT_THAT(go("n0005"), HasSubstr("3 of 8 nodes of su ib-1 are out of work"));
  EXPECT_EQ(go("n0008"), "");
  EXPECT_THAT(go("n0016"), HasSubstr("leaf leaf-a"));
  EXPECT_EQ(go("n0017"), "");
  EXPECT_THAT(go("n0031"), HasSubstr("5 of 32 nodes of pool batch are out of work, and 5 may be"));
  EXPECT_EQ(window.whyNot(NodeName("n0000")), "") << "it is out already";
  window.in(NodeName("n0000"));
  EXPECT_EQ(go("n0031"), "");
}

TEST(RolloutWindow, aSmallGroupStillLetsOneNodeThrough) {
  const auto cluster = clusterOf(4, 4);
  Window window(domainsOf(cluster, nullptr), {});  // 10 % of four
  EXPECT_EQ(window.whyNot(NodeName("n0000")), "");
  window.out(NodeName("n0000"));
  EXPECT_NE(window.whyNot(NodeName("n0001")), "");
}

// ---- regression

std::vector<NodeMeasures> measured(const std::string& name,
                                   const std::vector<std::pair<double, double>>& before_after) {
  std::vector<NodeMeasures> out;
  for (const auto& [before, after] : before_after)
    out.push_back({NodeName(fmt::format("n{}", out.size())), {{name, before}}, {{name, after}}});
  return out;
}

TEST(Regression, provesALossAndNamesTheWorstNode) {
  const auto found = compareMeasures(
      measured("rdma_write_gbits", {{390, 350}, {392, 349}, {391, 355}, {389, 340}}), {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].verdict, RegressionVerdict::Slower);
  EXPECT_EQ(found[0].worst_node, "n3");
  EXPECT_GT(found[0].least_loss_percent, 3);
  // By hand: losses 10.2564, 10.9694, 9.2072, 12.5964; mean 10.7573, s 1.4237, t(3; 0.95)
  // = 2.3534: 10.7573 - 1.6753.
  EXPECT_NEAR(found[0].mean_loss_percent, 10.7573, 1e-3);
  EXPECT_NEAR(found[0].least_loss_percent, 9.0820, 1e-3);
}

TEST(Regression, provesThatNothingWasLost) {
  const auto found = compareMeasures(
      measured("gemm_gflops", {{100, 100.2}, {101, 100.5}, {99, 99.1}, {100, 99.8}}), {});
  EXPECT_EQ(found[0].verdict, RegressionVerdict::Holds) << found[0].text();
}

TEST(Regression, doesNotTakeSilenceForProof) {
  EXPECT_EQ(compareMeasures(measured("gemm_gflops", {{100, 100}}), {})[0].verdict,
            RegressionVerdict::Unclear);
  const auto scattered =
      compareMeasures(measured("gemm_gflops", {{100, 104}, {100, 93}, {100, 101}}), {});
  EXPECT_EQ(scattered[0].verdict, RegressionVerdict::Unclear);
  EXPECT_THAT(scattered[0].text(),
              HasSubstr("too few nodes for so much scatter: with 95 % confidence it is between"));
  EXPECT_TRUE(
      compareMeasures({{NodeName("n"), {{"gemm_gflops", 1}}, {{"rdma_write_gbits", 1}}}}, {})
          .empty());
}

TEST(Regression, knowsThatLongerIsWorse) {
  const auto found =
      compareMeasures(measured("boot_seconds", {{100, 150}, {102, 155}, {99, 148}}), {});
  EXPECT_EQ(found[0].verdict, RegressionVerdict::Slower);
  EXPECT_EQ(found[0].tolerated_percent, 25);
  EXPECT_EQ(
      compareMeasures(measured("boot_seconds", {{100, 101}, {102, 99}, {99, 100}}), {})[0].verdict,
      RegressionVerdict::Holds);
}

/// Of many rollouts without any loss at most 5 % may be called slower, whatever the scatter; of
/// those at the limit likewise.
TEST(Regression, isWrongNoMoreOftenThanStated) {
  std::mt19937 random(11);
  std::normal_distribution<double> noise(0, 4);
  int wrong_slower = 0, wrong_holds = 0;
  constexpr int kRounds = 4'000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::pair<double, double>> at_limit;
    for (int i = 0; i < 5; ++i) at_limit.emplace_back(100, 100 - 3 + noise(random));
    const auto verdict = compareMeasures(measured("gemm_gflops", at_limit), {})[0].verdict;
    wrong_slower += verdict == RegressionVerdict::Slower;
    wrong_holds += verdict == RegressionVerdict::Holds;
  }
  EXPECT_NEAR(wrong_slower, kRounds * 0.05, kRounds * 0.015);
  EXPECT_NEAR(wrong_holds, kRounds * 0.05, kRounds * 0.015);
}

TEST(Regression, readsRatesOutOfEvidenceAndNothingElse) {
  Fact gate{Subject(NodeName("n")),
            FacetName("gate.a"),
            "pass:x",
            {},
            "",
            R"({"results":[{"id":"host.gemm","values":{"gemm_gflops":51.5,"products":9}},
    {"id":"gpu.0","values":{"gemm_gflops":49.0,"gemm_tflops":"many"}},{"id":"odd"}]})"};
  Fact other{Subject(NodeName("n")), FacetName("pool"), "in", {}, "", R"({"jobs":false})"};
  Fact broken{Subject(NodeName("n")), FacetName("gate.b"), "fail:x", {}, "", "[{"};
  EXPECT_EQ(measuresOf({gate, other, broken}), (Measures{{"gemm_gflops", 49.0}}))
      << "the worst of several";
}

TEST(Regression, measuresHowLongTheSystemTookToStart) {
  test::MemoryStore store;
  const Subject node{NodeName("n")};
  const auto at = [](int seconds) { return WallTime(std::chrono::seconds(seconds)); };
  const auto boot = [&](const std::string& id, int opened, int closed, IntentState state) {
    Intent intent;
    intent.id = id;
    intent.action.facet = {node, FacetName("os")};
    intent.opened_at = at(opened);
    ASSERT_TRUE(store.openIntent(intent));
    ASSERT_TRUE(store.closeIntent(id, state, "", at(closed)));
  };
  boot("first", 100, 190, IntentState::Done);
  EXPECT_EQ(nodeMeasures(store, node, {}, {})->at("boot_seconds"), 90);
  EXPECT_TRUE(nodeMeasures(store, node, {}, at(500))->empty()) << "that start was before";
  boot("second", 600, 720, IntentState::Done);
  boot("third", 800, 900, IntentState::Failed);
  EXPECT_EQ(nodeMeasures(store, node, {}, at(500))->at("boot_seconds"), 120);
  Fact old{node, FacetName("gate.a"), "pass:x", at(400), "", R"([{"values":{"gemm_gflops":5}}])"};
  EXPECT_FALSE(nodeMeasures(store, node, {old}, at(500))->contains("gemm_gflops"))
      << "evidence from before is no 'after'";
}

// ---- the cluster that nodes step over in

inventory::Change to575() {
  inventory::Change change;
  change.drivers["nvidia-575"] = {.name = "nvidia-575", .packages = {"nvidia=575"}};
  change.profiles["gpu"] = {.name = "gpu",
                            .image = {},
                            .firmware = {},
                            .drivers = std::vector<std::string>{"nvidia-575"}};
  return change;
}

TEST(EffectiveCluster, oneNodeStepsOverAndBack) {
  EffectiveCluster live(clusterOf(4, 2));
  live.add("r1", to575());
  EXPECT_EQ(live.cluster().digest, "declared") << "nothing has changed yet";
  EXPECT_TRUE(live.cluster().drivers.contains("nvidia-575"));
  live.change("r1", NodeName("n0001"));
  const auto& changed = live.cluster().profileOf(*live.cluster().findNode(NodeName("n0001")));
  EXPECT_THAT(changed.drivers, ElementsAre("nvidia-575"));
  EXPECT_EQ(changed.name, "gpu")
      << "its certificate is worth the same when the inventory itself says so";
  EXPECT_THAT(live.cluster().profileOf(*live.cluster().findNode(NodeName("n0002"))).drivers,
              ElementsAre("nvidia-570"));
  const auto one = live.cluster().digest;
  EXPECT_NE(one, "declared");
  live.change("r1", NodeName("n0002"));
  EXPECT_NE(live.cluster().digest, one);
  live.revert("r1", NodeName("n0002"));
  EXPECT_EQ(live.cluster().digest, one) << "a function of what has crossed, not of how";
  live.revert("r1", NodeName("n0001"));
  EXPECT_EQ(live.cluster().digest, "declared");
}

TEST(EffectiveCluster, isGoneWhenTheInventorySaysTheSame) {
  auto cluster = clusterOf(2, 2);
  cluster.drivers["nvidia-575"] = {.name = "nvidia-575", .packages = {"nvidia=575"}};
  cluster.profiles["gpu"].drivers = {"nvidia-575"};
  EffectiveCluster live(cluster);
  live.add("r1", to575());
  live.change("r1", NodeName("n0000"));
  EXPECT_EQ(live.cluster().digest, "declared");
  EXPECT_FALSE(live.affects("r1", NodeName("n0001")));
}

TEST(EffectiveCluster, changesLieOnEachOther) {
  EffectiveCluster live(clusterOf(2, 2));
  live.add("r1", to575());
  inventory::Change image;
  image.images["noble-2"] = {.name = "noble-2"};
  image.profiles["gpu"] = {.name = "gpu", .image = "noble-2", .firmware = {}, .drivers = {}};
  live.add("r2", image);
  live.change("r2", NodeName("n0000"));
  live.change("r1", NodeName("n0000"));
  const auto& both = live.cluster().profileOf(live.cluster().nodes[0]);
  EXPECT_EQ(both.image, "noble-2");
  EXPECT_THAT(both.drivers, ElementsAre("nvidia-575"));
  live.revert("r1", NodeName("n0000"));
  EXPECT_THAT(live.cluster().profileOf(live.cluster().nodes[0]).drivers, ElementsAre("nvidia-570"));
}

// ---- the record

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
  gate.comparisons = compareMeasures(measured("gemm_gflops", {{100, 90}, {100, 91}}), {});
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
