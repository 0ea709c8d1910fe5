// SPDX-License-Identifier: Apache-2.0
// Certificates: what makes one void, each way with its own words.
#include "inventory/model/certificates.h"
#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/certificate_keys.h"
#include "lifecycle/store/store.h"
#include "validate/validate.h"
#include "validate/validation_scope.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace muster::validate {
namespace {

using lifecycle::Fact;
using lifecycle::Subject;

class Certificates : public testing::Test {
 protected:
  Certificates() {
    folder_ = std::filesystem::temp_directory_path() / ("muster-cert-" + io::randomToken(6));
    std::filesystem::create_directories(folder_);
    store_ = lifecycle::openSqliteStore(folder_ / "muster.db").value();
    cluster_.profiles["p"].name = "p";
    inventory::Node node;
    node.name = kNode;
    node.profile = "p";
    cluster_.nodes.push_back(node);
    see("hw.serial", "S-1");
    see("image", "os@aaaa");
    see("driver.nvidia", "nvml.driver=570.124.06");
    certificates_ = makeCertificateStore(cluster_, *store_, clock_, key_, folder_);
  }
  ~Certificates() override { std::filesystem::remove_all(folder_); }

  void see(const std::string& facet, const std::string& value) {
    ASSERT_TRUE(store_->putFacts(
        {Fact{Subject(kNode), FacetName(facet), value, clock_.now(), "test", ""}}));
  }
  Certificate issue() {
    const auto facts = *store_->facts();
    Certificate c;
    c.node = kNode;
    c.scope_hash = validationScopeHash(cluster_, cluster_.nodes[0], facts);
    c.bound = boundFacts(*cluster_.certificates, kNode, facts);
    c.inventory_digest = declarationDigest(cluster_, cluster_.nodes[0]);
    c.proven_at = proven_at_;
    return *certificates_->issue(c);
  }
  std::string voidBecause() {
    const auto valid = certificates_->requireValid(kNode);
    return valid ? "" : valid.error().text();
  }

  const NodeName kNode{"gpu001"};
  io::SigningKey key_ = *io::SigningKey::generate();
  WallTime proven_at_ = FakeClock().now();
  std::filesystem::path folder_;
  FakeClock clock_;
  std::unique_ptr<lifecycle::Store> store_;
  inventory::Cluster cluster_;
  std::unique_ptr<CertificateStore> certificates_;
};

TEST_F(Certificates, aFreshOneIsValidAndSurvivesItsFile) {
  const auto issued = issue();
  EXPECT_EQ(voidBecause(), "");
  const auto again = Certificate::fromJson(issued.toJson());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->toJson(), issued.toJson());
}

TEST_F(Certificates, noneIsNotValid) {
  EXPECT_NE(voidBecause().find("has no certificate"), std::string::npos);
}

TEST_F(Certificates, aChangedDriverVoidsIt) {
  issue();
  see("driver.nvidia", "nvml.driver=575.57.08");
  EXPECT_NE(voidBecause().find("driver.nvidia was nvml.driver=570.124.06"), std::string::npos)
      << voidBecause();
}

TEST_F(Certificates, aNewGpuVoidsIt) {
  issue();
  see("hw.gpu.0", "serial-9");
  EXPECT_NE(voidBecause().find("was not there"), std::string::npos);
}

TEST_F(Certificates, aForgottenFactVoidsIt) {
  issue();
  ASSERT_TRUE(store_->forgetFacts(Subject(kNode), {FacetName("image")}));
  EXPECT_NE(voidBecause().find("is unknown now"), std::string::npos);
}

TEST_F(Certificates, changedPartsVoidItByNameAndThePolicyDecidesWhich) {
  see("hw.part.dimm", "A1=S1, A2=S2");
  see("hw.part.nvme", "N1, N2");
  cluster_.certificates->parts.nvme = inventory::PartChange::Nothing;
  const auto issued = issue();
  EXPECT_TRUE(issued.bound.contains("hw.part.dimm"));
  EXPECT_FALSE(issued.bound.contains("hw.part.nvme"));
  see("hw.part.nvme", "N1, N9");
  EXPECT_EQ(voidBecause(), "");
  see("hw.part.dimm", "A1=S1, A2=S9");
  EXPECT_EQ(voidBecause(), "parts (dimm) were changed since it was signed: A2=S2 gone; A2=S9 new");
  see("hw.part.dimm", "A1=S1");
  EXPECT_EQ(voidBecause(), "parts (dimm) were changed since it was signed: A2=S2 gone");
  cluster_.certificates->parts.dimm = inventory::PartChange::Nothing;
  EXPECT_EQ(voidBecause(), "") << "the site no longer binds them";
}

