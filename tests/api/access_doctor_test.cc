// SPDX-License-Identifier: Apache-2.0
// What doctor says of access files, which stand here as administrators write them.
#include "api/access_doctor.h"

#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <filesystem>

namespace muster::api {
namespace {

using app::DoctorVerdict;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class AccessDoctor : public ::testing::Test {
 protected:
  void SetUp() override { cluster_.pools["batch"].name = "batch"; }
  std::vector<app::DoctorLine> examine(std::string_view text, bool has_inventory = true) {
    EXPECT_TRUE(io::writeFileAtomic(file(), text, 0644));
    return examineAccess(file(), folder_ / "ca.crt", has_inventory ? &cluster_ : nullptr);
  }
  std::filesystem::path file() const { return folder_ / "access.conf"; }

  test::TempFolder folder_;
  inventory::Cluster cluster_;
};

TEST_F(AccessDoctor, aFileThatIsMissingOrRightIsFine) {
  const auto none = examineAccess(file(), folder_ / "ca.crt", &cluster_);
  ASSERT_THAT(none, SizeIs(1));
  EXPECT_EQ(none[0].verdict, DoctorVerdict::Ok);
  EXPECT_THAT(none[0].text, HasSubstr("is not there"));
  const auto right = examine("user root operator pools=batch\n");
  ASSERT_THAT(right, SizeIs(1));
  EXPECT_EQ(right[0].verdict, DoctorVerdict::Ok) << right[0].text;
}

TEST_F(AccessDoctor, namesThatNobodyHasAreTold) {
  const std::string rows = "user nobody-of-this-host operator\nuser root viewer pools=batsh\n";
  auto lines = examine(rows);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].what, "access");
  EXPECT_EQ(lines[0].verdict, DoctorVerdict::Warning);
  EXPECT_THAT(lines[0].text, AllOf(HasSubstr("access.conf:1:1: this host knows no user nobody-of"),
                                   HasSubstr("access.conf:2:1"), HasSubstr("did you mean batch?")));
  lines = examine(rows, false);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0].text, AllOf(HasSubstr("nobody-of-this-host"), Not(HasSubstr("batsh"))))
      << "without an inventory nobody knows its pools";
}

TEST_F(AccessDoctor, aSecretOrAnAuthorityThatCannotBeReadIsBad) {
  const auto secret = (folder_ / "oidc-secret").string();
  const auto rows =
      "oidc issuer=https://sso.example.org client-id=muster name=email secret-file=" + secret +
      "\n";
  auto lines = examine(rows);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].verdict, DoctorVerdict::Bad);
  EXPECT_THAT(lines[0].text, HasSubstr(secret + " cannot be read"));
  ASSERT_TRUE(io::writeFileAtomic(secret, "s3cret\n", 0644));
  lines = examine(rows);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0].text, HasSubstr("chmod 640 " + secret)) << "others may read it";
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  lines = examine(rows);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].verdict, DoctorVerdict::Ok) << lines[0].text;
  lines = examine("client-ca " + (folder_ / "clients.pem").string() + "\n");
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0].text, HasSubstr("clients.pem cannot be read"));
}

TEST_F(AccessDoctor, rowsThatAreWrongAndAFileOfOthersAreBad) {
  auto lines = examine("usr anna operator\nuser nobody-of-this-host viewer\n");
  ASSERT_THAT(lines, SizeIs(2)) << "both what is wrong and what is unknown";
  EXPECT_EQ(lines[0].verdict, DoctorVerdict::Bad);
  EXPECT_THAT(lines[0].text, HasSubstr("access.conf:1:1"));
  EXPECT_EQ(lines[1].verdict, DoctorVerdict::Warning);
  std::filesystem::permissions(file(), std::filesystem::perms::all);
  lines = examineAccess(file(), folder_ / "ca.crt", &cluster_);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0].text, HasSubstr("others than root may change it"));
}

}  // namespace
}  // namespace muster::api
