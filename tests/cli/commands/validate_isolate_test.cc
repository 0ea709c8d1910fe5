// SPDX-License-Identifier: Apache-2.0
// validate isolate by the command alone, as the real program: what the inventory asks of a run
// holds for it, too.
#include "tests/cli/muster_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ValidateIsolate, isRefusedByItselfWhereOthersHaveToAgree) {
  test::MusterFolder folder;
  const std::string rule = "approvals:\n  - {disruption: any, min_nodes: 2, approvals: 1}\n";
  folder.write("cluster.yaml", std::string(test::MusterFolder::kInventory) + rule);
  const std::vector<std::string> words{"validate", "isolate", "--direct", "--nodes",
                                       "gpu[001-002]"};
  const auto refused = folder.muster(words);
  EXPECT_EQ(refused.code, test::kFailed) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("asks for 1 approvals"));
  EXPECT_THAT(refused.err, HasSubstr("without --direct")) << "it says what to do";
  EXPECT_FALSE(std::filesystem::exists(folder / "state/validation")) << "nothing was begun";

  // The rule, and nothing else, was what refused it.
  folder.write("cluster.yaml", test::MusterFolder::kInventory);
  EXPECT_THAT(folder.muster(words).err, Not(HasSubstr("approvals")));
}

}  // namespace
}  // namespace muster::cli
