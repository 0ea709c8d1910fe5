// SPDX-License-Identifier: Apache-2.0
#include "api/problem.h"

#include <gtest/gtest.h>

namespace muster::api {
namespace {

TEST(Problems, nameTheMembersOfTheOrderAndLeaveCommandsAsTheyAre) {
  const std::vector<std::string_view> members{"force", "reason", "on_failure"};
  const auto said = [&](std::string_view text) { return inMembers(text, members); };
  EXPECT_EQ(said("--reason is missing"), "\"reason\" is missing");
  EXPECT_EQ(said("or add --force, or --on-failure"), "or add \"force\", or \"on_failure\"");
  EXPECT_EQ(said("drain it: muster quarantine add gpu[001,003] --reason …, or add --force"),
            "drain it: muster quarantine add gpu[001,003] --reason …, or add \"force\"");
  EXPECT_EQ(said("by a run (muster erase a --reason x), or --force"),
            "by a run (muster erase a --reason x), or \"force\"");
  EXPECT_EQ(said("`muster x --force` does. --force too"), "`muster x --force` does. \"force\" too");
  EXPECT_EQ(said("--forced --nodes -- --"), "--forced --nodes -- --") << "no members of it";
  EXPECT_EQ(said(""), "");
  EXPECT_EQ(inMembers("--force", {}), "--force");
}

}  // namespace
}  // namespace muster::api
