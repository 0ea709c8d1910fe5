// SPDX-License-Identifier: Apache-2.0
#include "api/access_file.h"

#include "base/io/files.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::api {
namespace {

using ::testing::HasSubstr;

/// All of it must be right.
Result<AccessTable> parse(std::string_view text) {
  auto out = AccessTable::parse(text, "access.conf");
  if (!out.problems().empty()) return fail(ErrorCode::InvalidInput, out.problems().front());
  return out;
}

io::CertificateNames certificate(const std::string& common_name,
                                 std::vector<std::string> organizations = {}) {
  io::CertificateNames out;
  out.common_name = common_name;
  out.organizations = std::move(organizations);
  return out;
}

/// How somebody is answered: the role, "nobody", or where the row is that is wrong.
std::string answered(const Result<Identity>& who) {
  if (who) return std::string(toString(who->role));
  if (who.error().code() == ErrorCode::NotFound) return "nobody";
  const auto text = who.error().str();
  return text.substr(0, text.find(": "));
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
  for (const char* pools : {"pools=,", "pools=,,", "pools=a,,b", "racks=r1,", "racks=\" \""})
    expect(std::string("user anna admin ") + pools, "an empty name");
  expect("user anna admin nodes=gpu001 nodes=gpu[001-014]", "nodes= is there twice");
  expect("user anna admin nodes=gpu[1-", "range");
}

TEST(AccessFile, namesTheLineThatIsWrongOfOtherWays) {
  const auto expect = [](std::string_view rows, const char* text) {
    const auto bad = parse(rows);
    ASSERT_FALSE(bad) << rows;
    EXPECT_THAT(bad.error().str(), HasSubstr(text)) << rows;
    EXPECT_THAT(bad.error().str(), HasSubstr("access.conf:")) << rows;
  };
  const std::string ca = "client-ca /etc/ca\n",
                    sso = "oidc issuer=https://sso client-id=m name=n\n";
  EXPECT_TRUE(parse(ca + "client-crl /l\ncertificate cn=a o=\"B # C\" viewer racks=r1\n" + sso +
                    "oidc-user a admin\nperson a cert:b oidc:c\n"));
  expect("client-ca ca.crt", "from the root on");
  expect(ca + ca, "there is one of them");
  expect("client-ca", "a row is: client-ca FILE");
  expect("client-crl /l", "add a row client-ca");
  expect("certificate cn=anna viewer", "add a row client-ca");
  expect(ca + "certificate viewer", "certificate cn=NAME");
  expect(ca + "certificate cn=anna", "certificate cn=NAME");
  expect(ca + "certificate name=anna viewer", "says nothing about a certificate");
  expect(ca + "certificate cn= viewer", "says nothing about a certificate");
  expect(ca + "certificate cn=anna chief", "is no role");
  expect(ca + "certificate cn=\"anna viewer", "opened and not closed");
  expect("oidc-group hpc viewer", "no provider");
  expect("oidc issuer=https://sso", "name is the claim");
  expect("oidc issuer=http://sso client-id=m name=n", "https://");
  expect("oidc issuer=https://sso?x client-id=m name=n", "https://");
  expect("oidc issuer=https://sso client-id=m name=n name=o", "each key once");
  expect("oidc issuer=https://sso client-id=m name=n secret=x", "nothing that a row oidc knows");
  expect("oidc issuer=https://sso client-id=m name=n page=https://ctl1/x", "without a path");
  expect("oidc issuer=https://sso client-id=m name=n scopes=profile", "openid");
  expect("oidc issuer=https://sso client-id=m name=n ca=ca.crt", "from the root on");
  expect(sso + sso, "there is one row oidc");
  expect("person anna anna2", "cert:COMMON-NAME or oidc:NAME");
  expect("person \"a b\" cert:a", "a row is: person");
  expect("person anna cert:a\nperson ben cert:a", "somebody's already");
}

constexpr std::string_view kGood =
    "client-ca /ca\ncertificate cn=anna viewer\ncertificate o=HPC operator\n"
    "oidc issuer=https://sso client-id=m name=n\noidc-user anna viewer\noidc-group hpc operator\n"
    "user 60001 viewer\ngroup 60100 operator\n";

/// Whom it is about is refused, and is not made what a later row would make of them.
TEST(AccessFile, aRowThatIsWrongClosesWhatItIsAboutAndNothingElse) {
  const auto with = [](std::string_view row) {
    return AccessTable::parse(std::string(row) + "\n" + std::string(kGood), "access.conf");
  };
  const auto user = with("user 60001 veiwer");
  ASSERT_EQ(user.problems().size(), 1u);
  EXPECT_THAT(user.problems().front(), HasSubstr("access.conf:1:1: \"veiwer\" is no role"));
  EXPECT_EQ(answered(user.identify(peer(60'001, 60'100))), "access.conf:1:1");
  EXPECT_EQ(answered(user.identify(peer(60'002, 60'100))), "operator");
  EXPECT_EQ(answered(user.identify(certificate("anna"))), "viewer");
  EXPECT_EQ(answered(user.identify(OidcAccount{"i", "s", "anna", {"hpc"}})), "viewer");
  EXPECT_EQ(answered(user.identify(peer(0, 0))), "admin") << "who corrects it needs no row";

  const auto group = with("group 60100 operator pools=");
  EXPECT_EQ(answered(group.identify(peer(60'001, 60'100))), "access.conf:1:1");
  EXPECT_EQ(answered(group.identify(peer(60'001, 7))), "viewer");

  const auto cert = with("certificate cn=anna o=HPC chief");
  EXPECT_EQ(answered(cert.identify(certificate("anna", {"HPC"}))), "access.conf:1:1");
  EXPECT_EQ(answered(cert.identify(certificate("anna"))), "viewer");
  EXPECT_EQ(answered(cert.identify(certificate("ben", {"HPC"}))), "operator");
  const auto wider = with("certificate o=HPC name=anna viewer");
  EXPECT_EQ(answered(wider.identify(certificate("ben", {"HPC"}))), "access.conf:1:1")
      << "a condition that cannot be read holds for everybody";
  EXPECT_EQ(answered(wider.identify(certificate("anna"))), "viewer");

  const auto login = with("oidc-group hpc chief");
  EXPECT_EQ(answered(login.identify(OidcAccount{"i", "s", "ben", {"hpc"}})), "access.conf:1:1");
  EXPECT_EQ(answered(login.identify(OidcAccount{"i", "s", "anna", {}})), "viewer");
  EXPECT_EQ(answered(login.identify(certificate("anna"))), "viewer");
}

/// Of a row of which nobody knows whom it is about: it may be anybody whom no row above has named.
TEST(AccessFile, aRowThatMayBeAboutAnybodyClosesWhatStandsBelowIt) {
  for (const auto* row : {"usr 60001 viewer", "user \"anna viewer", "60001 operator"}) {
    const auto table = AccessTable::parse(
        "user 60009 approver\n" + std::string(row) + "\n" + std::string(kGood), "access.conf");
    EXPECT_EQ(answered(table.identify(peer(60'009, 7))), "approver") << row;
    EXPECT_EQ(answered(table.identify(peer(60'001, 7))), "access.conf:2:1") << row;
    EXPECT_EQ(answered(table.identify(certificate("anna"))), "access.conf:2:1") << row;
    EXPECT_EQ(answered(table.identify(OidcAccount{"i", "s", "anna", {}})), "access.conf:2:1");
  }
  // "user operator anna": the name is where the role should be.
  const auto swapped =
      AccessTable::parse("user operator 60001\n" + std::string(kGood), "access.conf");
  EXPECT_EQ(answered(swapped.identify(peer(60'001, 60'100))), "access.conf:1:1");
  EXPECT_EQ(answered(swapped.identify(certificate("anna"))), "viewer");
  const auto no_one =
      AccessTable::parse("certificate viewer\n" + std::string(kGood), "access.conf");
  EXPECT_EQ(answered(no_one.identify(certificate("anna"))), "access.conf:1:1");
  EXPECT_EQ(answered(no_one.identify(peer(60'001, 7))), "viewer");
}

TEST(AccessFile, aWrongRowOfAWayClosesThatWay) {
  const auto with = [](std::string_view rows) {
    return AccessTable::parse(std::string(kGood) + std::string(rows), "access.conf");
  };
  for (const auto* row : {"client-ca /b\n", "client-crl l\n", "client-crl\n"}) {
    const auto table = with(row);
    EXPECT_THAT(table.certificatesClosed(), HasSubstr("access.conf:9:1")) << row;
    EXPECT_EQ(table.oidcClosed(), "") << row;
  }
  for (const auto* row : {"oidc issuer=https://b\n", "oidc\n"}) {
    const auto table = with(row);
    EXPECT_THAT(table.oidcClosed(), HasSubstr("access.conf:9:1")) << row;
    EXPECT_EQ(table.certificatesClosed(), "") << row;
  }
  EXPECT_THAT(AccessTable::parse("certificate cn=a viewer\n", "f").certificatesClosed(),
              HasSubstr("add a row client-ca"));
  EXPECT_THAT(AccessTable::parse("oidc-user a viewer\n", "f").oidcClosed(),
              HasSubstr("no provider"));
  EXPECT_EQ(AccessTable::parse("usr a viewer\n", "f").problems().size(), 1u)
      << "a row of no kind asks for no authority";
}

/// Approvals count persons: of whom nobody knows who it is, nobody is let in.
TEST(AccessFile, aWrongRowOfAPersonClosesThatPersonsWays) {
  const auto table = AccessTable::parse(
      std::string(kGood) + "person \"a b\" cert:anna oidc:zoe\nperson ben cert:carl cert:anna\n",
      "access.conf");
  EXPECT_EQ(answered(table.identify(certificate("anna"))), "access.conf:9:1");
  EXPECT_EQ(answered(table.identify(OidcAccount{"i", "s", "anna", {}})), "viewer");
  EXPECT_EQ(answered(table.identify(OidcAccount{"i", "s", "zoe", {"hpc"}})), "access.conf:9:1");
  EXPECT_EQ(answered(table.identify(certificate("carl", {"HPC"}))), "operator");
  const auto unknown =
      AccessTable::parse(std::string(kGood) + "person anna crt:anna\n", "access.conf");
  EXPECT_NE(unknown.certificatesClosed(), "");
  EXPECT_NE(unknown.oidcClosed(), "");
  EXPECT_EQ(answered(unknown.identify(peer(60'001, 7))), "viewer");
}

/// What the pages show is what the file may hold.
TEST(AccessFile, thePagesShowOneThatIsRight) {
  const auto page = io::readFile(test::sourceFolder() / "docs/identity.md");
  ASSERT_TRUE(page);
  const auto begin = page->find("```conf\n");
  ASSERT_NE(begin, std::string::npos);
  const auto text = page->substr(begin + 8, page->find("```", begin + 8) - begin - 8);
  const auto table = parse(text);
  ASSERT_TRUE(table) << table.error().str();
  EXPECT_EQ(table->rows().size(), 2u);
  ASSERT_TRUE(table->oidc());
  EXPECT_EQ(table->identify(OidcAccount{"i", "s", "ben", {}})->role, Role::Approver);
  EXPECT_EQ(table->identify(OidcAccount{"i", "s", "zoe", {"hpc-admins", "hpc"}})->role,
            Role::Admin);
  EXPECT_FALSE(table->identify(OidcAccount{"i", "s", "zoe", {"HPC"}}));
  EXPECT_EQ(table->identify(OidcAccount{"i", "s", "anna@example.org", {"hpc"}})->person, "anna");
  io::CertificateNames ci;
  ci.common_name = "ci";
  EXPECT_FALSE(table->identify(ci)) << "not of the HPC Team";
  ci.organizations = {"HPC Team"};
  EXPECT_EQ(table->identify(ci)->role, Role::Robot);
  EXPECT_EQ(table->identify(ci)->scope.pools, std::vector<std::string>{"batch"});
}

/// While it is written in place, or when the disk is full, its last row may say more than it will.
TEST(AccessFile, ofARowThatIsCutOffNothingCounts) {
  test::TempFolder folder;
  const auto file = folder / "access.conf";
  ASSERT_TRUE(io::writeFileAtomic(file, "user 60002 admin\ngroup 60100 operator", 0644));
  const auto cut = AccessTable::read(file);
  ASSERT_TRUE(cut) << cut.error().str();
  EXPECT_EQ(cut->identify(peer(60'002, 7))->role, Role::Admin) << "a row above it";
  const auto refused = cut->identify(peer(60'003, 60'100));
  ASSERT_FALSE(refused);
  EXPECT_THAT(cut->problems().front(), HasSubstr("access.conf:2:1: the file ends within this row"));
  ASSERT_TRUE(io::writeFileAtomic(file, "user 60002 admin\ngroup 60100 operator\n# the end", 0644));
  EXPECT_EQ(AccessTable::read(file)->identify(peer(60'003, 60'100))->role, Role::Operator);
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
