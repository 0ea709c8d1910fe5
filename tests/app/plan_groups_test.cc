// SPDX-License-Identifier: Apache-2.0
#include "app/plan_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace muster::app {
namespace {

using lifecycle::Action;
using lifecycle::Disruption;
using lifecycle::Subject;
using ::testing::ElementsAre;
using ::testing::SizeIs;

Action action(const std::string& node, const std::string& facet, Disruption disruption,
              std::string blocked = "") {
  Action out;
  out.id = node + "/" + facet;
  out.facet = {Subject(NodeName(node)), FacetName(facet)};
  out.from = "1";
  out.to = "2";
  out.disruption = disruption;
  out.blocked = std::move(blocked);
  return out;
}

TEST(PlanGroups, theSameChangeOfManyNodesIsOneLineAndTheWorstStandsFirst) {
  lifecycle::Plan plan;
  for (int i = 1; i <= 3; ++i)
    plan.actions.push_back(action(fmt::format("gpu{}", i), "bios", Disruption::Reset));
  plan.actions.push_back(action("gpu1", "image", Disruption::Wipe));
  plan.actions.push_back(action("gpu2", "enrolled", Disruption::None));
  plan.actions.push_back(action("gpu9", "bios", Disruption::Reset));
  plan.actions.back().to = "3";
  const auto groups = groupsOf(plan);
  ASSERT_THAT(groups, SizeIs(4));
  EXPECT_EQ(groups[0].facet, "image");
  EXPECT_THAT(groups[1].subjects, ElementsAre("gpu1", "gpu2", "gpu3"));
  EXPECT_THAT(groups[2].subjects, ElementsAre("gpu9"));
  EXPECT_EQ(groups[3].facet, "enrolled");
}

/// Each refusal names its own node; a node whose name begins with another's is not that one.
TEST(PlanGroups, whatIsBlockedForTheSameReasonIsOneLineToo) {
  lifecycle::Plan plan;
  for (const std::string node : {"gpu1", "gpu2", "gpu12"})
    plan.actions.push_back(action(node, "image", Disruption::Wipe,
                                  node + " holds a system: muster wipe grant " + node));
  plan.actions.push_back(action("gpu3", "image", Disruption::Wipe, "gpu31 is its twin"));
  const auto groups = groupsOf(plan);
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_EQ(groups[0].blocked, "NODE holds a system: muster wipe grant NODE");
  EXPECT_THAT(groups[0].subjects, ElementsAre("gpu1", "gpu2", "gpu12"));
  EXPECT_EQ(groups[1].blocked, "gpu31 is its twin");
}

TEST(PlanGroups, whatIsBlockedForOneNodeKeepsItsName) {
  lifecycle::Plan plan;
  plan.actions.push_back(action("gpu1", "image", Disruption::Wipe, "gpu1 holds a system"));
  EXPECT_EQ(groupsOf(plan).at(0).blocked, "gpu1 holds a system");
  EXPECT_THAT(groupsOf({}), SizeIs(0));
}

}  // namespace
}  // namespace muster::app
