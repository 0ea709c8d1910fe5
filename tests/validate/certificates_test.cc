// Certificates: what makes one void, each way with its own words.
#include "lifecycle/store.h"
#include "validate/basis.h"
#include "validate/validate.h"

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
    certificates_ = makeCertificateStore(cluster_, *store_, clock_, *io::SigningKey::generate(), folder_);
  }
  ~Certificates() override { std::filesystem::remove_all(folder_); }

  void see(const std::string& facet, const std::string& value) {
    ASSERT_TRUE(store_->putFacts({Fact{Subject(kNode), FacetName(facet), value, clock_.now(), "test", ""}}));
  }
  Certificate issue() {
    const auto facts = *store_->facts();
    Certificate c;
    c.node = kNode;
    c.basis = basisOf(cluster_, cluster_.nodes[0], facts);
    c.bound = boundFacts(kNode, facts);
    c.inventory_digest = declarationDigest(cluster_, cluster_.nodes[0]);
    c.proven_at = proven_at_;
    return *certificates_->issue(c);
  }
  std::string voidBecause() {
    const auto valid = certificates_->requireValid(kNode);
    return valid ? "" : valid.error().text();
  }

  const NodeName kNode{"gpu001"};
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

TEST_F(Certificates, noneIsNotValid) { EXPECT_NE(voidBecause().find("has no certificate"), std::string::npos); }

TEST_F(Certificates, aChangedDriverVoidsIt) {
  issue();
  see("driver.nvidia", "nvml.driver=575.57.08");
  EXPECT_NE(voidBecause().find("driver.nvidia was nvml.driver=570.124.06"), std::string::npos) << voidBecause();
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

TEST_F(Certificates, itExpires) {
  issue();
  clock_.advance(cluster_.certificates.lifetime);
  EXPECT_NE(voidBecause().find("expired"), std::string::npos);
  auto old = *certificates_->find(kNode);
  const auto again = certificates_->issue(*old);
  ASSERT_FALSE(again) << "a new signature under old proof";
  EXPECT_NE(again.error().text().find("longer ago than a certificate lives"), std::string::npos);
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
  EXPECT_NE(certificates_->verify(forged).error().text().find("signature does not fit"), std::string::npos);
}

TEST_F(Certificates, anotherKeysSignatureIsVoid) {
  const auto issued = issue();
  const auto other = makeCertificateStore(cluster_, *store_, clock_, *io::SigningKey::generate(), folder_);
  EXPECT_NE(other->verify(issued).error().text().find("signed by key"), std::string::npos);
}

TEST_F(Certificates, garbageIsCorrupt) {
  EXPECT_EQ(Certificate::fromJson("{}").error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(Certificate::fromJson(R"({"format":"muster-certificate/1"})").error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(Certificate::fromJson("\xff\x00").error().code(), ErrorCode::Corrupt);
}

}  // namespace
}  // namespace muster::validate
