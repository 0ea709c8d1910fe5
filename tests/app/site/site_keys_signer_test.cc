// SPDX-License-Identifier: Apache-2.0
// A state folder whose keys the signer holds, with a signer on a real socket, and with none.
#include "app/backup/backup.h"
#include "app/doctor/checks.h"
#include "app/site/key_rotation.h"
#include "app/site/site_keys.h"
#include "signer/adoption.h"
#include "tests/app/backup/backup_site.h"
#include "tests/signer/signer_site.h"
#include "validate/revocations.h"

#include <gmock/gmock.h>

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HeldKeys : public BackupSite {
 protected:
  void SetUp() override {
    BackupSite::SetUp();
    id_ = loadKey(state(), KeyPurpose::Certificates)->id();
    fingerprint_ = Keys::loadOrCreate(state())->ca.fingerprint();
    const auto adopted = signer::adoptKeys({state(), own(), site_ / "socket", {}, {}, false});
    ASSERT_TRUE(adopted) << adopted.error().str();
    start();
  }
  fs::path state() const { return site_ / "state"; }
  fs::path own() const { return site_ / "signer"; }
  void start() {
    listening_ = signer::testing::listenAt(site_ / "socket");
    signer::SignerServerOptions options;
    options.folder = own();
    running_.emplace(listening_.get(), options);
  }
  void stop() {
    running_.reset();
    listening_ = io::Fd();
  }
  Result<void> revoke(const char* reason) {
    TRY(keys, Keys::loadOrCreate(state()));
    const auto store = site_.store();
    return validate::Revocations(*store, state() / "certificates", keys.certificates)
        .add({"", NodeName("gpu001"), SystemClock().now(), "anna", reason});
  }
  std::size_t revoked() {
    const auto keys = Keys::loadOrCreate(state());
    const auto store = site_.store();
    const validate::Revocations all(*store, state() / "certificates", keys->certificates);
    const auto list = all.list();
    EXPECT_TRUE(list) << list.error().str();
    return list ? (*list)->revoked.size() : 0;
  }
  doctor::Lines examined() {
    doctor::Lines out;
    doctor::lookAtSigner(site_.options(), out);
    return out;
  }

  std::string id_, fingerprint_;
  io::Fd listening_;
  std::optional<signer::testing::RunningSigner> running_;
};

TEST_F(HeldKeys, areTheSameKeysAndSignThroughTheSigner) {
  const auto keys = Keys::loadOrCreate(state());
  ASSERT_TRUE(keys) << keys.error().str();
  EXPECT_EQ(keys->certificates.id(), id_);
  EXPECT_EQ(keys->ca.fingerprint(), fingerprint_);
  EXPECT_EQ(*publicKeyOf(state(), KeyPurpose::Certificates), keys->certificates.public_pem);
  EXPECT_FALSE(fs::exists(state() / "keys/signing.pem"));
  ASSERT_TRUE(revoke("dust"));
  ASSERT_TRUE(revoke("more dust"));
  EXPECT_EQ(revoked(), 2u);
  const auto made = io::makeKeyAndRequest("x");
  const auto pem = keys->ca.signAgent(made->csr_pem, "gpu001", 24h);
  ASSERT_TRUE(pem) << pem.error().str();
  EXPECT_EQ(io::describeCertificate(*pem)->common_name, "gpu001");
  EXPECT_EQ(examined().back().verdict, DoctorVerdict::Ok) << examined().back().text;
}

TEST_F(HeldKeys, whileTheSignerIsAwayNothingIsLostAndWhatWasSignedHolds) {
  ASSERT_TRUE(revoke("dust"));
  const auto before = Keys::loadOrCreate(state())->ca.issueServer({"127.0.0.1"}, 24h * 30);
  ASSERT_TRUE(before) << before.error().str();
  stop();
  const auto keys = Keys::loadOrCreate(state());
  ASSERT_TRUE(keys) << keys.error().str();
  EXPECT_EQ(revoked(), 1u) << "it is read with the public half";
  const auto refused = revoke("more dust");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().has(signer::SignerProblem::Away)) << refused.error().str();
  const auto again = keys->ca.issueServer({"127.0.0.1"}, 24h * 30);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(again->certificate_pem, before->certificate_pem) << "a server starts as it did before";
  EXPECT_FALSE(keys->ca.issueServer({"127.0.0.2"}, 24h * 30)) << "and only as that one";
  EXPECT_EQ(examined().back().verdict, DoctorVerdict::Bad);
  EXPECT_THAT(examined().back().mend, HasSubstr("systemctl enable --now muster-signer.socket"));
  start();
  ASSERT_TRUE(revoke("more dust"));
  EXPECT_EQ(revoked(), 2u);
}

