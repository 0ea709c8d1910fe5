// SPDX-License-Identifier: Apache-2.0
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/openssl.h"
#include "tests/run_async.h"

#include <openssl/pem.h>
#include <sys/stat.h>
#include <set>

namespace muster::io {
namespace {

using namespace std::chrono_literals;

TEST(Hash, knownDigests) {
  EXPECT_EQ(sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 hash;
  hash.update("a", 1);
  hash.update("bc", 2);
  EXPECT_EQ(hash.finishHex(), sha256Hex("abc"));
  test::TempFolder folder;
  ASSERT_TRUE(writeFileAtomic(folder / "f", "abc"));
  EXPECT_EQ(*sha256File(folder / "f"), sha256Hex("abc"));
  EXPECT_EQ(sha256File(folder / "none").error().code(), ErrorCode::NotFound);
}

TEST(Base64, roundTripsAndRefusesJunk) {
  for (const auto& text : {std::string(), std::string("a"), std::string("ab"), std::string("abc"),
                           std::string("\0\xff\x10", 3)}) {
    EXPECT_EQ(*fromBase64(toBase64(text)), text);
  }
  for (const auto* bad : {"a", "ab=c", "====", "ab c", "a===", "Zm9v\n"})
    EXPECT_FALSE(fromBase64(bad)) << bad;
}

TEST(Token, isUrlSafeAndNeverTwice) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const auto token = randomToken();
    EXPECT_EQ(token.size(), 32u);
    EXPECT_EQ(
        token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
        std::string::npos);
    EXPECT_TRUE(seen.insert(token).second);
  }
  EXPECT_TRUE(equalConstantTime("abc", "abc"));
  EXPECT_FALSE(equalConstantTime("abc", "abd"));
  EXPECT_FALSE(equalConstantTime("abc", "ab"));
}

TEST(Signature, fitsOnlyItsKeyAndMessage) {
  const auto key = SigningKey::generate();
  const auto other = SigningKey::generate();
  const auto signature = sign(*key, "message");
  ASSERT_TRUE(signature);
  EXPECT_TRUE(verify(key->public_pem, "message", *signature));
  EXPECT_EQ(verify(key->public_pem, "massage", *signature).error().code(), ErrorCode::Corrupt);
  EXPECT_FALSE(verify(other->public_pem, "message", *signature));
  EXPECT_FALSE(verify(key->public_pem, "message", "not base64"));
  EXPECT_FALSE(verify(key->public_pem, "message", ""));
  EXPECT_FALSE(verify("not a key", "message", *signature));
  EXPECT_FALSE(verify(selfSigned("x", {})->certificate_pem, "message", *signature));
}

TEST(Signature, keyIsMadeOnceWithMode0600) {
  test::TempFolder folder;
  const auto file = folder / "keys/signing.pem";
  const auto made = SigningKey::loadOrCreate(file);
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(SigningKey::loadOrCreate(file)->id(), made->id());
  struct stat info{};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_TRUE(writeFileAtomic(file, "damaged"));
  EXPECT_EQ(SigningKey::loadOrCreate(file).error().code(), ErrorCode::Corrupt)
      << "a damaged key must never be replaced silently";
}

// One serial in 256 once began with a padding byte that DER forbids; nobody could read that
// certificate.
TEST(Certificate, everySerialCanBeRead) {
  for (int i = 0; i < 1500; ++i) {
    auto identity = selfSigned("x", {});
    ASSERT_TRUE(identity);
    ASSERT_TRUE(describeCertificate(identity->certificate_pem)) << identity->certificate_pem;
  }
}

TEST(CertificateAuthority, staysTheSameAndReportsDamage) {
  test::TempFolder folder;
  const auto made = CertificateAuthority::loadOrCreate(folder / "ca", "root");
  ASSERT_TRUE(made) << made.error().str();
  const auto again = CertificateAuthority::loadOrCreate(folder / "ca", "root");
  EXPECT_EQ(again->fingerprint(), made->fingerprint());
  EXPECT_EQ(describeCertificate(made->certificatePem())->sha256_fingerprint, made->fingerprint());
  EXPECT_EQ(describeCertificate(made->certificatePem())->common_name, "root");
  std::filesystem::remove(folder / "ca/ca.key");
  EXPECT_EQ(CertificateAuthority::loadOrCreate(folder / "ca", "root").error().code(),
            ErrorCode::Corrupt);
  ASSERT_TRUE(writeFileAtomic(folder / "ca/ca.key", selfSigned("x", {})->key_pem.reveal()));
  EXPECT_EQ(CertificateAuthority::loadOrCreate(folder / "ca", "root").error().code(),
            ErrorCode::Corrupt);
}

TEST(CertificateAuthority, subjectIsWhatTheControllerSays) {
  test::TempFolder folder;
  const auto ca = CertificateAuthority::loadOrCreate(folder / "ca", "root");
  const auto request = makeKeyAndRequest("gpu999");
  const auto pem = ca->signClient(request->csr_pem, "gpu001", 24h);
  ASSERT_TRUE(pem) << pem.error().str();
  const auto info = describeCertificate(*pem);
  EXPECT_EQ(info->common_name, "gpu001");
  EXPECT_GT(info->not_after, std::chrono::system_clock::now() + 23h);
  EXPECT_LT(info->not_after, std::chrono::system_clock::now() + 25h);
  EXPECT_EQ(ca->signClient("junk", "gpu001", 24h).error().code(), ErrorCode::InvalidInput);
  auto forged = request->csr_pem;
  forged[forged.size() / 2] = forged[forged.size() / 2] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(ca->signClient(forged, "gpu001", 24h));
  EXPECT_FALSE(ca->issueServer("x", {"a,DNS:evil"}, 24h));
}

/// Keys are kept once they were read; which half a text is counts all the same.
TEST(Signature, keptKeysAreNotTakenForEachOther) {
  const auto key = *SigningKey::generate();
  const auto signature = *sign(key, "words");
  EXPECT_TRUE(verify(key.public_pem, "words", signature));
  EXPECT_FALSE(verify(key.private_pem.reveal(), "words", signature))
      << "a private key is no public one";
  EXPECT_FALSE(sign({Secret(key.public_pem), key.public_pem}, "words"))
      << "nor the other way round";
  EXPECT_EQ(*sign(key, "words"), signature);
  EXPECT_FALSE(verify(SigningKey::generate()->public_pem, "words", signature));
}

}  // namespace
}  // namespace muster::io
