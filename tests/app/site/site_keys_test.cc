// SPDX-License-Identifier: Apache-2.0
// One key a purpose, and two that count while one is replaced.
#include "app/site/site_keys.h"

#include "base/io/files.h"
#include "base/io/trusted_keys.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

namespace muster::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SiteKeysTest : public testing::Test {
 protected:
  std::filesystem::path state() const { return folder_.path(); }
  std::string pem(app::KeyPurpose purpose) const { return *app::publicKeyOf(state(), purpose); }
  test::TempFolder folder_;
};

TEST_F(SiteKeysTest, whatIsSignedForOnePurposeCountsForNoOther) {
  const auto keys = app::Keys::loadOrCreate(state());
  ASSERT_TRUE(keys) << keys.error().str();
  for (const auto& signer : app::kKeyPurposes) {
    const auto signature = io::sign(*app::loadKey(state(), signer.purpose), "words");
    for (const auto& reader : app::kKeyPurposes)
      EXPECT_EQ(io::verify(keys->publicPem(reader.purpose), "words", *signature).has_value(),
                reader.purpose == signer.purpose)
          << signer.name << " for " << reader.name;
  }
}

TEST_F(SiteKeysTest, aKeyThatIsCopiedToAnotherPurposeIsRefused) {
  ASSERT_TRUE(app::Keys::loadOrCreate(state()));
  std::filesystem::copy_file(state() / "keys/signing.pem", state() / "keys/audit.pem",
                             std::filesystem::copy_options::overwrite_existing);
  const auto refused = app::Keys::loadOrCreate(state());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(refused.error().text(), HasSubstr("certificates and audit"));
}

TEST_F(SiteKeysTest, aKeyThatIsLostIsNotMadeAnewWithoutAWord) {
  ASSERT_TRUE(app::Keys::loadOrCreate(state()));
  for (const auto& row : app::kKeyPurposes) {
    const auto file = state() / "keys" / row.file;
    const auto lost = app::loadKey(state(), row.purpose)->id();
    ASSERT_TRUE(std::filesystem::remove(file));
    for (const auto& refused :
         {app::Keys::loadOrCreate(state()).error(), app::loadKey(state(), row.purpose).error(),
          app::publicKeyOf(state(), row.purpose).error()}) {
      EXPECT_EQ(refused.code(), ErrorCode::Conflict);
      EXPECT_THAT(refused.text(), testing::AllOf(HasSubstr("was here"), HasSubstr("--lost")));
    }
    EXPECT_FALSE(std::filesystem::exists(file));
    const auto next = app::replaceLostKey(state(), row.purpose);
    ASSERT_TRUE(next) << next.error().str();
    EXPECT_NE(next->id(), lost);
    EXPECT_EQ(app::replaceLostKey(state(), row.purpose).error().code(), ErrorCode::Conflict)
        << "it is there";
  }
  std::filesystem::remove_all(state() / "ca");
  std::filesystem::remove_all(state() / "keys");
  const auto refused = app::Keys::loadOrCreate(state());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("imaged again"));
}

TEST_F(SiteKeysTest, aFifoInPlaceOfAKeyHoldsNobodyUp) {
  ASSERT_TRUE(io::makeDirs(state() / "keys"));
  ASSERT_EQ(::mkfifo((state() / "keys/signing.pem").c_str(), 0600), 0);
  const auto refused = app::loadKey(state(), app::KeyPurpose::Certificates);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("is a FIFO"));
}

TEST_F(SiteKeysTest, theOnlyKeyOfAnOldSiteGoesOnSigningCertificates) {
  const auto old = io::SigningKey::loadOrCreate(state() / "keys/signing.pem");
  const auto keys = app::Keys::loadOrCreate(state());
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->certificates.id(), old->id());
  EXPECT_NE(keys->images.id(), old->id());
}

