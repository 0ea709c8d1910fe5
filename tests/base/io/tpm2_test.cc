// SPDX-License-Identifier: Apache-2.0
// Structures of TPM 2.0 as tpm2-tools 5.4 wrote them from swtpm 0.7.1, and everything that they are
// not.
#include "base/io/tpm2.h"
#include "base/io/crypto.h"

#include <gmock/gmock.h>

#include <random>

namespace muster::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string bytes(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

const std::string kEk = bytes(
    "013a0001000b000300b20020837197674484b3f81a90cc8d46a5d724fd52d76e06520b64f2a1da1b331469aa000600"
    "8000430010080000000000010091a68fe48a8848d068695474aa3506724f673cad57dc968a64cb"
    "2028d2fb6bbb37234a9839517d1d684d22a28d881fefc3f9f53ef744869b4536a050689dfb756c160c0df03852973c"
    "b279a6bddac35121d8fa228644dad35bb3ffa3f051337bd85ec41be44aa6b6bd3a2df55ead977a"
    "9c2035f14c22ac7899e33ad0821554bf9354049a7cc58e58c661b8b55885c511f7210aa3d50dfadfe37f908ec8bef4"
    "744415d992bafd0592b3337e251432f080691033c977292a1710c177d74fb37a84dfe0d5d38020"
    "3d42ec4af2d1e0a3b46e02cd3e7eb00534a6d195f401e09c326278a4f66c582354e38d2a2ed637775c69efcbdd4b46"
    "057419fd31f0e642409cdb");
const std::string kAk = bytes(
    "00580023000b00050072000000100018000b000300100020c3d1c35eaa6ab9fac163ea734c679efae4cc73b6fd9e54"
    "d7a43f68144b48ce690020a93121857f4fa982ed99531564838c6689d68e64ddc838e28495d25e"
    "caa99710");
const std::string kQuote = bytes(
    "ff54434780180022000b369e8a9118eb05b06cd3bf75355dc71d3da1c19ad4ef2cbda33a26fe950ecc1f0020c551e8"
    "264a3fb8ce530b3c66085372feb97c9819540d8d8839e8d1af475e455900000000000003cc0000"
    "00010000000001201910230016363600000001000b038100000020f5a5fd42d16a20302798ef6ed309979b43003d23"
    "20d9f0e8ea9831a92759fb4b");
const std::string kSignature = bytes(
    "0018000b00200212a3618abfe2c736662d99440514f2f6c5fee471b32caf262fcea84233ebf600203702307a4de600"
    "a04bbcc4c33811e3603d14637dfba8d1760a7d75576e00defe");

TEST(TpmPublicArea, keysAreWhatTheToolsSayTheyAre) {
  const auto ak = parseTpmPublic(kAk);
  ASSERT_TRUE(ak) << ak.error().str();
  EXPECT_EQ(toHex(ak->name()),
            "000bed9e35188dea7b0b8d0b2c6d4284091812ac59bae905ff3261a9f72d2d9f941d");
  EXPECT_TRUE(ak->mayAttest());
  EXPECT_THAT(ak->mayBeEndorsement().error().str(), HasSubstr("decrypt"));
  const auto ek = parseTpmPublic(kEk);
  ASSERT_TRUE(ek) << ek.error().str();
  EXPECT_TRUE(ek->rsa);
  EXPECT_TRUE(ek->mayBeEndorsement());
  EXPECT_THAT(ek->mayAttest().error().str(), HasSubstr("sign"));
}

TEST(TpmPublicArea, aKeyThatCouldSignAnythingIsNoAttestationKey) {
  auto loose = kAk;
  loose[7] = '\x04';  // restricted is gone
  EXPECT_THAT(parseTpmPublic(loose)->mayAttest().error().str(), HasSubstr("not restricted"));
  auto foreign = kAk;
  foreign[9] = '\x52';  // sensitiveDataOrigin is gone: made elsewhere
  EXPECT_THAT(parseTpmPublic(foreign)->mayAttest().error().str(), HasSubstr("sensitiveDataOrigin"));
}

TEST(TpmPublicArea, nothingButItsOwnFormIsRead) {
  for (const auto& whole : {kAk, kEk}) {
    for (std::size_t length = 0; length < whole.size(); ++length)
      EXPECT_FALSE(parseTpmPublic(whole.substr(0, length))) << length;
    EXPECT_FALSE(parseTpmPublic(whole + '\0'));
  }
  auto sha1 = kAk;
  sha1[5] = '\x04';
  EXPECT_EQ(parseTpmPublic(sha1).error().code(), ErrorCode::InvalidInput);
}

TEST(TpmQuotes, sayWhatWasQuoted) {
  const auto quote = parseTpmQuote(kQuote);
  ASSERT_TRUE(quote) << quote.error().str();
  EXPECT_THAT(quote->pcrs, ElementsAre(0, 7));
  EXPECT_EQ(toHex(quote->pcr_digest), sha256Hex(std::string(64, '\0')));
  EXPECT_EQ(toHex(quote->extra_data),
            "c551e8264a3fb8ce530b3c66085372feb97c9819540d8d8839e8d1af475e4559");
}

TEST(TpmQuotes, nothingButItsOwnFormIsRead) {
  for (std::size_t length = 0; length < kQuote.size(); ++length)
    EXPECT_FALSE(parseTpmQuote(kQuote.substr(0, length))) << length;
  EXPECT_FALSE(parseTpmQuote(kQuote + '\0'));
  auto foreign = kQuote;
  foreign[0] = '\x00';
  EXPECT_THAT(parseTpmQuote(foreign).error().str(), HasSubstr("not made by the TPM"));
  auto certified = kQuote;
  certified[5] = '\x17';
  EXPECT_THAT(parseTpmQuote(certified).error().str(), HasSubstr("no quote"));
}

TEST(TpmQuotes, areSignedByTheirKeyAndNoOther) {
  const auto ak = *parseTpmPublic(kAk);
  const auto right = verifyTpmSignature(ak, kQuote, kSignature);
  EXPECT_TRUE(right) << right.error().str();
  for (std::size_t at = 0; at < kQuote.size(); ++at) {
    auto changed = kQuote;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ASSERT_FALSE(verifyTpmSignature(ak, changed, kSignature)) << at;
  }
  for (std::size_t at = 0; at < kSignature.size(); ++at) {
    auto changed = kSignature;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ASSERT_FALSE(verifyTpmSignature(ak, kQuote, changed)) << at;
    ASSERT_FALSE(verifyTpmSignature(ak, kQuote, kSignature.substr(0, at))) << at;
  }
  auto off_the_curve = ak;
  off_the_curve.y[0] = static_cast<char>(off_the_curve.y[0] ^ 1);
  EXPECT_FALSE(verifyTpmSignature(off_the_curve, kQuote, kSignature));
  EXPECT_FALSE(verifyTpmSignature(*parseTpmPublic(kEk), kQuote, kSignature));
}

TEST(TpmStructures, noiseIsRefused) {
  std::mt19937 random(26);
  for (int round = 0; round < 20'000; ++round) {
    auto noise = round % 3 == 0 ? kQuote : round % 3 == 1 ? kAk : kEk;
    for (int change = 0; change < 4; ++change)
      noise[random() % noise.size()] = static_cast<char>(random());
    noise.resize(random() % (noise.size() + 1));
    (void)parseTpmPublic(
        noise);  // whatever it answers, it reads nothing beyond: for the sanitizers
    (void)parseTpmQuote(noise);
    if (const auto key = parseTpmPublic(noise)) (void)verifyTpmSignature(*key, kQuote, kSignature);
  }
}

TEST(TpmCredentials, areForEndorsementKeysAndSmall) {
  const auto ek = *parseTpmPublic(kEk), ak = *parseTpmPublic(kAk);
  EXPECT_TRUE(makeTpmCredential(ek, ak.name(), std::string(32, 's')));
  EXPECT_FALSE(makeTpmCredential(ak, ak.name(), std::string(32, 's')));
  EXPECT_FALSE(makeTpmCredential(ek, ak.name(), std::string(33, 's')));
  EXPECT_FALSE(checkEndorsement(ek, "", "")) << "no certificate";
  EXPECT_FALSE(checkEndorsement(ek, "noise", ""));
}

}  // namespace
}  // namespace muster::io
