// SPDX-License-Identifier: Apache-2.0
// plan, apply, status and records from a store, without agents, BMCs or another process.
#include "app/plans/plan.h"

#include "app/nodes/status.h"
#include "app/plans/apply.h"
#include "app/records/records.h"
#include "inventory/model/cluster.h"
#include "tests/app/site_folder.h"

#include <gmock/gmock.h>

namespace muster::app {
namespace {

using ::testing::HasSubstr;

class Plan : public ::testing::Test {
 protected:
  SiteFolder site_;
  ProgressListener progress_;
};

TEST_F(Plan, fromStoredFactsNeedsAStore) {
  const auto refused = makePlan(site_.options(), {"", false}, progress_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(std::filesystem::exists(site_.options().state));
}

TEST_F(Plan, coversTheNamedNodesAlone) {
  (void)site_.store();
  const auto all = makePlan(site_.options(), {"", false}, progress_);
  ASSERT_TRUE(all) << all.error().str();
  const auto one = makePlan(site_.options(), {"gpu002", false}, progress_);
  ASSERT_TRUE(one) << one.error().str();
  ASSERT_FALSE(one->plan.empty());
  EXPECT_LT(one->plan.actions.size(), all->plan.actions.size());
  for (const auto& action : one->plan.actions)
    EXPECT_EQ(action.facet.subject, lifecycle::Subject(NodeName("gpu002")));
  EXPECT_EQ(one->cluster().nodes.size(), 2u) << "what it was made from lives on";
}

TEST_F(Plan, refusesANodeThatIsNotDeclared) {
  (void)site_.store();
  const auto refused = makePlan(site_.options(), {"gpu003", false}, progress_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("gpu003 is not in the inventory"));
}

TEST_F(Plan, savedForAnotherInventoryIsNotApplied) {
  (void)site_.store();
  auto made = makePlan(site_.options(), {"", false}, progress_);
  ASSERT_TRUE(made);
  std::string changed(SiteFolder::kInventory);
  changed.replace(changed.find("unit: 12"), 8, "unit: 14");
  site_.write("cluster.yaml", changed);
  const auto refused = applyPlan(site_.options(), {"", made->plan}, progress_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(refused.error().str(), HasSubstr("the inventory has changed"));
}

TEST_F(Plan, savedAndNodesTogetherAreRefused) {
  (void)site_.store();
  auto made = makePlan(site_.options(), {"", false}, progress_);
  ASSERT_TRUE(made);
  const auto refused = applyPlan(site_.options(), {"gpu001", made->plan}, progress_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
}

TEST_F(Plan, stageTimesAreEmptyWhereNothingWasDone) {
  const auto store = site_.store();
  const auto cluster = loadCluster(site_.options());
  ASSERT_TRUE(cluster);
  const auto times = stageTimes(*cluster, *store, WallTime{});
  ASSERT_TRUE(times);
  EXPECT_TRUE(times->empty());
}

TEST_F(Plan, statusHasARowForEachNode) {
  (void)site_.store();
  auto reader = StatusReader::open(site_.options());
  ASSERT_TRUE(reader) << reader.error().str();
  const auto status = reader->read();
  ASSERT_TRUE(status) << status.error().str();
  ASSERT_EQ(status->nodes.size(), 2u);
  EXPECT_EQ(status->nodes[0].node, "gpu001");
  EXPECT_EQ(status->nodes[0].pool, "-") << "nothing was observed";
  EXPECT_FALSE(status->several_controllers);
  EXPECT_FALSE(status->monitor_waits_for_rollout);
}

TEST_F(Plan, whyKnowsTheClusterAndItsNodesOnly) {
  (void)site_.store();
  EXPECT_TRUE(explainSubjects(site_.options(), {.nodes = "gpu001"}, 1));
  EXPECT_TRUE(explainSubjects(site_.options(), {.nodes = "@cluster"}, 1));
  const auto refused = explainSubjects(site_.options(), {.nodes = "gpu003"}, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
}

TEST_F(Plan, findingsAreClearedForNamedNodesAlone) {
  const auto store = site_.store();
  for (const auto* node : {"gpu001", "gpu002"})
    ASSERT_TRUE(store->addFinding({{lifecycle::Subject(NodeName(node)), FacetName("image")},
                                   Severity::Error,
                                   "wrong",
                                   "",
                                   "look",
                                   SystemClock().now(),
                                   "test"}));
  EXPECT_EQ(openFindings(site_.options(), "")->size(), 2u);
  EXPECT_EQ(openFindings(site_.options(), "gpu002")->size(), 1u);
  const auto refused = clearFindings(site_.options(), {"", "image", "seen"});
  ASSERT_FALSE(refused) << "of which node?";
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
  EXPECT_EQ(openFindings(site_.options(), "")->size(), 2u);
}

}  // namespace
}  // namespace muster::app
