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
  EXPECT_THAT(form->about, HasSubstr(R"(override="anna node=gpu002")"))
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
