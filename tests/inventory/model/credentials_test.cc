// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/credentials.h"
#include "tests/inventory/inventory_fixture.h"

namespace muster::inventory {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SecretTest : public InventoryTest {};

TEST_F(SecretTest, aFileLosesItsLastLineEndOnly) {
  EXPECT_EQ(SecretRef{.source = write("a", "pass word \n")}.read()->reveal(), "pass word ");
  EXPECT_EQ(SecretRef{.source = write("b", "x\r\n")}.read()->reveal(), "x");
  EXPECT_EQ(SecretRef{.source = write("c", "x")}.read()->reveal(), "x");
  EXPECT_EQ(SecretRef{.source = write("d", "\n")}.read().error().code(), ErrorCode::NotFound);
  EXPECT_EQ(SecretRef{.source = folder_ / "none"}.read().error().code(), ErrorCode::NotFound);
}

TEST_F(SecretTest, readsTheEnvironment) {
  ::setenv("MUSTER_TEST_SECRET", "calvin", 1);
  EXPECT_EQ(SecretRef{.env = "MUSTER_TEST_SECRET"}.read()->reveal(), "calvin");
  ::setenv("MUSTER_TEST_SECRET", "", 1);
  EXPECT_FALSE(SecretRef{.env = "MUSTER_TEST_SECRET"}.read());
  ::unsetenv("MUSTER_TEST_SECRET");
  auto missing = SecretRef{.env = "MUSTER_TEST_SECRET"}.read();
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text(), HasSubstr("export it"));
}

TEST_F(SecretTest, runsACommandAtTheMomentOfUseOnly) {
  auto file = write("pass", "calvin\nsecond line\n");
  EXPECT_EQ(SecretRef{.source = "cat " + file.string()}.read()->reveal(), "calvin");
  auto loaded = loadYaml(with("file: secrets/bmc", "command: \"touch ran\""));
  EXPECT_TRUE(loaded.cluster) << checkText(loaded);
  EXPECT_FALSE(std::filesystem::exists("ran"));
}

TEST_F(SecretTest, aFailingCommandSaysWhichButNotItsArguments) {
  auto failed = SecretRef{.source = std::string("false hunter2")}.read();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(failed.error().text(), HasSubstr("\"false\""));
  EXPECT_THAT(failed.error().text(), Not(HasSubstr("hunter2")));
}

TEST_F(SecretTest, noSourceIsAnError) { EXPECT_FALSE(SecretRef{}.read()); }

}  // namespace
}  // namespace muster::inventory