TEST_F(SiteKeysTest, bothKeysVerifyUntilTheRotationIsEnded) {
  for (const auto& row : app::kKeyPurposes) {
    const auto before = app::loadKey(state(), row.purpose);
    const auto by_old = io::sign(*before, "words");
    const auto now = app::rotateKey(state(), row.purpose);
    ASSERT_TRUE(now) << now.error().str();
    const auto by_new = io::sign(*now, "words");
    EXPECT_NE(now->id(), before->id()) << "the new one signs";
    EXPECT_THAT(io::publicKeyIds(pem(row.purpose)), ElementsAre(now->id(), before->id()));
    EXPECT_TRUE(io::verify(pem(row.purpose), "words", *by_old));
    EXPECT_TRUE(io::verify(pem(row.purpose), "words", *by_new));
    EXPECT_FALSE(io::verify(pem(row.purpose), "wards", *by_old));
    EXPECT_EQ(app::rotateKey(state(), row.purpose).error().code(), ErrorCode::Conflict)
        << "one rotation at a time";
    const auto retired = app::finishRotation(state(), row.purpose);
    ASSERT_TRUE(retired) << retired.error().str();
    EXPECT_FALSE(io::verify(pem(row.purpose), "words", *by_old));
    EXPECT_TRUE(io::verify(pem(row.purpose), "words", *by_new));
    EXPECT_TRUE(io::verify(*io::readFile(*retired, 4096), "words", *by_old))
        << "kept, to read old heads";
    EXPECT_EQ(app::finishRotation(state(), row.purpose).error().code(), ErrorCode::NotFound);
    struct stat status{};
    ASSERT_EQ(::stat((state() / "keys" / row.file).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
  }
}

TEST_F(SiteKeysTest, aRotationThatWasKilledBeforeTheNewKeyWasWrittenHasNotBegun) {
  const auto before = app::loadKey(state(), app::KeyPurpose::Images);
  ASSERT_TRUE(io::writeFileAtomic(state() / "keys/images.previous.pub",
                                  before->public_pem));  // the first of both writes
  EXPECT_THAT(io::publicKeyIds(pem(app::KeyPurpose::Images)), ElementsAre(before->id()));
  ASSERT_TRUE(app::rotateKey(state(), app::KeyPurpose::Images));
  EXPECT_TRUE(io::trustedPemOf(pem(app::KeyPurpose::Images), before->id()));
}

TEST_F(SiteKeysTest, whatAKilledRotationLeftIsRemoved) {
  ASSERT_TRUE(app::Keys::loadOrCreate(state()));
  const auto keys = state() / "keys";
  const auto never_used = io::SigningKey::generate();
  ASSERT_TRUE(never_used);
  const auto put = [&](const char* name, std::string_view text) {
    ASSERT_TRUE(io::writeFileAtomic(keys / name, text, 0600));
  };
  const auto own = *io::readFile(keys / "audit.pem", 4096);
  for (const bool finishes : {false, true}) {
    put("audit.pem.aB3xYz", never_used->private_pem.reveal());
    put("audit.pem.Q00000", "-----BEGIN PRIV");
    put("audit.pem.backup", own);
    put("audit.pem.Backup", own);
    put("images.pem.aB3xYz", never_used->private_pem.reveal());
    if (finishes)
      ASSERT_TRUE(app::finishRotation(state(), app::KeyPurpose::Audit));
    else
      ASSERT_TRUE(app::rotateKey(state(), app::KeyPurpose::Audit));
    EXPECT_FALSE(std::filesystem::exists(keys / "audit.pem.aB3xYz"));
    EXPECT_FALSE(std::filesystem::exists(keys / "audit.pem.Q00000")) << "cut off";
    EXPECT_TRUE(std::filesystem::exists(keys / "audit.pem.backup"));
    EXPECT_TRUE(std::filesystem::exists(keys / "audit.pem.Backup")) << "a key that was in use";
    EXPECT_TRUE(std::filesystem::exists(keys / "images.pem.aB3xYz")) << "another purpose's";
  }
}

TEST_F(SiteKeysTest, nothingIsMadeByLooking) {
  EXPECT_EQ(app::publicKeyOf(state(), app::KeyPurpose::Audit).error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(std::filesystem::exists(state() / "keys"));
  EXPECT_EQ(app::parseKeyPurpose("ca").error().code(), ErrorCode::InvalidInput);
  EXPECT_THAT(app::parseKeyPurpose("ca").error().text(), HasSubstr("cannot be rotated yet"));
}

}  // namespace
}  // namespace muster::app
