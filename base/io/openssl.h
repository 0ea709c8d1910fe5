// SPDX-License-Identifier: Apache-2.0
// OpenSSL's handles, owned, and the few things that every user of it in this folder needs. Not for
// others: they have crypto.h.
#pragma once

#include "base/io/crypto.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <map>
#include <mutex>

namespace muster::io {

struct Free {
  void operator()(BIGNUM* p) const { BN_free(p); }
  void operator()(BIO* p) const { BIO_free_all(p); }
  void operator()(ECDSA_SIG* p) const { ECDSA_SIG_free(p); }
  void operator()(EVP_CIPHER_CTX* p) const { EVP_CIPHER_CTX_free(p); }
  void operator()(EVP_MD_CTX* p) const { EVP_MD_CTX_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(EVP_PKEY_CTX* p) const { EVP_PKEY_CTX_free(p); }
  void operator()(OSSL_PARAM* p) const { OSSL_PARAM_free(p); }
  void operator()(OSSL_PARAM_BLD* p) const { OSSL_PARAM_BLD_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
  void operator()(X509_NAME* p) const { X509_NAME_free(p); }
  void operator()(X509_REQ* p) const { X509_REQ_free(p); }
  void operator()(X509_STORE* p) const { X509_STORE_free(p); }
  void operator()(X509_STORE_CTX* p) const { X509_STORE_CTX_free(p); }
};
template <class T>
using Handle = std::unique_ptr<T, Free>;

inline const unsigned char* bytesOf(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
inline unsigned char* bytesOf(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

inline Handle<BIO> bioOf(std::string_view text) {
  return Handle<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}
std::string textOf(BIO* bio);

/// What was read last, by the hash of its PEM; a few at a time. OpenSSL 3 takes longer to read a
/// key than to sign with it, and a process has few.
template <class Value>
class Kept {
 public:
  /// `read` answers a Result<Value>.
  template <class Read>
  Result<Value> get(std::string_view pem, Read read) {
    const auto name = sha256(pem);
    std::lock_guard lock(guard_);
    if (const auto known = kept_.find(name); known != kept_.end()) return known->second;
    TRY(made, read());
    if (kept_.size() >= kMost) kept_.clear();
    return kept_[name] = std::move(made);
  }

 private:
  static constexpr std::size_t kMost = 16;
  std::mutex guard_;
  std::map<std::string, Value> kept_;
};

/// What OpenSSL complains of last. Its queue is empty afterwards, so that the complaint never shows
/// up in another operation's.
std::string lastOpensslError();
std::unexpected<Error> failCrypto(ErrorCode code, std::string_view what);

Result<Handle<EVP_PKEY>> readPrivateKey(const Secret& pem);
/// All certificates of a PEM text, in order; what follows the last readable one is left out.
std::vector<Handle<X509>> certificatesOf(std::string_view pem);
/// SHA-256 of the DER, lower-case hex.
std::string fingerprintOf(const X509* certificate);
/// SHA-256 of the public key, lower-case hex; "": it is not readable.
std::string keyIdOf(const X509* certificate);

}  // namespace muster::io
