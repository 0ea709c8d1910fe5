// SPDX-License-Identifier: Apache-2.0
// What a verifier computes for TPM 2.0, with OpenSSL: signatures, credentials, certificates of
// endorsement keys.
#include "base/io/openssl.h"
#include "base/io/tpm2.h"
#include "base/io/tpm2_wire.h"

#include <fmt/format.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#include <array>

namespace muster::io {
namespace {

constexpr std::size_t kSeedBytes = 32, kHmacBytes = 32, kAesBytes = 16, kMaxSecretBytes = 32;

std::string sized(std::string_view bytes) {
  std::string out = {static_cast<char>(bytes.size() >> 8), static_cast<char>(bytes.size())};
  return out.append(bytes);
}

Result<Handle<EVP_PKEY>> keyOf(const TpmPublic& pub) {
  Handle<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  Handle<BIGNUM> modulus, exponent;
  std::string point;
  if (pub.rsa) {
    modulus.reset(BN_bin2bn(bytesOf(pub.modulus), static_cast<int>(pub.modulus.size()), nullptr));
    exponent.reset(BN_new());
    BN_set_word(exponent.get(), pub.exponent);
    OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get());
    OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get());
  } else {
    point = "\x04" + pub.x + pub.y;
    OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0);
    OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                     point.size());
  }
  Handle<OSSL_PARAM> params(OSSL_PARAM_BLD_to_param(builder.get()));
  Handle<EVP_PKEY_CTX> context(
      EVP_PKEY_CTX_new_from_name(nullptr, pub.rsa ? "RSA" : "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1)
    return fail(ErrorCode::Corrupt,
                "the TPM's public key is no key");  // also a point that is not on the curve
  return Handle<EVP_PKEY>(key);
}

/// TPMT_SIGNATURE → what OpenSSL takes.
Result<std::string> plainSignature(const TpmPublic& key, std::string_view signature) {
  const auto bad =
      fail(ErrorCode::Corrupt,
           "the TPM's signature is malformed, or of an algorithm that is not supported");
  TpmReader in(signature);
  const auto scheme = in.u16(), hash = in.u16();
  if (signature.size() > kTpmMaxBytes || scheme != (key.rsa ? kTpmRsaSsa : kTpmEcdsa) ||
      hash != kTpmSha256)
    return bad;
  const auto first = in.sized();
  if (key.rsa) return in.done() ? Result<std::string>(std::string(first)) : bad;
  const auto second = in.sized();
  if (!in.done()) return bad;
  const auto number = [](std::string_view bytes) {
    return BN_bin2bn(bytesOf(bytes), static_cast<int>(bytes.size()), nullptr);
  };
  Handle<ECDSA_SIG> pair(ECDSA_SIG_new());
  ECDSA_SIG_set0(pair.get(), number(first), number(second));
  unsigned char* der = nullptr;
  const int length = i2d_ECDSA_SIG(pair.get(), &der);
  if (length <= 0) return bad;
  std::string out(reinterpret_cast<char*>(der), static_cast<std::size_t>(length));
  OPENSSL_free(der);
  return out;
}

std::string hmac(std::string_view key, std::string_view message) {
  std::string out(kHmacBytes, '\0');
  unsigned int length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytesOf(message), message.size(),
       bytesOf(out), &length);
  return out;
}

/// KDFa of Part 1, for one block of SHA-256: counter 1, label, zero, context, number of bits.
std::string kdfa(std::string_view key, std::string_view label, std::string_view context,
                 std::size_t bytes) {
  std::string message = {'\0', '\0', '\0', '\1'};
  message.append(label).push_back('\0');
  const auto bits = static_cast<std::uint32_t>(8 * bytes);
  message.append(context).append({static_cast<char>(bits >> 24), static_cast<char>(bits >> 16),
                                  static_cast<char>(bits >> 8), static_cast<char>(bits)});
  return hmac(key, message).substr(0, bytes);
}

Result<std::string> aesCfb(std::string_view key, std::string_view plain) {
  Handle<EVP_CIPHER_CTX> cipher(EVP_CIPHER_CTX_new());
  const std::array<unsigned char, kAesBytes> zero{};
  std::string out(plain.size(), '\0');
  int length = 0;
  if (EVP_EncryptInit_ex(cipher.get(), EVP_aes_128_cfb128(), nullptr, bytesOf(key), zero.data()) !=
          1 ||
      EVP_EncryptUpdate(cipher.get(), bytesOf(out), &length, bytesOf(plain),
                        static_cast<int>(plain.size())) != 1)
    return fail(ErrorCode::Internal, "AES-CFB failed");
  return out;
}