TEST_F(Certificates, anAgentThatSeesMoreVoidsNothing) {
  issue();
  see("hw.part.hca", "MT2242X00001");
  EXPECT_EQ(voidBecause(), "") << "signed before anybody knew of adapters";
}

TEST_F(Certificates, aListOfPartsThatWasForgottenVoidsItAsAnyFactDoes) {
  see("hw.part.hca", "MT2242X00001");
  issue();
  ASSERT_TRUE(store_->forgetFacts(Subject(kNode), {FacetName("hw.part.hca")}));
  EXPECT_NE(voidBecause().find("is unknown now"), std::string::npos);
}

TEST_F(Certificates, itExpires) {
  issue();
  clock_.advance(cluster_.certificates->lifetime);
  EXPECT_NE(voidBecause().find("expired"), std::string::npos);
  auto old = *certificates_->find(kNode);
  const auto again = certificates_->issue(*old);
  ASSERT_FALSE(again) << "a new signature under old proof";
  EXPECT_NE(again.error().text().find("older than the lifetime of a certificate"),
            std::string::npos);
  EXPECT_NE(voidBecause().find("expired"), std::string::npos);
  proven_at_ = clock_.now();
  issue();
  EXPECT_EQ(voidBecause(), "");
}

TEST_F(Certificates, aChangedDeclarationVoidsIt) {
  issue();
  cluster_.profiles["p"].expect.gpus = 8;
  EXPECT_NE(voidBecause().find("declaration has changed"), std::string::npos);
}

TEST_F(Certificates, aChangedByteVoidsIt) {
  auto forged = issue();
  forged.expires_at += std::chrono::hours(24 * 365);
  EXPECT_NE(certificates_->verify(forged).error().text().find("signature is invalid"),
            std::string::npos);
}

TEST_F(Certificates, anotherKeysSignatureIsVoid) {
  const auto issued = issue();
  const auto other =
      makeCertificateStore(cluster_, *store_, clock_, *io::SigningKey::generate(), folder_);
  EXPECT_NE(other->verify(issued).error().text().find("signed by key"), std::string::npos);
}

TEST_F(Certificates, canBeVerifiedFarAwayWithThePublicKeyAlone) {
  const auto issued = *Certificate::fromJson(issue().toJson());
  const auto now = clock_.now();
  EXPECT_TRUE(verifyOffline(issued, key_.public_pem, now, {}));
  EXPECT_FALSE(verifyOffline(issued, io::SigningKey::generate()->public_pem, now, {}));
  EXPECT_FALSE(verifyOffline(issued, "no key", now, {}));
  EXPECT_FALSE(verifyOffline(issued, key_.public_pem, issued.expires_at, {}));
  EXPECT_FALSE(
      verifyOffline(issued, key_.public_pem, issued.issued_at - std::chrono::hours(1), {}));
  auto moved = issued;
  moved.node = NodeName("gpu002");
  EXPECT_FALSE(verifyOffline(moved, key_.public_pem, now, {}));
  moved = issued;
  moved.bound["hw.serial"] = "S-2";
  EXPECT_FALSE(verifyOffline(moved, key_.public_pem, now, {}));
}

TEST_F(Certificates, aRevokedOneIsVoidHereAndFarAway) {
  const auto issued = issue();
  EXPECT_FALSE(certificates_->revoke(kNode, "ann@host", ""));
  ASSERT_TRUE(certificates_->revoke(kNode, "ann@host", "GPU 3 was replaced"));
  EXPECT_NE(voidBecause().find("revoked at"), std::string::npos);
  EXPECT_NE(voidBecause().find("GPU 3 was replaced"), std::string::npos);
  EXPECT_EQ(*certificates_->revokedAt(kNode), clock_.now());
  const auto carried =
      RevocationList::fromJson(*io::readFile(folder_ / Revocations::kFile), key_.public_pem);
  ASSERT_TRUE(carried);
  EXPECT_FALSE(verifyOffline(issued, key_.public_pem, clock_.now(), *carried));
  // What is proven anew counts anew.
  clock_.advance(std::chrono::hours(1));
  proven_at_ = clock_.now();
  issue();
  EXPECT_EQ(voidBecause(), "");
}

TEST_F(Certificates, aRevocationReachesEveryCopyFromBeforeIt) {
  const auto first = issue();
  clock_.advance(std::chrono::minutes(5));
  proven_at_ = clock_.now();
  const auto second = issue();
  clock_.advance(std::chrono::minutes(5));
  ASSERT_TRUE(certificates_->revoke(kNode, "ann@host", "GPU 3 was replaced"));
  const auto list =
      RevocationList::fromJson(*io::readFile(folder_ / Revocations::kFile), key_.public_pem);
  ASSERT_TRUE(list);
  for (const auto* carried : {&first, &second})
    EXPECT_FALSE(verifyOffline(*carried, key_.public_pem, clock_.now(), *list))
        << "a copy from a backup";
  ASSERT_TRUE(store_->putValue(lifecycle::certificateKey(kNode), first.toJson()));
  EXPECT_NE(voidBecause().find("proven from before"), std::string::npos) << voidBecause();
}

