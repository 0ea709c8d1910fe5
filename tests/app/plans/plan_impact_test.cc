// SPDX-License-Identifier: Apache-2.0
#include "app/plans/plan_impact.h"

#include "inventory/model/cluster.h"
#include "inventory/model/limits.h"
#include "inventory/model/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace muster::app {
namespace {

using lifecycle::Action;
using lifecycle::Disruption;
using lifecycle::Subject;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// 20 nodes of pool batch in two racks, and login1 in none.
class PlanImpactTest : public ::testing::Test {
 protected:
  PlanImpactTest() {
    cluster_.profiles["gpu"].name = "gpu";
    cluster_.profiles["gpu"].pool = "batch";
    cluster_.profiles["login"].name = "login";
    for (int i = 1; i <= 20; ++i) addNode(fmt::format("gpu{:02}", i), "gpu", i <= 10 ? "r1" : "r2");
    addNode("login1", "login", "r2");
  }
  void addNode(const std::string& name, const std::string& profile, const std::string& rack) {
    inventory::Node node;
    node.name = NodeName(name);
    node.profile = profile;
    node.rack = rack;
    cluster_.nodes.push_back(node);
  }
  void act(const std::string& id, Disruption disruption, std::vector<std::string> needs = {},
           const std::string& blocked = "") {
    Action action;
    action.id = id;
    const auto slash = id.find('/');
    action.facet = {Subject::parse(id.substr(0, slash)), FacetName(id.substr(slash + 1))};
    action.disruption = disruption;
    action.expected = std::chrono::seconds(60);
    action.needs = std::move(needs);
    action.blocked = blocked;
    plan_.actions.push_back(action);
  }
  /// The node leaves work for a driver.
  void change(const std::string& node) {
    act(node + "/pool#drain", Disruption::Drain);
    act(node + "/driver.nvidia", Disruption::Drain, {node + "/pool#drain"});
  }
  void see(const std::string& node, const std::string& facet, const std::string& value) {
    facts_.put({Subject(NodeName(node)), FacetName(facet), value, {}, "test", ""});
  }
  PlanImpact impact() { return impactOf(cluster_, facts_, plan_, {}); }