Result<std::string> oaep(EVP_PKEY* key, std::string_view plain) {
  constexpr std::string_view kLabel{"IDENTITY\0", 9};  // with its zero
  Handle<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new(key, nullptr));
  auto* label = static_cast<unsigned char*>(OPENSSL_memdup(kLabel.data(), kLabel.size()));
  std::size_t length = 0;
  const bool set = EVP_PKEY_encrypt_init(context.get()) == 1 &&
                   EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_OAEP_PADDING) == 1 &&
                   EVP_PKEY_CTX_set_rsa_oaep_md(context.get(), EVP_sha256()) == 1 &&
                   EVP_PKEY_CTX_set_rsa_mgf1_md(context.get(), EVP_sha256()) == 1;
  if (!set || EVP_PKEY_CTX_set0_rsa_oaep_label(context.get(), label,
                                               static_cast<int>(kLabel.size())) != 1) {
    OPENSSL_free(label);
    return fail(ErrorCode::Internal, "RSA-OAEP could not be set up");
  }
  if (EVP_PKEY_encrypt(context.get(), nullptr, &length, bytesOf(plain), plain.size()) != 1)
    return fail(ErrorCode::Internal, "RSA-OAEP failed");
  std::string out(length, '\0');
  if (EVP_PKEY_encrypt(context.get(), bytesOf(out), &length, bytesOf(plain), plain.size()) != 1)
    return fail(ErrorCode::Internal, "RSA-OAEP failed");
  out.resize(length);
  return out;
}

}  // namespace

Result<void> verifyTpmSignature(const TpmPublic& pub, std::string_view bytes,
                                std::string_view signature) {
  TRY(key, keyOf(pub));
  TRY(plain, plainSignature(pub, signature));
  Handle<EVP_MD_CTX> digest(EVP_MD_CTX_new());
  if (EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1)
    return fail(ErrorCode::Internal, "the signature could not be checked");
  if (EVP_DigestVerify(digest.get(), bytesOf(plain), plain.size(), bytesOf(bytes), bytes.size()) !=
      1)
    return fail(ErrorCode::Corrupt, "the TPM's signature does not fit its quote");
  return {};
}

Result<TpmCredential> makeTpmCredential(const TpmPublic& endorsement, std::string_view name,
                                        std::string_view secret) {
  TRY_OK(endorsement.mayBeEndorsement());
  if (secret.size() > kMaxSecretBytes)
    return fail(ErrorCode::InvalidInput, "a credential holds 32 bytes at most");
  TRY(key, keyOf(endorsement));
  const auto seed = randomBytes(kSeedBytes);
  TRY(wrapped, oaep(key.get(), seed));
  TRY(identity, aesCfb(kdfa(seed, "STORAGE", name, kAesBytes), sized(secret)));
  const auto integrity =
      hmac(kdfa(seed, "INTEGRITY", {}, kHmacBytes), identity + std::string(name));
  return TpmCredential{sized(sized(integrity) + identity), sized(wrapped)};
}

Result<void> checkEndorsement(const TpmPublic& endorsement, std::string_view certificate_der,
                              std::string_view roots_pem) {
  const auto* at = bytesOf(certificate_der);
  Handle<X509> certificate(d2i_X509(nullptr, &at, static_cast<long>(certificate_der.size())));
  if (!certificate)
    return fail(ErrorCode::Corrupt, certificate_der.empty()
                                        ? "the TPM holds no certificate of its endorsement key"
                                        : "the TPM's certificate is malformed");
  TRY(key, keyOf(endorsement));
  if (EVP_PKEY_eq(X509_get0_pubkey(certificate.get()), key.get()) != 1)
    return fail(ErrorCode::Denied, "the TPM's certificate is of another endorsement key");
  Handle<X509_STORE> roots(X509_STORE_new());
  for (const auto& root : certificatesOf(roots_pem)) X509_STORE_add_cert(roots.get(), root.get());
  // Makers' own intermediates may be among them. Certificates of EKs have critical extensions of
  // their own, and often no end.
  X509_STORE_set_flags(roots.get(), X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_IGNORE_CRITICAL);
  Handle<X509_STORE_CTX> verification(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(verification.get(), roots.get(), certificate.get(), nullptr) != 1)
    return fail(ErrorCode::Internal, "the certificate could not be checked");
  if (X509_verify_cert(verification.get()) != 1)
    return fail(
        ErrorCode::Denied,
        fmt::format("the TPM's certificate does not lead to a declared root: {}",
                    X509_verify_cert_error_string(X509_STORE_CTX_get_error(verification.get()))));
  return {};
}

}  // namespace muster::io
