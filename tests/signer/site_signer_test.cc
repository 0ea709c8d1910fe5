// SPDX-License-Identifier: Apache-2.0
// What every signer must do, in this process and in its unit. openssl says what a signature and a
// certificate are worth.
#include "signer/site_signer.h"

#include "base/io/crypto.h"
#include "signer/forms.h"
#include "signer/local_signer.h"
#include "tests/signer/signer_site.h"

namespace muster::signer {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::HasSubstr;
using ::testing::Not;

enum class Where { Here, InUnit };

class SiteSignerContract : public ::testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    if (GetParam() == Where::Here) {
      signer_ = std::make_unique<LocalSigner>(
          LocalKeys{*loadSigningKey(site_.own(), kCertificatesKey), *loadAuthority(site_.own())},
          &site_.clock);
      return;
    }
    listening_ = listenAt(site_.socket());
    running_.emplace(listening_.get(), site_.options());
    signer_ = std::make_unique<SignerClient>(site_.client());
  }
  ErrorCode refused(Statement statement, const std::string& text) {
    const auto done = signer_->sign(statement, text);
    return done ? ErrorCode::Internal : done.error().code();
  }
  CertificateOrder agent(std::string name = "gpu001") {
    return {CertificateKind::Agent, std::move(name), {}, 24h, site_.request()};
  }

  SignerSite site_;
  io::Fd listening_;
  std::optional<RunningSigner> running_;
  std::unique_ptr<SiteSigner> signer_;
};

TEST_P(SiteSignerContract, signsACertificateOfANode) {
  const auto text = site_.certificate();
  const auto signature = signer_->sign(Statement::NodeCertificate, text);
  ASSERT_TRUE(signature) << signature.error().str();
  EXPECT_TRUE(site_.isSigned(text, *signature));
  EXPECT_FALSE(site_.isSigned(replaced(text, "gpu001", "gpu002"), *signature));
  const auto word = replaced(text, R"("proven_at")",
                             R"("override":{"by":"anna","reason":"\u0001 \"x\""},"proven_at")");
  const auto override_signature = signer_->sign(Statement::NodeCertificate, word);
  ASSERT_TRUE(override_signature) << override_signature.error().str();
  EXPECT_TRUE(site_.isSigned(word, *override_signature));
}

TEST_P(SiteSignerContract, signsRevocationsTheirListAndItsAge) {
  const std::string revoked =
      R"({"at":"2026-01-01T00:00:00.000Z","by":"anna","certificate":"","node":"gpu001","reason":"dust"})";
  // The chain of the first: SHA-256 of " 1 " and the record, as sha256sum has it.
  std::ofstream(site_.folder / "first") << " 1 " << revoked;
  const auto chain = shell(site_.folder.path(), "sha256sum first").substr(0, 64);
  const auto first = signer_->sign(Statement::Revocation,
                                   R"({"before":"","number":1,"revocation":)" + revoked + "}");
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_TRUE(site_.isSigned("muster-revocation/1 1 " + chain, *first));
  const auto second =
      signer_->sign(Statement::Revocation,
                    R"({"before":")" + chain + R"(","number":2,"revocation":)" + revoked + "}");
  EXPECT_TRUE(second) << second.error().str();
  EXPECT_EQ(
      refused(Statement::Revocation, R"({"before":"","number":2,"revocation":)" + revoked + "}"),
      ErrorCode::Denied);
  const auto list =
      R"({"format":"muster-revocations/1","issued_at":"2026-01-01T00:00:00.000Z","number":1,"revoked":[)" +
      revoked + "]}";
  const auto signed_list = signer_->sign(Statement::RevocationList, list);
  ASSERT_TRUE(signed_list) << signed_list.error().str();
  EXPECT_TRUE(site_.isSigned(list, *signed_list));
  const auto as_of = R"({"as_of":")" + muster::toString(site_.clock.now()) +
                     R"(","format":"muster-revocations-as-of/1","number":1})";
  const auto signed_age = signer_->sign(Statement::ListAsOf, as_of);
  ASSERT_TRUE(signed_age) << signed_age.error().str();
  EXPECT_TRUE(site_.isSigned(as_of, *signed_age));
}

