// SPDX-License-Identifier: Apache-2.0
#include "signer/adoption.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "signer/key_files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace muster::signer {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t kMostBytes = 1u << 16;

class Adoption : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(state()); }
  fs::path state() const { return folder_ / "state"; }
  fs::path own() const { return folder_ / "signer"; }
  AdoptionRequest request(bool replace = false) const {
    return {state(), own(), folder_ / "socket", std::nullopt, std::nullopt, replace};
  }
  /// Keys as a version without a signer has made them.
  void makeKeys() {
    id_ = loadSigningKey(state(), kCertificatesKey)->id();
    fingerprint_ = loadAuthority(state())->fingerprint();
  }
  void expectMoved() {
    EXPECT_FALSE(fs::exists(state() / "keys/signing.pem"));
    EXPECT_FALSE(fs::exists(state() / "ca/ca.key"));
    EXPECT_EQ(loadSigningKey(own(), kCertificatesKey)->id(), id_);
    EXPECT_EQ(loadAuthority(own())->fingerprint(), fingerprint_);
    const auto halves = readPublicHalves(state());
    ASSERT_TRUE(halves) << halves.error().str();
    EXPECT_EQ(halves->certificates, loadSigningKey(own(), kCertificatesKey)->public_pem);
    EXPECT_EQ(io::describeCertificate(halves->ca)->sha256_fingerprint, fingerprint_);
    EXPECT_EQ(signerOf(state())->value_or(""), folder_ / "socket");
  }

  test::TempFolder folder_;
  std::string id_, fingerprint_;
};

TEST_F(Adoption, keysOfAStateMoveAndNothingElseChanges) {
  makeKeys();
  const auto images = loadSigningKey(state(), {"images", "images.pem"})->id();
  const auto done = adoptKeys(request());
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_THAT(*done, SizeIs(2));
  expectMoved();
  EXPECT_EQ(loadSigningKey(state(), {"images", "images.pem"})->id(), images);
  for (const auto* file : {"keys/signing.pem", "ca/ca.key"}) {
    struct stat status{};
    ::stat((own() / file).c_str(), &status);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << file;
  }
  const auto again = adoptKeys(request());
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_THAT(*again, IsEmpty());
  expectMoved();
}

/// Within one second, as a script does it: no key of before takes the place of an earlier one.
TEST_F(Adoption, keysOfBeforeAreKeptHoweverOftenTheyAreReplaced) {
  makeKeys();
  ASSERT_TRUE(adoptKeys(request()));
  std::vector<std::string> keys{*io::readFile(own() / "keys/signing.pem", kMostBytes)};
  for (int i = 0; i < 3; ++i) {
    const auto restored = io::SigningKey::generate()->private_pem;
    ASSERT_TRUE(io::writeFileAtomic(state() / "keys/signing.pem", restored.reveal(), 0600));
    const auto done = adoptKeys(request(true));
    ASSERT_TRUE(done) << done.error().str();
    keys.push_back(restored.reveal());
  }
  std::vector<std::string> there;
  for (const auto& entry : fs::directory_iterator(own() / "keys"))
    if (entry.path().filename().string().starts_with("signing.pem"))
      there.push_back(*io::readFile(entry.path(), kMostBytes));
  EXPECT_THAT(there, ::testing::UnorderedElementsAreArray(keys));
}

/// Nodes know the CA by its certificate's fingerprint.
TEST_F(Adoption, aCertificateOfTheCaThatIsLostIsNotMadeAnew) {
  makeKeys();
  fs::remove(state() / "ca/ca.crt");
  const auto refused = adoptKeys(request());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr((state() / "ca/ca.crt").string() + " is missing"));
  EXPECT_TRUE(fs::exists(state() / "ca/ca.key")) << "nothing was moved";
  EXPECT_EQ(loadAuthority(state()).error().code(), ErrorCode::Conflict);
  EXPECT_FALSE(fs::exists(state() / "ca/ca.crt"));
}

TEST_F(Adoption, keysThatOthersCouldReadMoveAndItIsSaid) {
  makeKeys();
  fs::permissions(state() / "ca/ca.key", fs::perms(0644));
  const auto done = adoptKeys(request());
  ASSERT_TRUE(done) << done.error().str();
  ASSERT_THAT(*done, SizeIs(3));
  EXPECT_THAT(done->front(), HasSubstr((state() / "ca/ca.key").string() + " had mode 0644"));
  expectMoved();
}

