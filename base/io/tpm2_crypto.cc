// What a verifier computes for TPM 2.0, with OpenSSL: signatures, credentials, certificates of endorsement keys.
#include "base/io/tpm2.h"

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509_vfy.h>

#include <array>

namespace muster::io {
namespace {

constexpr std::uint16_t kRsaSsa = 0x0014, kEcdsa = 0x0018, kSha256 = 0x000b;
constexpr std::size_t kSeedBytes = 32, kHmacBytes = 32, kAesBytes = 16, kMaxSecretBytes = 32;

template <class T, void (*Free)(T*)>
struct Freed {
  void operator()(T* thing) const { Free(thing); }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Freed<EVP_PKEY_CTX, EVP_PKEY_CTX_free>>;
using Digest = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX, EVP_MD_CTX_free>>;
using Cipher = std::unique_ptr<EVP_CIPHER_CTX, Freed<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<BIGNUM, BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM, OSSL_PARAM_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Roots = std::unique_ptr<X509_STORE, Freed<X509_STORE, X509_STORE_free>>;
using Verification = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX, X509_STORE_CTX_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO, BIO_free_all>>;

const unsigned char* bytesOf(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* bytesOf(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

std::string sized(std::string_view bytes) {
  std::string out = {static_cast<char>(bytes.size() >> 8), static_cast<char>(bytes.size())};
  return out.append(bytes);
}

Result<Key> keyOf(const TpmPublic& pub) {
  Builder builder(OSSL_PARAM_BLD_new());
  Number modulus, exponent;
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
    OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size());
  }
  Params params(OSSL_PARAM_BLD_to_param(builder.get()));
  KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, pub.rsa ? "RSA" : "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 || EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1)
    return fail(ErrorCode::Corrupt, "the TPM's public key is no key");  // also a point that is not on the curve
  return Key(key);
}

/// TPMT_SIGNATURE → what OpenSSL takes.
Result<std::string> plainSignature(const TpmPublic& key, std::string_view signature) {
  const auto bad = fail(ErrorCode::Corrupt, "the TPM's signature is malformed, or of an algorithm that is not supported");
  const auto number = [&](std::size_t at) { return static_cast<std::uint16_t>(static_cast<unsigned char>(signature[at]) << 8 | static_cast<unsigned char>(signature[at + 1])); };
  if (signature.size() < 6 || signature.size() > kTpmMaxBytes || number(0) != (key.rsa ? kRsaSsa : kEcdsa) || number(2) != kSha256) return bad;
  const std::size_t first = number(4);
  if (6 + first > signature.size()) return bad;
  const auto r = signature.substr(6, first);
  if (key.rsa) return 6 + first == signature.size() ? Result<std::string>(std::string(r)) : bad;
  if (8 + first > signature.size()) return bad;
  const auto s = signature.substr(8 + first);
  if (number(6 + first) != s.size()) return bad;
  std::unique_ptr<ECDSA_SIG, Freed<ECDSA_SIG, ECDSA_SIG_free>> pair(ECDSA_SIG_new());
  ECDSA_SIG_set0(pair.get(), BN_bin2bn(bytesOf(r), static_cast<int>(r.size()), nullptr), BN_bin2bn(bytesOf(s), static_cast<int>(s.size()), nullptr));
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
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytesOf(message), message.size(), bytesOf(out), &length);
  return out;
}

/// KDFa of Part 1, for one block of SHA-256: counter 1, label, zero, context, number of bits.
std::string kdfa(std::string_view key, std::string_view label, std::string_view context, std::size_t bytes) {
  std::string message = {'\0', '\0', '\0', '\1'};
  message.append(label).push_back('\0');
  const auto bits = static_cast<std::uint32_t>(8 * bytes);
  message.append(context).append({static_cast<char>(bits >> 24), static_cast<char>(bits >> 16), static_cast<char>(bits >> 8), static_cast<char>(bits)});
  return hmac(key, message).substr(0, bytes);
}

Result<std::string> aesCfb(std::string_view key, std::string_view plain) {
  Cipher cipher(EVP_CIPHER_CTX_new());
  const std::array<unsigned char, kAesBytes> zero{};
  std::string out(plain.size(), '\0');
  int length = 0;
  if (EVP_EncryptInit_ex(cipher.get(), EVP_aes_128_cfb128(), nullptr, bytesOf(key), zero.data()) != 1 ||
      EVP_EncryptUpdate(cipher.get(), bytesOf(out), &length, bytesOf(plain), static_cast<int>(plain.size())) != 1)
    return fail(ErrorCode::Internal, "AES-CFB failed");
  return out;
}

Result<std::string> oaep(EVP_PKEY* key, std::string_view plain) {
  constexpr std::string_view kLabel{"IDENTITY\0", 9};  // with its zero
  KeyContext context(EVP_PKEY_CTX_new(key, nullptr));
  auto* label = static_cast<unsigned char*>(OPENSSL_memdup(kLabel.data(), kLabel.size()));
  std::size_t length = 0;
  const bool set = EVP_PKEY_encrypt_init(context.get()) == 1 && EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_OAEP_PADDING) == 1 &&
                   EVP_PKEY_CTX_set_rsa_oaep_md(context.get(), EVP_sha256()) == 1 && EVP_PKEY_CTX_set_rsa_mgf1_md(context.get(), EVP_sha256()) == 1;
  if (!set || EVP_PKEY_CTX_set0_rsa_oaep_label(context.get(), label, static_cast<int>(kLabel.size())) != 1) {
    OPENSSL_free(label);
    return fail(ErrorCode::Internal, "RSA-OAEP could not be set up");
  }
  if (EVP_PKEY_encrypt(context.get(), nullptr, &length, bytesOf(plain), plain.size()) != 1) return fail(ErrorCode::Internal, "RSA-OAEP failed");
  std::string out(length, '\0');
  if (EVP_PKEY_encrypt(context.get(), bytesOf(out), &length, bytesOf(plain), plain.size()) != 1) return fail(ErrorCode::Internal, "RSA-OAEP failed");
  out.resize(length);
  return out;
}

}  // namespace

