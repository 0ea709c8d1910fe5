// SPDX-License-Identifier: Apache-2.0
#include "cli/view/plan_view.h"

#include "cli/view/common_text.h"
#include "cli/view/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

namespace muster::cli {
namespace {

using lifecycle::Action;
using lifecycle::Disruption;
using lifecycle::Subject;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Action actionOf(const std::string& node, const std::string& facet, std::string from,
                std::string to) {
  Action action;
  action.id = node + "/" + facet;
  action.facet = {Subject(NodeName(node)), FacetName(facet)};
  action.from = std::move(from);
  action.to = std::move(to);
  action.reason = "profile gpu pins it on " + node;
  return action;
}

std::string nodeName(int number) { return fmt::format("gpu{:03}", number); }

TEST(PlanView, equalChangesStandOnceWithTheHostlistOfTheirNodes) {
  lifecycle::Plan plan;
  for (int i = 1; i <= 128; ++i)
    plan.actions.push_back(actionOf(nodeName(i), "driver.nvidia", "570", "575"));
  const auto text = planText(plan);
  EXPECT_THAT(text, HasSubstr("gpu[001-128]  (128 nodes)\n  driver.nvidia          570 -> 575\n"
                              "      because profile gpu pins it on NODE\n"));
  EXPECT_LT(std::ranges::count(text, '\n'), 8);
  EXPECT_THAT(text, HasSubstr("128 actions on 128 subjects"));
  EXPECT_GT(std::ranges::count(planText(plan, PlanDetail::Nodes), '\n'), 128 * 3);
}

TEST(PlanView, whatDiffersStandsApart) {
  lifecycle::Plan plan;
  for (int i = 1; i <= 4; ++i)
    plan.actions.push_back(actionOf(nodeName(i), "os", i == 3 ? "off" : "silent", "running"));
  plan.actions[3].blocked = "gpu004 would be wiped; `muster wipe gpu004 --reason TEXT`";
  EXPECT_THAT(planText(plan),
              AllOf(HasSubstr("gpu[001-002]  (2 nodes)\n"), HasSubstr("gpu003\n"),
                    HasSubstr("pins it on gpu003\n"), HasSubstr("BLOCKED: gpu004 would be wiped"),
                    HasSubstr("4 actions on 4 subjects, 1 blocked")));
}

TEST(PlanView, digestsOfEachNodeAreOneChange) {
  lifecycle::Plan plan;
  plan.actions = {actionOf("gpu001", "certificate", "", "valid:0123456789abcdef"),
                  actionOf("gpu002", "certificate", "", "valid:fedcba9876543210")};
  EXPECT_THAT(planText(plan), AllOf(HasSubstr("gpu[001-002]"), HasSubstr("unknown -> valid:…")));
  plan.actions[1].to = plan.actions[0].to;
  EXPECT_THAT(planText(plan), HasSubstr("unknown -> valid:01234567…"));
}

TEST(PlanView, aFleetInWhichAllDifferIsBounded) {
  lifecycle::Plan plan;
  for (int i = 1; i <= 5'000; ++i)
    plan.actions.push_back(actionOf(nodeName(i), "hw", "", fmt::format("serial-{}-x", i)));
  const auto text = planText(plan);
  EXPECT_LT(text.size(), 60'000u);
  EXPECT_THAT(text, HasSubstr("… and 4800 more kinds of change; --expand"));
}

TEST(PlanView, theNameOfAnotherNodeIsNoneOfThisOne) {
  EXPECT_EQ(commonText("gpu1 waits for gpu10 and gpu1/os (gpu1-bmc)", "gpu1"),
            "NODE waits for gpu10 and NODE/os (gpu1-bmc)");
  EXPECT_EQ(commonText("", "gpu1"), "");
  EXPECT_EQ(commonText("gpu1", "gpu1"), "NODE");
}

TEST(PlanView, theSummarySaysWhatIsTakenOutOfHowMany) {
  app::PlanImpact impact;
  impact.actions = 9, impact.blocked = 1, impact.subjects = 2;
  impact.at_least = std::chrono::seconds(3900);
  impact.taken_out = {NodeName("gpu001"), NodeName("gpu002")};
  impact.wiped = {NodeName("gpu002")};
  impact.domains.push_back({{lifecycle::DomainKind::Pool, "batch"}, 2, 1, 2, 1});
  impact.domains.push_back({{lifecycle::DomainKind::Rack, "r1"}, 2, 0, 16, 16});
  EXPECT_EQ(impactText(impact),
            "9 actions on 2 subjects, 1 of them blocked; at least 1 h 5 min, as long as they "
            "usually take\n"
            "  taken out of work       2  gpu[001-002]\n"
            "    pool batch: 2 of 2, 1 more are drained (limit 1)  TOO MANY\n"
            "    rack r1: 2 of 16\n"
            "  wiped                   1  gpu002\n\n");
  EXPECT_EQ(impactText({}), "");
  app::PlanImpact stale;
  stale.unread["enrolled (denied)"] = {NodeName("gpu007")};
  EXPECT_THAT(impactText(stale), HasSubstr("could not read enrolled (denied) of gpu007"));
}

TEST(PlanView, aReportGroupsEqualProblems) {
  lifecycle::ApplyReport report;
  report.failed = 40;
  for (int i = 1; i <= 40; ++i)
    report.problems.push_back(nodeName(i) + "/os: " + nodeName(i) + " did not start within 600 s");
  const auto text = reportText(report);
  EXPECT_THAT(text, HasSubstr("  gpu[001-040]/os: NODE did not start within 600 s\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
}

TEST(PlanView, stageTimesOfManyAreTheirSpread) {
  std::vector<app::StageTimes> stages;
  for (int i = 1; i <= 40; ++i)
    stages.push_back({Subject(NodeName(nodeName(i))), {{"image", i}, {"boot", 0}}});
  const auto text = stageTable(stages);
  EXPECT_THAT(text, AllOf(HasSubstr("of 40 subjects"), HasSubstr("fastest         1.0        -"),
                          HasSubstr("slowest        40.0"), Not(HasSubstr("gpu001"))));
  stages.resize(2);
  EXPECT_THAT(stageTable(stages), HasSubstr("gpu002"));
}

}  // namespace
}  // namespace muster::cli
