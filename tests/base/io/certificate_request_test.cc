// SPDX-License-Identifier: Apache-2.0
// Which certificate requests are signed, and what the certificates then say. Requests are made by
// OpenSSL's own functions, not by ours.
#include "base/io/certificate_request.h"

#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <openssl/dsa.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

namespace muster::io {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

EVP_PKEY* ec(const char* curve) { return EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve); }
EVP_PKEY* rsa(std::size_t bits) { return EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", bits); }

EVP_PKEY* dsa() {
  Handle<EVP_PKEY_CTX> parameters(EVP_PKEY_CTX_new_from_name(nullptr, "DSA", nullptr));
  EVP_PKEY* group = nullptr;
  EVP_PKEY* key = nullptr;
  EVP_PKEY_paramgen_init(parameters.get());
  EVP_PKEY_CTX_set_dsa_paramgen_bits(parameters.get(), 1024);
  EVP_PKEY_paramgen(parameters.get(), &group);
  const Handle<EVP_PKEY> owned(group);
  Handle<EVP_PKEY_CTX> maker(EVP_PKEY_CTX_new_from_pkey(nullptr, group, nullptr));
  EVP_PKEY_keygen_init(maker.get());
  EVP_PKEY_keygen(maker.get(), &key);
  return key;
}

EVP_PKEY* rsaWithExponent3() {
  Handle<EVP_PKEY_CTX> maker(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  const Handle<BIGNUM> three(BN_new());
  BN_set_word(three.get(), 3);
  EVP_PKEY* key = nullptr;
  EVP_PKEY_keygen_init(maker.get());
  EVP_PKEY_CTX_set_rsa_keygen_bits(maker.get(), 3072);
  EVP_PKEY_CTX_set1_rsa_keygen_pubexp(maker.get(), three.get());
  EVP_PKEY_keygen(maker.get(), &key);
  return key;
}

/// P-256 with its parameters written out instead of its name.
EVP_PKEY* explicitCurve() {
  Handle<EVP_PKEY_CTX> maker(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  EVP_PKEY_keygen_init(maker.get());
  EVP_PKEY_CTX_set_ec_paramgen_curve_nid(maker.get(), NID_X9_62_prime256v1);
  EVP_PKEY_CTX_set_ec_param_enc(maker.get(), OPENSSL_EC_EXPLICIT_CURVE);
  EVP_PKEY_keygen(maker.get(), &key);
  return key;
}

using Wishes = std::vector<std::pair<int, std::string>>;

/// Takes the key. `signer`: another key than that in the request.
std::string requestOf(EVP_PKEY* taken, const Wishes& wishes = {}, const EVP_MD* hash = EVP_sha256(),
                      EVP_PKEY* signer = nullptr) {
  const Handle<EVP_PKEY> key(taken);
  EXPECT_TRUE(key);
  Handle<X509_REQ> request(X509_REQ_new());
  X509_REQ_set_pubkey(request.get(), key.get());
  auto* extensions = sk_X509_EXTENSION_new_null();
  for (const auto& [nid, value] : wishes)
    sk_X509_EXTENSION_push(extensions, X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str()));
  if (!wishes.empty()) EXPECT_EQ(X509_REQ_add_extensions(request.get(), extensions), 1);
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  const bool hashless = EVP_PKEY_is_a(key.get(), "ED25519") || EVP_PKEY_is_a(key.get(), "ED448");
  EXPECT_GT(X509_REQ_sign(request.get(), signer ? signer : key.get(), hashless ? nullptr : hash),
            0);
  Handle<BIO> bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_REQ(bio.get(), request.get());
  return textOf(bio.get());
}

class CertificateRequest : public ::testing::Test {
 protected:
  Error refusal(const std::string& csr_pem) {
    auto signed_one = ca.signClient(csr_pem, "gpu001", 24h);
    EXPECT_FALSE(signed_one);
    return signed_one ? Error(ErrorCode::Internal, "it was signed") : signed_one.error();
  }
  void expectDenied(const std::string& csr_pem, const std::string& why) {
    const auto error = refusal(csr_pem);
    EXPECT_EQ(error.code(), ErrorCode::Denied) << error.str();
    EXPECT_THAT(error.str(), HasSubstr(why));
  }
  test::TempFolder folder;
  CertificateAuthority ca = *CertificateAuthority::loadOrCreate(folder / "ca", "root");
};

TEST_F(CertificateRequest, keysOnTheListGetACertificateWithThatKey) {
  const auto root = certificatesOf(ca.certificatePem());
  for (auto* key :
       {ec("P-256"), ec("P-384"), rsa(3072), EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")}) {
    EVP_PKEY_up_ref(key);
    const Handle<EVP_PKEY> kept(key);
    const auto pem = ca.signClient(requestOf(key), "gpu001", 24h);
    ASSERT_TRUE(pem) << pem.error().str();
    const auto certificates = certificatesOf(*pem);
    ASSERT_EQ(certificates.size(), 1u);
    EXPECT_EQ(EVP_PKEY_eq(X509_get0_pubkey(certificates.front().get()), kept.get()), 1);
    EXPECT_EQ(X509_verify(certificates.front().get(), X509_get0_pubkey(root.front().get())), 1);
  }
}

TEST_F(CertificateRequest, otherKeysAreRefused) {
  expectDenied(requestOf(rsa(1024)), "its RSA key has 1024 bits; 3072 to 8192 are allowed");
  expectDenied(requestOf(rsa(2048)), "its RSA key has 2048 bits");
  expectDenied(requestOf(rsaWithExponent3()), "public exponent");
  expectDenied(requestOf(ec("secp256k1")), "not on the curve P-256 or P-384");
  expectDenied(requestOf(ec("P-521")), "not on the curve P-256 or P-384");
  expectDenied(requestOf(ec("P-224")), "not on the curve P-256 or P-384");
  expectDenied(requestOf(explicitCurve()), "not on the curve P-256 or P-384");
  expectDenied(requestOf(dsa()), "none of RSA, P-256, P-384, Ed25519");
  expectDenied(requestOf(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED448")),
               "none of RSA, P-256, P-384, Ed25519");
}

TEST_F(CertificateRequest, aBmcMayHaveMade2048BitsButNoFewer) {
  EXPECT_TRUE(ca.signServer(requestOf(rsa(2048)), "bmc", {"10.0.0.1"}, 24h));
  EXPECT_FALSE(ca.signServer(requestOf(rsa(1024)), "bmc", {"10.0.0.1"}, 24h));
  EXPECT_FALSE(ca.signServer(requestOf(ec("secp256k1")), "bmc", {"10.0.0.1"}, 24h));
}

TEST_F(CertificateRequest, signaturesOfBrokenHashesAndOfOtherKeysAreRefused) {
  expectDenied(requestOf(ec("P-256"), {}, EVP_sha1()), "neither SHA-256");
  expectDenied(requestOf(rsa(3072), {}, EVP_md5()), "neither SHA-256");
  const Handle<EVP_PKEY> other(ec("P-256"));
  expectDenied(requestOf(ec("P-256"), {}, EVP_sha256(), other.get()), "not signed by its own key");
}

TEST_F(CertificateRequest, whoAsksToBeAnAuthorityIsRefused) {
  expectDenied(requestOf(ec("P-256"), {{NID_basic_constraints, "critical,CA:TRUE"}}),
               "asks to be a certificate authority");
  EXPECT_TRUE(ca.signClient(requestOf(ec("P-256"), {{NID_basic_constraints, "critical,CA:FALSE"}}),
                            "gpu001", 24h));
}

TEST_F(CertificateRequest, whatItWishesForIsNotInTheCertificate) {
  const auto csr = requestOf(ec("P-256"), {{NID_subject_alt_name, "DNS:controller,IP:10.20.0.1"},
                                           {NID_ext_key_usage, "serverAuth"},
                                           {NID_key_usage, "keyCertSign"}});
  const auto pem = ca.signClient(csr, "gpu001", 24h);
  ASSERT_TRUE(pem) << pem.error().str();
  const auto certificates = certificatesOf(*pem);
  auto* leaf = certificates.front().get();
  EXPECT_EQ(X509_get_ext_by_NID(leaf, NID_subject_alt_name, -1), -1);
  EXPECT_EQ(X509_get_extended_key_usage(leaf), static_cast<std::uint32_t>(XKU_SSL_CLIENT));
  EXPECT_EQ(X509_get_key_usage(leaf), static_cast<std::uint32_t>(KU_DIGITAL_SIGNATURE));
  EXPECT_EQ(X509_check_ca(leaf), 0);
  EXPECT_EQ(describeCertificate(*pem)->common_name, "gpu001");
}

TEST_F(CertificateRequest, aServersCertificateIsForServersAlone) {
  const auto identity = ca.issueServer("controller", {"10.20.0.1"}, 24h);
  const auto certificates = certificatesOf(identity->certificate_pem);
  EXPECT_EQ(X509_get_extended_key_usage(certificates.front().get()),
            static_cast<std::uint32_t>(XKU_SSL_SERVER));
  EXPECT_EQ(X509_check_ca(certificates.front().get()), 0);
  EXPECT_EQ(X509_get_pathlen(certificates.back().get()), 0)
      << "below the root stands no other authority";
}

TEST_F(CertificateRequest, nothingMayStandAroundIt) {
  const auto good = requestOf(ec("P-256"));
  const auto other = requestOf(ec("P-256"));
  for (const auto& bad : {good + "x", good + other, good + "\n# approved by anna\n", "x\n" + good,
                          "Subject: CN = gpu001\n" + good, good + std::string(1, '\0')}) {
    const auto error = refusal(bad);
    EXPECT_EQ(error.code(), ErrorCode::InvalidInput) << error.str();
    EXPECT_THAT(error.str(), HasSubstr("one PEM block alone")) << bad;
  }
  for (const auto& fine : {good, "\n" + good + "\r\n\n", good.substr(0, good.size() - 1)})
    EXPECT_TRUE(ca.signClient(fine, "gpu001", 24h)) << fine;
}

TEST_F(CertificateRequest, hugeOnesAndManyExtensionsAreRefused) {
  Wishes wishes;
  for (int i = 0; i <= kMaxRequestExtensions; ++i) wishes.emplace_back(NID_netscape_comment, "x");
  expectDenied(requestOf(ec("P-256"), wishes), "more than 16 extensions");
  const auto huge =
      requestOf(ec("P-256"), {{NID_netscape_comment, std::string(2 * kMaxRequestBytes, 'x')}});
  EXPECT_EQ(refusal(huge).code(), ErrorCode::InvalidInput);
  EXPECT_THAT(refusal(huge).str(), HasSubstr("at most 16384 are read"));
}

}  // namespace
}  // namespace muster::io
