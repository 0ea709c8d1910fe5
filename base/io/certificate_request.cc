// SPDX-License-Identifier: Apache-2.0
#include "base/io/certificate_request.h"

#include "base/io/trusted_keys.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <algorithm>

namespace muster::io {

namespace {

constexpr unsigned long kRsaExponent = 65537;

struct FreeExtensions {
  void operator()(STACK_OF(X509_EXTENSION) * all) const {
    sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
  }
};
using Extensions = std::unique_ptr<STACK_OF(X509_EXTENSION), FreeExtensions>;

std::unexpected<Error> denied(std::string why) {
  ERR_clear_error();
  return fail(ErrorCode::Denied, "the certificate request is refused: " + std::move(why));
}

/// By the algorithm as it is written: what OpenSSL makes of explicit curve parameters or of
/// RSA-PSS's restrictions does not count.
Result<void> checkKey(X509_REQ* request, EVP_PKEY* key, RequestPolicy policy) {
  X509_ALGOR* algorithm = nullptr;
  X509_PUBKEY_get0_param(nullptr, nullptr, nullptr, &algorithm, X509_REQ_get_X509_PUBKEY(request));
  const ASN1_OBJECT* name = nullptr;
  int type = V_ASN1_UNDEF;
  const void* value = nullptr;
  X509_ALGOR_get0(&name, &type, &value, algorithm);
  switch (OBJ_obj2nid(name)) {
    case NID_rsaEncryption: {
      const int bits = EVP_PKEY_get_bits(key);
      const int least = policy == RequestPolicy::Client ? kMinClientRsaBits : kMinBmcRsaBits;
      if (bits < least || bits > kMaxRsaBits)
        return denied(
            fmt::format("its RSA key has {} bits; {} to {} are allowed", bits, least, kMaxRsaBits));
      BIGNUM* exponent = nullptr;
      EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent);
      const Handle<BIGNUM> owned(exponent);
      if (!exponent || BN_is_word(exponent, kRsaExponent) != 1)
        return denied("the public exponent of its RSA key is not 65537");
      return {};
    }
    case NID_X9_62_id_ecPublicKey: {
      const int curve =
          type == V_ASN1_OBJECT ? OBJ_obj2nid(static_cast<const ASN1_OBJECT*>(value)) : NID_undef;
      if (curve == NID_X9_62_prime256v1 || curve == NID_secp384r1) return {};
      return denied("its key is not on the curve P-256 or P-384");
    }
    case NID_ED25519:
      return {};
    default:
      return denied("its key is none of RSA, P-256, P-384, Ed25519");
  }
}

Result<void> checkSignatureAlgorithm(X509_REQ* request) {
  constexpr int kAllowed[] = {NID_sha256WithRSAEncryption,
                              NID_sha384WithRSAEncryption,
                              NID_sha512WithRSAEncryption,
                              NID_ecdsa_with_SHA256,
                              NID_ecdsa_with_SHA384,
                              NID_ecdsa_with_SHA512,
                              NID_ED25519};
  const int used = X509_REQ_get_signature_nid(request);
  if (std::find(std::begin(kAllowed), std::end(kAllowed), used) != std::end(kAllowed)) return {};
  return denied("it is signed with neither SHA-256, SHA-384, SHA-512 nor Ed25519");
}

Result<void> checkExtensions(X509_REQ* request) {
  const Extensions extensions(X509_REQ_get_extensions(request));
  const int count = sk_X509_EXTENSION_num(extensions.get());
  if (count > kMaxRequestExtensions || X509_REQ_get_attr_count(request) > kMaxRequestExtensions)
    return denied(
        fmt::format("it has more than {} extensions or attributes", kMaxRequestExtensions));
  int critical = 0;
  auto* constraints = static_cast<BASIC_CONSTRAINTS*>(
      X509V3_get_d2i(extensions.get(), NID_basic_constraints, &critical, nullptr));
  const bool authority = constraints && constraints->ca != 0;
  BASIC_CONSTRAINTS_free(constraints);
  if (authority) return denied("it asks to be a certificate authority");
  if (!constraints && critical != -1) return denied("its basic constraints are not readable");
  return {};
}

}  // namespace

namespace {

/// OpenSSL reads the first block that it finds, and looks at nothing around it.
Result<void> requireOneBlock(std::string_view pem) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto block = firstPemBlock(pem);
  const auto before = static_cast<std::size_t>(block.data() - pem.data());
  if (!block.empty() && pem.substr(0, before).find_first_not_of(kBlank) == pem.npos &&
      pem.substr(before + block.size()).find_first_not_of(kBlank) == pem.npos)
    return {};
  return fail(ErrorCode::InvalidInput,
              "the certificate request is not one PEM block alone: nothing may stand before "
              "-----BEGIN or behind the last -----");
}

}  // namespace

Result<Handle<X509_REQ>> acceptRequest(std::string_view csr_pem, RequestPolicy policy) {
  if (csr_pem.size() > kMaxRequestBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("the certificate request has {} bytes; at most {} are read",
                            csr_pem.size(), kMaxRequestBytes));
  auto bio = bioOf(csr_pem);
  Handle<X509_REQ> request(PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr));
  if (!request)
    return failCrypto(ErrorCode::InvalidInput, "the certificate request is not readable PEM");
  TRY_OK(requireOneBlock(csr_pem));
  EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
  if (!key)
    return failCrypto(ErrorCode::Denied, "the certificate request has no key that can be read");
  TRY_OK(checkKey(request.get(), key, policy));
  TRY_OK(checkSignatureAlgorithm(request.get()));
  TRY_OK(checkExtensions(request.get()));
  if (X509_REQ_verify(request.get(), key) != 1)
    return failCrypto(ErrorCode::Denied, "the certificate request is not signed by its own key");
  return request;
}

}  // namespace muster::io