TEST_P(SiteSignerContract, signsNothingThatIsNotInItsForm) {
  const auto good = site_.certificate();
  const std::string deep(200'000, '[');
  for (const auto& bad : {
           std::string(),
           std::string("x"),
           std::string("null"),
           std::string("[]"),
           deep,
           "{\"a\":" + deep,
           std::string("muster-revocation/1 7 ") + std::string(64, 'a'),
           replaced(good, R"("basis")", R"("admin":true,"basis")"),
           replaced(good, R"("basis":"b0",)", ""),
           replaced(good, ":", ": "),
           good + "\n",
           good + good,
           replaced(good, R"("basis":"b0")", R"("basis":"b0","basis":"b0")"),
           replaced(good, R"("basis":"b0")", R"("basis":"\u0062\u0030")"),
           replaced(good, R"("basis":"b0")", R"("basis":7)"),
           replaced(good, R"({"image":"sha256:1"})", R"({"image":{"deep":"er"}})"),
           replaced(good, R"({"image":"sha256:1"})", R"(["image"])"),
           replaced(good, "muster-certificate/1", "muster-audit-head/1"),
           replaced(good, R"("d0")", "\"\xff\""),
           replaced(good, "gpu001", "../gpu001"),
           replaced(good, "gpu001", ""),
           replaced(good, "gpu001", std::string(65, 'a')),
           replaced(good, "gpu001", "gpu001\\n"),
           replaced(good, "T00:", "T99:"),
           replaced(good, R"("b0")", "\"" + std::string(300 << 10, 'b') + "\""),
           replaced(good, R"("proven_at")", R"("override":{"by":"","reason":"x"},"proven_at")"),
       })
    EXPECT_EQ(refused(Statement::NodeCertificate, bad), ErrorCode::Denied) << bad.substr(0, 300);
  for (const auto statement :
       {Statement::Revocation, Statement::RevocationList, Statement::ListAsOf})
    EXPECT_EQ(refused(statement, good), ErrorCode::Denied) << toString(statement);
  EXPECT_TRUE(signer_->sign(Statement::NodeCertificate, good)) << "and goes on after all that";
}

TEST_P(SiteSignerContract, signsNothingBeyondABound) {
  const auto now = site_.clock.now();
  const auto good = site_.certificate();
  const auto until = muster::toString(now + 24h);
  for (const auto& bad : {
           replaced(good, until, muster::toString(now + 24h * 365 * 100)),
           replaced(good, until, muster::toString(now - 1h)),
           replaced(good, R"("proven_at":")" + muster::toString(now),
                    R"("proven_at":")" + muster::toString(now + 1h)),
           replaced(good, R"("issued_at":")" + muster::toString(now),
                    R"("issued_at":")" + muster::toString(now - 11min)),
           replaced(replaced(good, until, muster::toString(now + 73h)), R"("proven_at")",
                    R"("override":{"by":"anna","reason":"x"},"proven_at")"),
       })
    EXPECT_EQ(refused(Statement::NodeCertificate, bad), ErrorCode::Denied) << bad;
  EXPECT_EQ(refused(Statement::NodeCertificate, replaced(good, site_.key, "0123456789abcdef")),
            ErrorCode::Conflict);
  for (
      const auto& bad :
      {std::string(
           R"({"as_of":"2026-01-31T12:00:00.000Z","format":"muster-revocations-as-of/1","number":1})"),
       R"({"as_of":")" + muster::toString(now) +
           R"(","format":"muster-revocations-as-of/1","number":-1})"})
    EXPECT_EQ(refused(Statement::ListAsOf, bad), ErrorCode::Denied) << bad;
  EXPECT_EQ(
      refused(
          Statement::RevocationList,
          R"({"format":"muster-revocations/1","issued_at":"2026-01-31T12:00:00.000Z","number":3,"revoked":[]})"),
      ErrorCode::Denied)
      << "a list leaves nothing out";
  EXPECT_EQ(
      refused(
          Statement::RevocationList,
          R"({"format":"muster-revocations/1","issued_at":"2026-01-31T12:00:00.000Z","number":0,"revoked":[]})"),
      ErrorCode::Denied)
      << "of a month ahead";
}

TEST_P(SiteSignerContract, anAgentsCertificateIsForThatAlone) {
  auto order = agent();
  order.csr_pem = site_.request("/CN=gpu666/O=root", "-addext subjectAltName=DNS:controller");
  const auto pem = signer_->certify(order);
  ASSERT_TRUE(pem) << pem.error().str();
  std::ofstream(site_.folder / "leaf.crt") << *pem;
  const auto& folder = site_.folder.path();
  EXPECT_THAT(
      shell(folder, "openssl verify -x509_strict -CAfile root.crt -purpose sslclient leaf.crt"),
      HasSubstr("OK"));
  shell(folder, "openssl verify -CAfile root.crt -purpose sslserver leaf.crt", 2);
  const auto text = shell(folder, "openssl x509 -in leaf.crt -noout -text");
  EXPECT_THAT(text, ::testing::ContainsRegex("Subject: CN ?= ?gpu001"));  // by OpenSSL's release
  EXPECT_THAT(text, HasSubstr("CA:FALSE"));
  EXPECT_THAT(text, Not(HasSubstr("Certificate Sign")));
  EXPECT_THAT(text, Not(HasSubstr("controller")));
  EXPECT_THAT(text, Not(HasSubstr("gpu666")));
  EXPECT_THAT(shell(folder,
                    "openssl x509 -in leaf.crt -noout -pubkey | cmp - <(openssl pkey -in "
                    "node.key -pubout) && echo same"),
              HasSubstr("same"));
}

