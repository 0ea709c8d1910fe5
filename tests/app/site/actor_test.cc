// SPDX-License-Identifier: Apache-2.0
// Who acts is what the kernel says; the environment only claims.
#include "app/site/actor.h"

#include <gtest/gtest.h>

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace muster::app {
namespace {

constexpr uid_t kReal = 1000;

TEST(Actor, theLoginUidCountsWhereTheKernelHasOne) {
  EXPECT_EQ(app::actorUid("1234", kReal), 1234u);
  EXPECT_EQ(app::actorUid("1234\n", kReal), 1234u);
  EXPECT_EQ(app::actorUid("0", kReal), 0u);
}

TEST(Actor, withoutALoginUidTheRealUidCounts) {
  for (const auto* unset : {"4294967295", "4294967295\n", "", "\n", "-1", "12 34", "root",
                            "18446744073709551616", "4294967296"})
    EXPECT_EQ(app::actorUid(unset, kReal), kReal) << unset;
}

TEST(Actor, aClaimIsANameOrNothing) {
  EXPECT_EQ(app::sudoClaim("anna", "root"), "anna");
  EXPECT_EQ(app::sudoClaim("anna", "anna"), std::nullopt) << "it says nothing new";
  for (const auto* foreign :
       {"", "a b", "anna\n12:00 gpu001 certificate ok", "\x1b[2J", "b\xc3\xb6se"})
    EXPECT_EQ(app::sudoClaim(foreign, "root"), std::nullopt);
  EXPECT_EQ(app::sudoClaim(nullptr, "root"), std::nullopt);
  EXPECT_EQ(app::sudoClaim(std::string(65, 'a').c_str(), "root"), std::nullopt);
}

TEST(Actor, theEnvironmentDoesNotChangeTheUser) {
  const auto before = app::userName();
  for (const auto* name : {"SUDO_USER", "USER", "LOGNAME", "SUDO_UID"}) ::setenv(name, "forged", 1);
  EXPECT_EQ(app::userName(), before);
  EXPECT_EQ(app::actorText(), before + "@" + app::hostName() + " (claims sudo user forged)");
  for (const auto* name : {"SUDO_USER", "USER", "LOGNAME", "SUDO_UID"}) ::unsetenv(name);
  EXPECT_EQ(app::actorText(), before + "@" + app::hostName());
}

}  // namespace
}  // namespace muster::app