TEST_F(Adoption, aRotationThatIsUnderWayMovesAlong) {
  makeKeys();
  const auto next = rotateSigningKey(state(), kCertificatesKey);
  ASSERT_TRUE(next);
  ASSERT_TRUE(adoptKeys(request()));
  EXPECT_EQ(loadSigningKey(own(), kCertificatesKey)->public_pem, next->public_pem) << "both halves";
  EXPECT_EQ(readPublicHalves(state())->certificates, next->public_pem);
  EXPECT_FALSE(fs::exists(state() / "keys/signing.previous.pub"));
}

TEST_F(Adoption, killedAnywhereTheNextOneGoesOn) {
  makeKeys();
  fs::copy(state(), folder_ / "before", fs::copy_options::recursive);
  ASSERT_TRUE(adoptKeys(request()));
  const auto put_back = [&](const char* file) {
    fs::copy_file(folder_ / "before" / file, state() / file, fs::copy_options::overwrite_existing);
  };
  // Before the note: both have them.
  put_back("keys/signing.pem"), put_back("ca/ca.key");
  fs::remove(state() / "keys.signer");
  ASSERT_TRUE(adoptKeys(request()));
  expectMoved();
  // Before the second private half was removed.
  put_back("keys/signing.pem");
  ASSERT_TRUE(adoptKeys(request()));
  expectMoved();
  // Only a part had been written over there.
  put_back("keys/signing.pem"), put_back("ca/ca.key");
  fs::remove(state() / "keys.signer");
  fs::remove(own() / "keys/signing.pem");
  ASSERT_TRUE(adoptKeys(request()));
  expectMoved();
}

TEST_F(Adoption, ofANewStateNoKeysAreMadeAndThoseOfAnotherHostAreTaken) {
  const auto done = adoptKeys(request());
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(signerOf(state())->value_or(""), folder_ / "socket");
  EXPECT_FALSE(fs::exists(own() / "ca")) << "a second host gets those of the first";
  EXPECT_FALSE(fs::exists(state() / "ca"));
  (void)loadAuthority(own());
  (void)loadSigningKey(own(), kCertificatesKey);
  ASSERT_TRUE(adoptKeys(request()));
  id_ = loadSigningKey(own(), kCertificatesKey)->id();
  fingerprint_ = loadAuthority(own())->fingerprint();
  expectMoved();
}

TEST_F(Adoption, otherKeysThanTheSignersAreRefusedAndStay) {
  makeKeys();
  ASSERT_TRUE(adoptKeys(request()));
  test::TempFolder planted;
  (void)loadAuthority(planted.path());
  fs::copy_file(planted / "ca/ca.key", state() / "ca/ca.key");
  const auto refused = adoptKeys(request());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(refused.error().str(), HasSubstr("different keys"));
  EXPECT_EQ(loadAuthority(own())->fingerprint(), fingerprint_);
}

TEST_F(Adoption, aRestoredStateReplacesThemAndTheOldOnesAreKept) {
  makeKeys();
  ASSERT_TRUE(adoptKeys(request()));
  const auto before = id_;
  fs::remove_all(state());
  fs::create_directory(state());
  makeKeys();
  ASSERT_NE(id_, before);
  EXPECT_FALSE(adoptKeys(request()));
  const auto done = adoptKeys(request(true));
  ASSERT_TRUE(done) << done.error().str();
  expectMoved();
  int kept = 0;
  for (const auto& entry : fs::directory_iterator(own() / "keys"))
    kept += entry.path().filename().string().starts_with("signing.pem.before-") ? 1 : 0;
  EXPECT_EQ(kept, 1);
}

TEST_F(Adoption, aLostKeyIsNotMadeAnewOverThere) {
  makeKeys();
  for (const auto* lost : {"ca/ca.key", "keys/signing.pem"}) {
    fs::rename(state() / lost, folder_ / "lost");
    const auto refused = adoptKeys(request());
    ASSERT_FALSE(refused) << lost;
    EXPECT_FALSE(fs::exists(own())) << lost;
    fs::rename(folder_ / "lost", state() / lost);
  }
  fs::remove(state() / "ca/ca.key");
  fs::remove(state() / "keys.made");
  EXPECT_EQ(adoptKeys(request()).error().code(), ErrorCode::Corrupt) << "a root without its key";
}