TEST_P(SiteSignerContract, serversGetTheNamesThatWereAskedFor) {
  const auto& folder = site_.folder.path();
  for (const auto& [kind, name] : {std::pair(CertificateKind::Controller, "muster"),
                                   std::pair(CertificateKind::Bmc, "10.0.0.9")}) {
    const auto pem =
        signer_->certify({kind, name, {"10.0.0.1", "ctl.example.org"}, 24h, site_.request()});
    ASSERT_TRUE(pem) << pem.error().str();
    std::ofstream(site_.folder / "server.crt") << *pem;
    EXPECT_THAT(shell(folder,
                      "openssl verify -CAfile root.crt -purpose sslserver -verify_ip "
                      "10.0.0.1 server.crt"),
                HasSubstr("OK"));
    shell(folder,
          "openssl verify -CAfile root.crt -purpose sslserver -verify_ip 10.0.0.2 server.crt", 2);
    shell(folder, "openssl verify -CAfile root.crt -purpose sslclient server.crt", 2);
  }
}

TEST_P(SiteSignerContract, certifiesNothingBeyondABound) {
  const auto request = site_.request();
  const auto is_denied = [this](const CertificateOrder& order) {
    const auto done = signer_->certify(order);
    return !done && done.error().code() == ErrorCode::Denied;
  };
  for (const auto hours : {24h * 365 * 100, 24h * 366 * 2, 0h, -1h, 24h * 365 * 10'000'000})
    EXPECT_TRUE(is_denied({CertificateKind::Agent, "gpu001", {}, hours, request})) << hours.count();
  for (const auto* name : {"", "muster", "../x", "a b", "gpu001\n", "-x", "*", "gpu\xff",
                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
    EXPECT_TRUE(is_denied({CertificateKind::Agent, name, {}, 24h, request}) ||
                std::string(name) == "gpu\xff")
        << name;
  EXPECT_TRUE(is_denied({CertificateKind::Agent, "gpu001", {"10.0.0.1"}, 24h, request}));
  EXPECT_TRUE(is_denied({CertificateKind::Controller, "gpu001", {"10.0.0.1"}, 24h, request}));
  EXPECT_TRUE(is_denied({CertificateKind::Controller, "muster", {}, 24h, request}));
  EXPECT_TRUE(is_denied({CertificateKind::Controller, "muster", {"10.0.0.1"}, 24h * 366, request}));
  for (const auto* name : {"*.example.org", "a,DNS:b", "", "a\nb", "email:x@y"})
    EXPECT_TRUE(is_denied({CertificateKind::Bmc, "10.0.0.9", {name}, 24h, request})) << name;
  EXPECT_TRUE(is_denied(
      {CertificateKind::Bmc, "10.0.0.9", std::vector<std::string>(65, "a"), 24h, request}));
  EXPECT_TRUE(is_denied({CertificateKind::Agent,
                         "gpu001",
                         {},
                         24h,
                         site_.request("/CN=x", "-addext basicConstraints=critical,CA:TRUE")}))
      << "a request to be an authority";
  for (const auto& bad : {std::string(), std::string("x"), std::string(1 << 20, 'A'),
                          request + "and more", request + request}) {
    const auto done = signer_->certify({CertificateKind::Agent, "gpu001", {}, 24h, bad});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), ErrorCode::InvalidInput) << done.error().str();
  }
  auto of_another_ca = agent();
  of_another_ca.ca_fingerprint = std::string(64, '0');
  EXPECT_EQ(signer_->certify(of_another_ca).error().code(), ErrorCode::Conflict);
  EXPECT_TRUE(signer_->certify(agent())) << "and goes on after all that";
}

INSTANTIATE_TEST_SUITE_P(Everywhere, SiteSignerContract,
                         ::testing::Values(Where::Here, Where::InUnit), [](const auto& where) {
                           return where.param == Where::Here ? "inThisProcess" : "inItsUnit";
                         });

}  // namespace
}  // namespace muster::signer
