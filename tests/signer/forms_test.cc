// SPDX-License-Identifier: Apache-2.0
// The forms by themselves; what both signers do with them is in site_signer_test.cc.
#include "signer/forms.h"

#include <gmock/gmock.h>

namespace muster::signer {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kKey = "0123456789abcdef";
/// Of a day long ago, with each member that a certificate may have.
constexpr std::string_view kCertificate =
    R"({"basis":"b0","bound":{"a":"1","b":"2"},"expires_at":"2020-01-02T00:00:00.000Z",)"
    R"("format":"muster-certificate/1","inventory_digest":"d0","issued_at":"2020-01-01T00:00:00.000Z",)"
    R"("key_id":"0123456789abcdef","learnt":{"burn-in":"by peers"},"node":"gpu001",)"
    R"("override":{"by":"anna node=gpu002","reason":""},"proven_at":"2020-01-01T00:00:00.000Z"})";

TEST(Forms, whatIsSignedIsWhatWasReadOfTheText) {
  const auto form =
      formOf(Statement::NodeCertificate, kCertificate, std::string(kKey), std::nullopt);
  ASSERT_TRUE(form) << form.error().str();
  EXPECT_EQ(form->bytes, kCertificate);
  EXPECT_THAT(form->about, HasSubstr("node=gpu001 "));
  EXPECT_THAT(form->about, HasSubstr(R"(override="anna node=gpu002" reason="")"))
      << "a name adds no word to the log";
}

TEST(Forms, theClockCountsWhereItIsNotBelieved) {
  const auto issued = *parseWallTime("2020-01-01T00:00:00.000Z");
  for (const auto& [late, fine] :
       {std::pair(std::chrono::minutes(9), true), std::pair(std::chrono::minutes(11), false)})
    for (const auto now : {issued + late, issued - late})
      EXPECT_EQ(
          formOf(Statement::NodeCertificate, kCertificate, std::string(kKey), now).has_value(),
          fine)
          << late.count();
}

TEST(Forms, aReasonIsOneShortWordOfTheLog) {
  std::string text(kCertificate);
  text.replace(text.find(R"("reason":"")"), 11,
               R"("reason":"a \"b\"\n2026 uid=0 )" + std::string(5'000, 'x') + "\"");
  const auto form = formOf(Statement::NodeCertificate, text, std::string(kKey), std::nullopt);
  ASSERT_TRUE(form) << form.error().str();
  EXPECT_THAT(form->about, HasSubstr(R"( reason="a \"b\"\n2026 uid=0 xxx)"));
  EXPECT_EQ(form->about.find('\n'), std::string::npos);
  EXPECT_LT(form->about.size(), 600u);
}

TEST(Forms, nothingIsRevokedAheadOfTime) {
  const auto now = *parseWallTime("2026-01-31T12:00:00.000Z");
  const auto revocation = [](const std::string& at) {
    return R"({"before":"","number":1,"revocation":{"at":")" + at +
           R"(","by":"anna","certificate":"","node":"gpu001","reason":"dust"}})";
  };
  const auto list = [](const std::string& issued) {
    return R"({"format":"muster-revocations/1","issued_at":")" + issued +
           R"(","number":0,"revoked":[]})";
  };
  for (const auto& [time, fine] :
       {std::pair("2026-01-31T12:09:00.000Z", true), std::pair("2026-01-31T12:11:00.000Z", false),
        std::pair("2099-01-01T00:00:00.000Z", false),
        std::pair("2020-01-01T00:00:00.000Z", true)}) {
    EXPECT_EQ(formOf(Statement::Revocation, revocation(time), std::string(kKey), now).has_value(),
              fine)
        << time;
    EXPECT_EQ(formOf(Statement::RevocationList, list(time), std::string(kKey), now).has_value(),
              fine)
        << time;
  }
  const auto about =
      formOf(Statement::Revocation, revocation("2026-01-31T12:00:00.000Z"), std::string(kKey), now);
  ASSERT_TRUE(about);
  EXPECT_EQ(about->about, R"(number=1 node="gpu001" by="anna")");
}

TEST(Forms, wordsNameEachKindAndNothingElse) {
  for (const auto* word : {"node-certificate", "revocation", "revocation-list", "list-as-of"}) {
    ASSERT_TRUE(statementOf(word));
    EXPECT_EQ(toString(*statementOf(word)), word);
  }
  for (const auto* word : {"agent", "controller", "bmc"}) {
    ASSERT_TRUE(certificateKindOf(word));
    EXPECT_EQ(toString(*certificateKindOf(word)), word);
  }
  for (const auto* word : {"", "ca", "Agent", "root"}) {
    EXPECT_FALSE(statementOf(word));
    EXPECT_FALSE(certificateKindOf(word));
  }
}

TEST(Forms, ordersAreCheckedBeforeAnythingElse) {
  using std::chrono::hours;
  EXPECT_TRUE(checkOrder({CertificateKind::Agent, "gpu001", {}, hours(24), {}}));
  EXPECT_TRUE(checkOrder({CertificateKind::Bmc, "fe80::1", {"fe80::1"}, hours(1), {}}));
  EXPECT_TRUE(checkOrder({CertificateKind::Controller, "muster", {"a"}, kMaxControllerLife, {}}));
  EXPECT_FALSE(checkOrder({CertificateKind::Agent, "fe80::1", {}, hours(24), {}}));
  EXPECT_FALSE(checkOrder({CertificateKind::Agent, "gpu001", {}, kMaxAgentLife + hours(1), {}}));
}

}  // namespace
}  // namespace muster::signer
