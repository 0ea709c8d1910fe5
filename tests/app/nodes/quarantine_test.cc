// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/quarantine.h"

#include "tests/app/site_folder.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace muster::app {
namespace {

TEST(Quarantine, addsListsAndReleasesForAReason) {
  SiteFolder site;
  const NodeName node("gpu001");
  const auto added = addToQuarantine(site.options(), "gpu001", "smells burnt");
  ASSERT_TRUE(added) << added.error().str();
  ASSERT_EQ(added->size(), 1u);
  EXPECT_TRUE(added->front().is_new);
  const auto again = addToQuarantine(site.options(), "gpu001", "fan is stuck");
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_FALSE(again->front().is_new);
  EXPECT_EQ(again->front().reason, "smells burnt") << "the earlier one stays";
  const auto events = site.store()->lastEvents(16, nullptr);
  ASSERT_TRUE(events);
  EXPECT_TRUE(std::ranges::any_of(*events, [](const auto& event) {
    return event.text.starts_with("quarantine: again: fan is stuck");
  })) << "the second is not lost";

  const auto listed = quarantinedNodes(site.options());
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->at(node).reason, "smells burnt");

  EXPECT_FALSE(removeFromQuarantine(site.options(), node, "")) << "a reason is required";
  const auto removed = removeFromQuarantine(site.options(), node, "board replaced");
  ASSERT_TRUE(removed) << removed.error().str();
  EXPECT_TRUE(quarantinedNodes(site.options())->empty());
}

TEST(Quarantine, addsNoneWhenOneNodeIsNotDeclared) {
  SiteFolder site;
  const auto refused = addToQuarantine(site.options(), "gpu[001-003]", "mistyped");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::app
