// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/wipe.h"

#include "tests/app/site_folder.h"

#include <gmock/gmock.h>

namespace muster::app {
namespace {

using ::testing::HasSubstr;

TEST(Wipe, grantsEachNodeOnceAndRecordsWhoAndWhy) {
  SiteFolder site;
  const auto granted = grantWipe(site.options(), {"gpu[001-002]", "returned from repair", false});
  ASSERT_TRUE(granted) << granted.error().str();
  EXPECT_EQ(granted->nodes, (std::vector{NodeName("gpu001"), NodeName("gpu002")}));
  EXPECT_FALSE(granted->has_storage_sets);
  const lifecycle::Subject subject(NodeName("gpu002"));
  const auto events = site.store()->lastEvents(10, &subject);
  ASSERT_TRUE(events);
  ASSERT_FALSE(events->empty());
  EXPECT_THAT(events->back().text, HasSubstr("allows it to be wiped once: returned from repair"));
}

TEST(Wipe, grantsNothingWhenOneNodeIsNotDeclared) {
  SiteFolder site;
  const auto refused = grantWipe(site.options(), {"gpu[001-003]", "mistyped", true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(refused.error().str(), HasSubstr("gpu003 is not in the inventory"));
  EXPECT_FALSE(std::filesystem::exists(site.options().state)) << "no store was made for it";
}

}  // namespace
}  // namespace muster::app
