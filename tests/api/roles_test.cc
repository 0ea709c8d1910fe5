// SPDX-License-Identifier: Apache-2.0
#include "api/roles.h"

#include <gmock/gmock.h>

namespace muster::api {
namespace {

using ::testing::ElementsAre;

TEST(Roles, whoMayWhat) {
  EXPECT_THAT(rolesThatMay(Verb::Look),
              ElementsAre("viewer", "operator", "approver", "robot", "admin"));
  EXPECT_THAT(rolesThatMay(Verb::Run), ElementsAre("operator", "robot", "admin"));
  EXPECT_THAT(rolesThatMay(Verb::Approve), ElementsAre("approver", "admin"));
  EXPECT_THAT(rolesThatMay(Verb::Hold), ElementsAre("operator", "admin"));
  for (const auto verb : {Verb::Wipe, Verb::Erase, Verb::Certify, Verb::Rotate, Verb::Admin})
    EXPECT_THAT(rolesThatMay(verb), ElementsAre("admin"));
  EXPECT_EQ(verbsOf(Role::Viewer).size(), 1u);
  EXPECT_FALSE(parseRole("Admin"));
  EXPECT_EQ(toString(*parseRole("robot")), "robot");
}

}  // namespace
}  // namespace muster::api