TEST_F(Adoption, aSignerThatLostItsKeysMakesNoNewOnes) {
  makeKeys();
  ASSERT_TRUE(adoptKeys(request()));
  fs::rename(own(), folder_ / "lost");
  const auto refused = adoptKeys(request());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict) << refused.error().str();
  EXPECT_FALSE(fs::exists(own() / "ca"));
  (void)loadAuthority(own());  // somebody else's
  (void)loadSigningKey(own(), kCertificatesKey);
  EXPECT_EQ(adoptKeys(request()).error().code(), ErrorCode::Conflict);
  EXPECT_EQ(io::describeCertificate(readPublicHalves(state())->ca)->sha256_fingerprint,
            fingerprint_);
  fs::remove_all(own());
  fs::rename(folder_ / "lost", own());
  ASSERT_TRUE(adoptKeys(request()));
  expectMoved();
}

TEST_F(Adoption, linksAndWhatIsNoKeyAreRefused) {
  makeKeys();
  fs::rename(state() / "ca/ca.key", folder_ / "secret");
  fs::create_symlink(folder_ / "secret", state() / "ca/ca.key");
  EXPECT_EQ(adoptKeys(request()).error().code(), ErrorCode::Corrupt);
  fs::remove(state() / "ca/ca.key");
  fs::create_hard_link(folder_ / "secret", state() / "ca/ca.key");
  EXPECT_EQ(adoptKeys(request()).error().code(), ErrorCode::Corrupt);
  fs::remove(state() / "ca/ca.key");
  std::ofstream(state() / "ca/ca.key") << "root:x:0:0\n";
  EXPECT_EQ(adoptKeys(request()).error().code(), ErrorCode::Corrupt);
  EXPECT_FALSE(fs::exists(own()));
}

/// What was refused must not be called the signer's when the right key comes.
TEST_F(Adoption, aKeyThatIsRefusedIsNotTheSigners) {
  makeKeys();
  const auto right = io::readFile(state() / "keys/signing.pem", 1 << 16);
  ASSERT_TRUE(right);
  const auto other = io::readFile(state() / "ca/ca.key", 1 << 16);
  ASSERT_TRUE(io::writeFileAtomic(state() / "keys/signing.pem", *other, 0600));  // no Ed25519 key
  const auto refused = adoptKeys(request());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr((state() / "keys/signing.pem").string()));
  EXPECT_THAT(refused.error().str(), HasSubstr("nothing was moved"));
  EXPECT_TRUE(fs::is_empty(own())) << "neither the key nor what it was tried with";
  ASSERT_TRUE(io::writeFileAtomic(state() / "keys/signing.pem", *right, 0600));
  const auto done = adoptKeys(request());
  ASSERT_TRUE(done) << done.error().str();
  expectMoved();
}

TEST_F(Adoption, eachFolderIsWorkedOnAsItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root works as others";
  constexpr uid_t kService = 65534, kOwn = 1;
  fs::permissions(folder_.path(), fs::perms::all);
  makeKeys();
  for (const auto& entry : fs::recursive_directory_iterator(state()))
    ASSERT_EQ(::lchown(entry.path().c_str(), kService, kService), 0);
  ASSERT_EQ(::lchown(state().c_str(), kService, kService), 0);
  auto asked = request();
  asked.service = UserIds{kService, kService};
  asked.signer = UserIds{kOwn, kOwn};
  const auto done = adoptKeys(asked);
  ASSERT_TRUE(done) << done.error().str();
  expectMoved();
  for (const auto& [at, uid] : {std::pair(own(), kOwn), std::pair(state(), kService)})
    for (const auto& entry : fs::recursive_directory_iterator(at)) {
      struct stat status{};
      ::lstat(entry.path().c_str(), &status);
      if (::geteuid() == 0 && status.st_uid == 0) continue;  // expectMoved has read as root
      EXPECT_EQ(status.st_uid, uid) << entry.path();
    }
  // A link of the service's user leads to nothing that root alone may read.
  fs::create_directory(folder_ / "roots");
  fs::permissions(folder_ / "roots", fs::perms::owner_all);
  std::ofstream(folder_ / "roots/ca.key") << "-----BEGIN PRIVATE KEY-----\n";
  fs::remove_all(state() / "ca");
  fs::create_directory_symlink(folder_ / "roots", state() / "ca");
  const auto refused = adoptKeys(asked);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied) << refused.error().str();
}

TEST_F(Adoption, aBackupReadsPrivateHalves) {
  makeKeys();
  ASSERT_TRUE(adoptKeys(request()));
  const auto keys = readSignerKeys(own());
  ASSERT_TRUE(keys);
  EXPECT_TRUE(keys->contains("ca/ca.key"));
  EXPECT_TRUE(keys->contains("keys/signing.pem"));
  EXPECT_THAT(*readSignerKeys(folder_ / "nowhere"), IsEmpty());
}

}  // namespace
}  // namespace muster::signer