/// Two certificates, and a revocation by a clock that is three hours behind: the older copy is
/// void, too.
TEST_F(Certificates, aClockThatIsBehindSavesNoCopyFromARevocation) {
  const auto first = issue();
  clock_.advance(std::chrono::minutes(5));
  proven_at_ = clock_.now();
  issue();
  clock_.advance(-std::chrono::hours(3));
  ASSERT_TRUE(certificates_->revoke(kNode, "ann@host", "bad"));
  clock_.advance(std::chrono::hours(3));
  const auto list =
      RevocationList::fromJson(*io::readFile(folder_ / Revocations::kFile), key_.public_pem);
  ASSERT_TRUE(list);
  EXPECT_FALSE(verifyOffline(first, key_.public_pem, clock_.now(), *list));
}

/// Signed three hours ahead, replaced by the right clock, then revoked: its copy comes to life
/// three hours later, and is void.
TEST_F(Certificates, oneThatAClockAheadHasSignedIsVoidOnceItIsReplaced) {
  clock_.advance(std::chrono::hours(3));
  proven_at_ = clock_.now();
  const auto ahead = issue();
  clock_.advance(-std::chrono::hours(3));
  proven_at_ = clock_.now();
  issue();
  EXPECT_EQ(voidBecause(), "") << "its successor is good";
  ASSERT_TRUE(certificates_->revoke(kNode, "ann@host", "bad"));
  clock_.advance(std::chrono::hours(4));
  const auto list =
      RevocationList::fromJson(*io::readFile(folder_ / Revocations::kFile), key_.public_pem);
  ASSERT_TRUE(list);
  EXPECT_FALSE(verifyOffline(ahead, key_.public_pem, clock_.now(), *list));
}

TEST_F(Certificates, aRevocationWithoutTheCertificateAtHandCountsForItsCopies) {
  const auto carried = issue();
  clock_.advance(std::chrono::minutes(5));
  store_ = lifecycle::openSqliteStore(folder_ / "new.db").value();
  certificates_ = makeCertificateStore(cluster_, *store_, clock_, key_, folder_ / "new");
  ASSERT_TRUE(certificates_->revoke(kNode, "ann@host", "the disk was lost"));
  const auto list = RevocationList::fromJson(*io::readFile(folder_ / "new" / Revocations::kFile),
                                             key_.public_pem);
  ASSERT_TRUE(list);
  EXPECT_FALSE(verifyOffline(carried, key_.public_pem, clock_.now(), *list));
}

TEST_F(Certificates, aListThatIsCarriedAndWasChangedIsRefused) {
  ASSERT_TRUE(certificates_->revoke(NodeName("gpu009"), "ann", "test"));
  auto text = *io::readFile(folder_ / Revocations::kFile);
  text.replace(text.find("gpu009"), 6, "gpu008");
  EXPECT_EQ(RevocationList::fromJson(text, key_.public_pem).error().code(), ErrorCode::Corrupt);
}

TEST_F(Certificates, anOverrideSaysWhoAndWhyAndDoesNotLiveLong) {
  const auto facts = *store_->facts();
  Certificate word;
  word.node = kNode;
  word.bound = boundFacts(*cluster_.certificates, kNode, facts);
  word.inventory_digest = declarationDigest(cluster_, cluster_.nodes[0]);
  word.proven_at = clock_.now();
  word.override_by = "ann@host", word.override_reason = "spare until Friday";
  const auto issued = certificates_->issue(word);
  ASSERT_TRUE(issued);
  EXPECT_EQ(issued->expires_at, clock_.now() + kMaxOverride);
  const auto again = Certificate::fromJson(issued->toJson());
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->isOverride());
  EXPECT_EQ(again->override_reason, "spare until Friday");
  EXPECT_EQ(voidBecause(), "");
  auto forged = *again;
  forged.override_by.clear();  // as if gates had passed
  EXPECT_FALSE(certificates_->verify(forged));
  see("driver.nvidia", "another");
  EXPECT_NE(voidBecause().find("driver.nvidia"), std::string::npos);  // it is bound like any other
}

TEST_F(Certificates, garbageIsCorrupt) {
  EXPECT_EQ(Certificate::fromJson("{}").error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(Certificate::fromJson(R"({"format":"muster-certificate/1"})").error().code(),
            ErrorCode::Corrupt);
  EXPECT_EQ(Certificate::fromJson("\xff\x00").error().code(), ErrorCode::Corrupt);
}

}  // namespace
}  // namespace muster::validate
