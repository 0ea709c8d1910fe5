// SPDX-License-Identifier: Apache-2.0
// Routing engines are one list, and a list of preferences is met by any of its members.
#include "inventory/model/opensm_routing.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"

#include "tests/inventory/inventory_fixture.h"

namespace muster::inventory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Routing, preferencesKeepTheirOrder) {
  EXPECT_THAT(routingPreferences("ftree"), ElementsAre("ftree"));
  EXPECT_THAT(routingPreferences("updn,ftree,minhop"), ElementsAre("updn", "ftree", "minhop"));
}

TEST(Routing, anyMemberOfTheListMeetsIt) {
  EXPECT_TRUE(namesRouting("updn,ftree", "updn"));
  EXPECT_TRUE(namesRouting("updn,ftree", "ftree"));
  EXPECT_FALSE(namesRouting("updn,ftree", "minhop"));
  EXPECT_FALSE(namesRouting("updn,ftree", ""));
  EXPECT_FALSE(namesRouting("updn,ftree", "updn,ftree"));
}

class RoutingKey : public InventoryTest {};

TEST_F(RoutingKey, takesWhatOpensmCanBeStartedWithAndNothingElse) {
  for (const std::string routing : {"updn,ftree", "ftree", "nue,minhop"}) {
    const auto loaded = loadYaml(with("rails: 2", "routing: \"" + routing + "\""));
    EXPECT_THAT(lines(loaded), IsEmpty());
    ASSERT_TRUE(loaded.cluster) << routing;
    EXPECT_EQ(loaded.cluster->fabrics.at("ib").routing, routing);
    EXPECT_EQ(unknownRouting(routing), "");
  }
  for (const std::string routing : {"updn,", ",updn", "ftree updn", "file"})
    EXPECT_FALSE(loadYaml(with("rails: 2", "routing: \"" + routing + "\"")).cluster) << routing;
}

}  // namespace
}  // namespace muster::inventory
