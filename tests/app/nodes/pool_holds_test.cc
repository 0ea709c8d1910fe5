// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/pool_holds.h"

#include "lifecycle/model/unread.h"
#include "tests/app/site_folder.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace muster::app {
namespace {

using ::testing::HasSubstr;

class PoolHolds : public ::testing::Test {
 protected:
  void see(const char* node, const char* facet, const char* value) {
    ASSERT_TRUE(site_.store()->putFacts({{lifecycle::Subject(NodeName(node)), FacetName(facet),
                                          value, SystemClock().now(), "scontrol show node", ""}}));
  }
  SiteFolder site_;
};

TEST_F(PoolHolds, areListedAndOverriddenForThisDrainOnly) {
  see("gpu001", "pool.hold", "'dimm swap', by anna");
  see("gpu002", "pool.hold", "none");
  auto listed = poolHolds(site_.options());
  ASSERT_TRUE(listed) << listed.error().str();
  ASSERT_EQ(listed->holds.size(), 1u);
  EXPECT_EQ(listed->holds.front().node.str(), "gpu001");
  EXPECT_FALSE(listed->holds.front().overridden);

  ASSERT_TRUE(overridePoolHolds(site_.options(), "gpu001", "the firmware first"));
  listed = poolHolds(site_.options());
  ASSERT_TRUE(listed && listed->holds.size() == 1u);
  EXPECT_TRUE(listed->holds.front().overridden);
  EXPECT_THAT(listed->holds.front().overridden_by, HasSubstr(": the firmware first"));
  const auto events = site_.store()->lastEvents(4, nullptr);
  ASSERT_TRUE(events);
  EXPECT_TRUE(std::ranges::any_of(*events, [](const auto& event) {
    return event.text.find("overrides the drain by a person ('dimm swap', by anna)") !=
           std::string::npos;
  }));

  see("gpu001", "pool.hold", "'psu swap', by anna");
  listed = poolHolds(site_.options());
  ASSERT_TRUE(listed && listed->holds.size() == 1u);
  EXPECT_FALSE(listed->holds.front().overridden) << "another drain";
}

TEST_F(PoolHolds, overridesNoneWhereOneIsNotHeld) {
  see("gpu001", "pool.hold", "'dimm swap', by anna");
  for (const auto* nodes : {"gpu[001-002]", "gpu[001,003]"}) {
    const auto refused = overridePoolHolds(site_.options(), nodes, "x");
    ASSERT_FALSE(refused) << nodes;
    EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
  }
  EXPECT_FALSE(poolHolds(site_.options())->holds.front().overridden);
}

TEST_F(PoolHolds, saysOfWhomTheSchedulerWasNotAsked) {
  std::string inventory(SiteFolder::kInventory);
  const std::string_view kProfile = "image: bookworm}";
  inventory.replace(inventory.find(kProfile), kProfile.size(), "image: bookworm, pool: batch}");
  site_.write("cluster.yaml", inventory + "pools: {batch: {slurm: {partition: gpu}}}\n");
  ASSERT_TRUE(site_.store());
  EXPECT_FALSE(poolHolds(site_.options())->unread.empty()) << "nobody was asked so far";
  const auto members = poolHolds(site_.options())->unread;
  for (const auto& node : members) see(node.str().c_str(), "pool.hold", "none");
  EXPECT_TRUE(poolHolds(site_.options())->unread.empty());
  const lifecycle::Subject first(members.front());
  ASSERT_TRUE(site_.store()->putFacts({lifecycle::unreadFact(
      first, "pool", Error(ErrorCode::Unavailable, "slurmctld does not answer"),
      SystemClock().now() + std::chrono::seconds(1))}));
  const auto unread = poolHolds(site_.options())->unread;
  ASSERT_EQ(unread.size(), 1u);
  EXPECT_EQ(unread.front(), members.front());
}

TEST_F(PoolHolds, nodesThatAreNamedTwiceAreOverriddenOnce) {
  see("gpu001", "pool.hold", "'dimm swap', by anna");
  const auto done = overridePoolHolds(site_.options(), "gpu001,gpu001", "the firmware first");
  ASSERT_TRUE(done);
  EXPECT_EQ(done->size(), 1u);
}

}  // namespace
}  // namespace muster::app