  inventory::Cluster cluster_;
  lifecycle::FactSet facts_;
  lifecycle::Plan plan_;
};

TEST_F(PlanImpactTest, countsPerPoolAndFailureDomain) {
  change("gpu01");
  change("gpu11");
  act("login1/image", Disruption::Wipe);
  act("login1/os", Disruption::Reset, {"login1/image"});
  act("gpu02/image", Disruption::Wipe, {}, "its disk holds 'noble'");
  const auto seen = impact();
  EXPECT_EQ(seen.actions, 7u);
  EXPECT_EQ(seen.blocked, 1u);
  EXPECT_EQ(seen.subjects, 4u);
  EXPECT_THAT(seen.taken_out, ElementsAre(NodeName("gpu01"), NodeName("gpu11")));
  EXPECT_THAT(seen.wiped, ElementsAre(NodeName("login1"))) << "what is blocked is not done";
  EXPECT_THAT(seen.reset, ElementsAre(NodeName("login1"))) << "a wipe resets";
  EXPECT_EQ(seen.at_least, std::chrono::seconds(120)) << "nodes go side by side";
  ASSERT_THAT(seen.domains, SizeIs(3));
  EXPECT_EQ(seen.domains[0].domain.str(), "pool batch");
  EXPECT_EQ(seen.domains[0].taken_out, 2u);
  EXPECT_EQ(seen.domains[0].size, 20u);
  EXPECT_EQ(seen.domains[0].limit, 2u) << "ten percent";
  EXPECT_EQ(seen.domains[1].size, 10u);
  EXPECT_EQ(seen.domains[2].size, 11u) << "login1 is in that rack too";
  EXPECT_TRUE(requireWithinLimits(seen));
}

TEST_F(PlanImpactTest, aWholePoolIsRefusedAndPointedToARollout) {
  for (const auto* node : {"gpu01", "gpu02", "gpu11"}) change(node);
  const auto refused = requireWithinLimits(impact());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  EXPECT_THAT(refused.error().str(),
              AllOf(HasSubstr("nothing was done"),
                    HasSubstr("pool batch: 3 of 20 nodes would be out of work, at most 2 may"),
                    HasSubstr("muster rollout start")));
}

TEST_F(PlanImpactTest, neighboursThatNobodyLookedAtAreNamed) {
  change("gpu01");
  EXPECT_THAT(uncheckedNeighbours(cluster_, plan_.policy, impact(), {}), IsEmpty())
      << "all nodes were looked at";
  plan_.policy.only = {Subject(NodeName("gpu01")), Subject(NodeName("gpu02"))};
  const auto neighbours = uncheckedNeighbours(cluster_, plan_.policy, impact(), {});
  EXPECT_THAT(neighbours, SizeIs(18)) << "the others of its pool; login1 is in none";
  plan_.actions.clear();
  EXPECT_THAT(uncheckedNeighbours(cluster_, plan_.policy, impact(), {}), IsEmpty())
      << "nobody leaves work";
}

TEST_F(PlanImpactTest, whatIsDrainedAlreadyCounts) {
  change("gpu01");
  see("gpu02", "pool", "drained");
  see("gpu03", "pool", "drained");
  see("gpu04", "pool", "out");
  EXPECT_THAT(exceededLimits(impact()),
              ElementsAre(HasSubstr("3 of 20 nodes would be out of work (2 are drained already)")));
}

TEST_F(PlanImpactTest, theInventoryMovesTheLimit) {
  for (const auto* node : {"gpu01", "gpu02", "gpu11"}) change(node);
  cluster_.limits->max_unavailable.pool = {std::nullopt, 50};
  EXPECT_TRUE(requireWithinLimits(impact()));
  cluster_.limits->max_unavailable.rack = {1, std::nullopt};
  EXPECT_THAT(exceededLimits(impact()), ElementsAre(HasSubstr("rack r1: 2 of 10")));
}

TEST_F(PlanImpactTest, oneNodeMayAlwaysLeaveASmallPool) {
  cluster_.nodes.resize(2);
  change("gpu01");
  EXPECT_TRUE(requireWithinLimits(impact()));
  change("gpu02");
  EXPECT_FALSE(requireWithinLimits(impact())) << "2 of 2";
}

TEST_F(PlanImpactTest, nodesThatWorkNowhereNeedNoLimit) {
  for (int i = 1; i <= 20; ++i) act(fmt::format("gpu{:02}/image", i), Disruption::Wipe);
  const auto seen = impact();
  EXPECT_THAT(seen.domains, IsEmpty());
  EXPECT_TRUE(requireWithinLimits(seen));
}

TEST_F(PlanImpactTest, whatCouldNotBeReadIsTold) {
  see("gpu05", "unread.firmware", "denied");
  see("gpu06", "unread.firmware", "none");
  EXPECT_THAT(impact().unread,
              ElementsAre(testing::Pair("firmware (denied)", ElementsAre(NodeName("gpu05")))));
}

/// Of work in waves: its domains look after themselves, and it is one run.
TEST_F(PlanImpactTest, aRolloutIsHeldToTheLimitOfOneRunAlone) {
  for (const auto* node : {"gpu01", "gpu02", "gpu11"}) change(node);
  EXPECT_TRUE(requireWithinRunLimit(impact())) << "none is declared";
  EXPECT_FALSE(requireWithinLimits(impact()));
  cluster_.limits->per_run = 3;
  EXPECT_TRUE(requireWithinRunLimit(impact()));
  cluster_.limits->per_run = 2;
  const auto refused = requireWithinRunLimit(impact());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  EXPECT_THAT(refused.error().str(),
              AllOf(HasSubstr("3 nodes would be taken out of work, at most 2 may"),
                    HasSubstr("nothing was done"), HasSubstr("--nodes")));
}

}  // namespace
}  // namespace muster::app