Result<void> verifyTpmSignature(const TpmPublic& pub, std::string_view bytes, std::string_view signature) {
  TRY(key, keyOf(pub));
  TRY(plain, plainSignature(pub, signature));
  Digest digest(EVP_MD_CTX_new());
  if (EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1) return fail(ErrorCode::Internal, "the signature could not be checked");
  if (EVP_DigestVerify(digest.get(), bytesOf(plain), plain.size(), bytesOf(bytes), bytes.size()) != 1)
    return fail(ErrorCode::Corrupt, "the TPM's signature does not fit its quote");
  return {};
}

Result<TpmCredential> makeTpmCredential(const TpmPublic& endorsement, std::string_view name, std::string_view secret) {
  TRY_OK(endorsement.mayBeEndorsement());
  if (secret.size() > kMaxSecretBytes) return fail(ErrorCode::InvalidInput, "a credential holds 32 bytes at most");
  TRY(key, keyOf(endorsement));
  std::string seed(kSeedBytes, '\0');
  if (RAND_bytes(bytesOf(seed), static_cast<int>(seed.size())) != 1) return fail(ErrorCode::Internal, "no random bytes");
  TRY(wrapped, oaep(key.get(), seed));
  TRY(identity, aesCfb(kdfa(seed, "STORAGE", name, kAesBytes), sized(secret)));
  const auto integrity = hmac(kdfa(seed, "INTEGRITY", {}, kHmacBytes), identity + std::string(name));
  return TpmCredential{sized(sized(integrity) + identity), sized(wrapped)};
}

Result<void> checkEndorsement(const TpmPublic& endorsement, std::string_view certificate_der, std::string_view roots_pem) {
  const auto* at = bytesOf(certificate_der);
  Certificate certificate(d2i_X509(nullptr, &at, static_cast<long>(certificate_der.size())));
  if (!certificate) return fail(ErrorCode::Corrupt, certificate_der.empty() ? "the TPM holds no certificate of its endorsement key" : "the TPM's certificate is malformed");
  TRY(key, keyOf(endorsement));
  if (EVP_PKEY_eq(X509_get0_pubkey(certificate.get()), key.get()) != 1) return fail(ErrorCode::Denied, "the TPM's certificate is of another endorsement key");
  Roots roots(X509_STORE_new());
  Memory pem(BIO_new_mem_buf(roots_pem.data(), static_cast<int>(roots_pem.size())));
  while (Certificate root{PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr)}) X509_STORE_add_cert(roots.get(), root.get());
  // Makers' own intermediates may be among them. Certificates of EKs have critical extensions of their own, and often no end.
  X509_STORE_set_flags(roots.get(), X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_IGNORE_CRITICAL);
  Verification verification(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(verification.get(), roots.get(), certificate.get(), nullptr) != 1) return fail(ErrorCode::Internal, "the certificate could not be checked");
  if (X509_verify_cert(verification.get()) != 1)
    return fail(ErrorCode::Denied, fmt::format("the TPM's certificate does not lead to a declared root: {}", X509_verify_cert_error_string(X509_STORE_CTX_get_error(verification.get()))));
  return {};
}

}  // namespace muster::io
