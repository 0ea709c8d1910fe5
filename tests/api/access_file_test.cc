// SPDX-License-Identifier: Apache-2.0
#include "api/access_file.h"

#include "base/io/files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::api {
namespace {

using ::testing::HasSubstr;

Result<AccessTable> parse(std::string_view text) {
  Diagnostics problems;
  return AccessTable::parse(text, "access.conf", problems);
}

io::PeerCredentials peer(uid_t uid, gid_t gid, std::vector<gid_t> groups = {}) {
  return {uid, gid, 1, std::move(groups)};
}

TEST(AccessFile, theFirstRowThatFitsCounts) {
  const auto table = parse(R"(# who may do what
user  60001  operator  pools=batch,debug nodes=gpu[001-004]
group 60100  approver   # the change board
user  60002  admin
group 60200  robot      racks=r1
)");
  ASSERT_TRUE(table) << table.error().str();
  ASSERT_EQ(table->rows().size(), 4u);
  const auto anna = table->identify(peer(60'001, 60'100));
  ASSERT_TRUE(anna);
  EXPECT_EQ(anna->role, Role::Operator);
  EXPECT_EQ(anna->scope, (Scope{{"batch", "debug"}, {}, "gpu[001-004]"}));
  EXPECT_EQ(table->identify(peer(60'002, 7, {60'100}))->role, Role::Approver);
  EXPECT_EQ(table->identify(peer(60'002, 7))->role, Role::Admin);
  EXPECT_EQ(table->identify(peer(60'003, 60'200))->scope.racks.front(), "r1");
  EXPECT_FALSE(table->identify(peer(60'009, 7, {8}))) << "nobody that is named";
}

TEST(AccessFile, rootAndTheServersOwnUserAreAdmins) {
  const auto table = parse("user 0 viewer\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->identify(peer(0, 0))->role, Role::Admin);
  EXPECT_EQ(table->identify(peer(::geteuid(), 7))->role, Role::Admin);
}

TEST(AccessFile, namesTheLineThatIsWrong) {
  const auto expect = [](std::string_view row, const char* text) {
    const auto bad = parse("# first\n" + std::string(row) + "\nuser root admin\n");
    ASSERT_FALSE(bad) << row;
    EXPECT_THAT(bad.error().str(), HasSubstr(text)) << row;
    EXPECT_THAT(bad.error().str(), HasSubstr("access.conf:2:1")) << row;
  };
  expect("user anna", "a row is");
  expect("anna operator viewer", "a row is");
  expect("user anna chief", "viewer, operator, approver, robot, admin");
  expect("user anna admin everything", "pools=A,B");
  expect("user anna admin nodes=gpu[1-", "range");
}

/// Whoever may write it may become an administrator.
TEST(AccessFile, countsOnlyIfNobodyElseCanWriteIt) {
  test::TempFolder folder;
  const auto file = folder / "access.conf";
  EXPECT_TRUE(AccessTable::read(file)->rows().empty()) << "a file that is not there has no rows";
  ASSERT_TRUE(io::writeFileAtomic(file, "user root admin\n", 0644));
  EXPECT_EQ(AccessTable::read(file)->rows().size(), 1u);
  for (const unsigned mode : {0664U, 0646U, 0666U}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    const auto refused = AccessTable::read(file);
    ASSERT_FALSE(refused) << mode;
    EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  }
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives a file away";
  ASSERT_EQ(::chown(file.c_str(), 60'001, 60'001), 0);
  EXPECT_FALSE(AccessTable::read(file));
}

}  // namespace
}  // namespace muster::api
