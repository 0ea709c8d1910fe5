// SPDX-License-Identifier: Apache-2.0
#include "base/io/openssl.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

namespace muster::io {

std::string textOf(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string lastOpensslError() {
  char text[256] = "unknown OpenSSL error";
  if (const auto code = ERR_peek_last_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}

std::unexpected<Error> failCrypto(ErrorCode code, std::string_view what) {
  return fail(code, fmt::format("{}: {}", what, lastOpensslError()));
}

Result<Handle<EVP_PKEY>> readPrivateKey(const Secret& pem) {
  auto bio = bioOf(pem.reveal());
  Handle<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (!key) return failCrypto(ErrorCode::Corrupt, "the private key is not readable PEM");
  return key;
}

std::vector<Handle<X509>> certificatesOf(std::string_view pem) {
  auto bio = bioOf(pem);
  std::vector<Handle<X509>> out;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))
    out.emplace_back(certificate);
  ERR_clear_error();
  return out;
}

std::string fingerprintOf(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  X509_digest(certificate, EVP_sha256(), digest, &size);
  return toHex({reinterpret_cast<const char*>(digest), size});
}

std::string keyIdOf(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_pubkey_digest(certificate, EVP_sha256(), digest, &size) != 1) return {};
  return toHex({reinterpret_cast<const char*>(digest), size});
}

}  // namespace muster::io