TEST_F(HeldKeys, ofANewSiteTheSignerMakesThemWhenTheyAreNeeded) {
  stop();
  fs::remove_all(own());
  fs::remove_all(state());
  fs::create_directory(state());
  ASSERT_TRUE(signer::adoptKeys({state(), own(), site_ / "socket", {}, {}, false}));
  start();
  EXPECT_EQ(publicKeyOf(state(), KeyPurpose::Certificates).error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(fs::exists(own() / "ca"));
  const auto keys = Keys::loadOrCreate(state());
  ASSERT_TRUE(keys) << keys.error().str();
  EXPECT_NE(keys->certificates.id(), id_);
  EXPECT_TRUE(fs::exists(own() / "ca/ca.key"));
  EXPECT_FALSE(fs::exists(state() / "ca/ca.key"));
  stop();
  EXPECT_EQ(Keys::loadOrCreate(state())->ca.fingerprint(), keys->ca.fingerprint());
}

TEST_F(HeldKeys, anIdentityThatEndsSoonIsNotTakenAgain) {
  ASSERT_TRUE(Keys::loadOrCreate(state())->ca.issueServer({"127.0.0.1"}, 2h));
  stop();
  EXPECT_FALSE(Keys::loadOrCreate(state())->ca.issueServer({"127.0.0.1"}, 2h));
}

TEST_F(HeldKeys, areRotatedByTheCommand) {
  ASSERT_TRUE(revoke("dust"));
  const auto started = startKeyRotation(site_.options(), KeyPurpose::Certificates);
  ASSERT_TRUE(started) << started.error().str();
  EXPECT_EQ(started->previous_id, id_);
  EXPECT_THAT(io::publicKeyIds(*publicKeyOf(state(), KeyPurpose::Certificates)),
              ElementsAre(started->new_id, id_));
  EXPECT_EQ(revoked(), 1u) << "signed by the key before";
  ASSERT_TRUE(revoke("more dust"));
  const auto finished = finishKeyRotation(site_.options(), KeyPurpose::Certificates, false);
  ASSERT_TRUE(finished) << finished.error().str();
  EXPECT_TRUE(fs::exists(*finished));
  EXPECT_THAT(io::publicKeyIds(*publicKeyOf(state(), KeyPurpose::Certificates)),
              ElementsAre(started->new_id));
  EXPECT_EQ(revoked(), 2u) << "all were signed again";
  EXPECT_FALSE(fs::exists(state() / "keys/signing.pem"));
}

TEST_F(HeldKeys, aRotationWhoseAnswerWasLostIsNoticedAndMended) {
  ASSERT_TRUE(signer::signerAt(site_ / "socket").rotate());  // whoever asked was killed
  const auto refused = revoke("dust");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict) << refused.error().str();
  EXPECT_EQ(revoked(), 0u) << "nothing that this folder does not believe in is stored";
  EXPECT_EQ(examined().back().verdict, DoctorVerdict::Bad);
  ASSERT_TRUE(signer::adoptKeys({state(), own(), site_ / "socket", {}, {}, false}));  // own-state
  ASSERT_TRUE(revoke("dust"));
  EXPECT_EQ(examined().back().verdict, DoctorVerdict::Ok);
}

TEST_F(HeldKeys, aBackupByRootHoldsThemAndNobodyElseMakesOne) {
  const auto refused = make();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  EXPECT_THAT(refused.error().str(), HasSubstr("as root"));
  if (::geteuid() != 0) GTEST_SKIP() << "only root reads the signer's keys";
  auto options = site_.options();
  ASSERT_TRUE(takeSignerKeys(options, own()));
  const auto made = makeBackup(options, file(), kPassphrase);
  ASSERT_TRUE(made) << made.error().str();
  ASSERT_TRUE(restoreBackup(elsewhere(), file(), kPassphrase, false));
  const auto keys = Keys::loadOrCreate(elsewhere().state);
  ASSERT_TRUE(keys) << keys.error().str();
  EXPECT_EQ(keys->certificates.id(), id_);
  EXPECT_EQ(keys->ca.fingerprint(), fingerprint_);
  EXPECT_TRUE(fs::exists(elsewhere().state / "ca/ca.key"))
      << "whole, also where there is no signer";
  EXPECT_FALSE(fs::exists(elsewhere().state / "keys.signer"));
}

}  // namespace
}  // namespace muster::app
