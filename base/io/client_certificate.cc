// SPDX-License-Identifier: Apache-2.0
#include "base/io/client_certificate.h"

#include "base/io/openssl.h"
#include "base/printable.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <ctime>

namespace muster::io {
namespace {

constexpr std::size_t kMaxChainCertificates = 8;
constexpr std::size_t kMaxNameBytes = 256;
constexpr int kMaxNames = 64;      ///< of a kind
constexpr int kSecurityLevel = 2;  ///< 112 bits: no SHA-1, no RSA below 2,048
constexpr int kMaxLists = 1'000;

struct FreeMore {
  void operator()(X509_CRL* p) const { X509_CRL_free(p); }
  void operator()(GENERAL_NAMES* p) const { GENERAL_NAMES_free(p); }
  void operator()(STACK_OF(X509) * p) const { sk_X509_free(p); }
};

bool isName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

std::string utf8Of(const ASN1_STRING* value) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, value);
  if (size < 0) {
    ERR_clear_error();
    return {};
  }
  std::string out(reinterpret_cast<char*>(utf8), static_cast<std::size_t>(size));
  OPENSSL_free(utf8);
  return isName(out) ? out : std::string();
}

std::vector<std::string> subjectWords(const X509* certificate, int kind) {
  std::vector<std::string> out;
  auto* name = X509_get_subject_name(certificate);
  for (int at = -1; (at = X509_NAME_get_index_by_NID(name, kind, at)) >= 0;)
    if (static_cast<int>(out.size()) < kMaxNames)
      out.push_back(utf8Of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at))));
  return out;
}

std::string subjectLine(const X509* certificate) {
  const Handle<BIO> out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate), 0,
                     XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  return printable(textOf(out.get())).substr(0, kMaxNameBytes);
}

void addAlternativeNames(const X509* certificate, CertificateNames& out) {
  const std::unique_ptr<GENERAL_NAMES, FreeMore> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < std::min(sk_GENERAL_NAME_num(names.get()), kMaxNames); ++i) {
    int kind = 0;
    const auto* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &kind);
    auto* list = kind == GEN_EMAIL ? &out.emails
                 : kind == GEN_DNS ? &out.dns
                 : kind == GEN_URI ? &out.uris
                                   : nullptr;
    if (!list) continue;
    if (auto text = utf8Of(static_cast<const ASN1_STRING*>(value)); !text.empty())
      list->push_back(std::move(text));
  }
  ERR_clear_error();
}

WallTime timeOf(const ASN1_TIME* time) {
  std::tm broken{};
  if (ASN1_TIME_to_tm(time, &broken) != 1) return {};
  return WallTime(std::chrono::seconds(::timegm(&broken)));
}

CertificateNames namesOf(const X509* certificate) {
  CertificateNames out;
  out.subject = subjectLine(certificate);
  const auto common = subjectWords(certificate, NID_commonName);
  if (common.size() == 1) out.common_name = common.front();
  const auto words = [&](int kind) {
    auto found = subjectWords(certificate, kind);
    std::erase(found, std::string());
    return found;
  };
  out.organizations = words(NID_organizationName);
  out.units = words(NID_organizationalUnitName);
  addAlternativeNames(certificate, out);
  out.not_after = timeOf(X509_get0_notAfter(certificate));
  out.key_id = keyIdOf(certificate);
  return out;
}

CertificateFault faultOf(int error) {
  switch (error) {
    case X509_V_OK:
      return CertificateFault::None;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return CertificateFault::Expired;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return CertificateFault::NotYetValid;
    case X509_V_ERR_CERT_REVOKED:
      return CertificateFault::Revoked;
    case X509_V_ERR_INVALID_PURPOSE:
      return CertificateFault::OtherPurpose;
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
    case X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE:
    case X509_V_ERR_CRL_SIGNATURE_FAILURE:
    case X509_V_ERR_CRL_NOT_YET_VALID:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD:
    case X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD:
    case X509_V_ERR_KEYUSAGE_NO_CRL_SIGN:
    case X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION:
    case X509_V_ERR_DIFFERENT_CRL_SCOPE:
    case X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
      return CertificateFault::RevocationUnknown;
    default:
      return CertificateFault::Foreign;
  }
}

/// Said outright: OpenSSL takes a certificate without that extension for any purpose.
bool isForClients(X509* leaf) {
  return (X509_get_extension_flags(leaf) & EXFLAG_XKUSAGE) != 0 &&
         (X509_get_extended_key_usage(leaf) & XKU_SSL_CLIENT) != 0;
}

/// Whether the authority that the file names is revoked, its file decides: above one that is
/// believed by itself there may be nobody that is known here, and then a list of whoever is above,
/// which lies in the same file, cannot be verified. One that says "revoked" is believed all the
/// same.
int needNoListOfTheAnchor(int fine, X509_STORE_CTX* context) {
  const int error = X509_STORE_CTX_get_error(context);
  const auto* chain = X509_STORE_CTX_get0_chain(context);
  const bool is_anchor = X509_STORE_CTX_get_error_depth(context) > 0 &&
                         X509_STORE_CTX_get_error_depth(context) == sk_X509_num(chain) - 1;
  if (fine == 1 || faultOf(error) != CertificateFault::RevocationUnknown || !is_anchor) return fine;
  X509_STORE_CTX_set_error(context, X509_V_OK);
  return 1;
}

Handle<X509> readDer(const std::string& der) {
  const auto* at = bytesOf(std::string_view(der));
  Handle<X509> out(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  return out;
}

}  // namespace

Result<ClientTrust> ClientTrust::make(std::string_view ca_pem,
                                      std::optional<std::string_view> crl_pem) {
  ClientTrust out;
  Handle<X509_STORE> store(X509_STORE_new());
  for (const auto& authority : certificatesOf(ca_pem)) {
    X509_STORE_add_cert(store.get(), authority.get());
    out.fingerprints_.push_back(fingerprintOf(authority.get()));
  }
  if (out.fingerprints_.empty())
    return fail(ErrorCode::InvalidInput, "there is no certificate in it (PEM: BEGIN CERTIFICATE)");
  if (crl_pem) {
    out.checks_revocation_ = true;
    const auto source = bioOf(*crl_pem);
    int lists = 0;
    while (lists < kMaxLists) {
      const std::unique_ptr<X509_CRL, FreeMore> list(
          PEM_read_bio_X509_CRL(source.get(), nullptr, nullptr, nullptr));
      if (!list) break;
      X509_STORE_add_crl(store.get(), list.get());
      ++lists;
    }
    ERR_clear_error();
    if (lists == 0)
      return fail(ErrorCode::InvalidInput,
                  "there is no revocation list in it (PEM: BEGIN X509 CRL; of a list in DER: "
                  "openssl crl -inform DER -in LIST -out FILE)");
  }
  out.store_ = {store.release(),
                [](void* owned) { X509_STORE_free(static_cast<X509_STORE*>(owned)); }};
  return out;
}

EvaluatedCertificate ClientTrust::evaluate(const ShownCertificate& shown, WallTime now) const {
  EvaluatedCertificate out;
  std::vector<Handle<X509>> chain;
  for (const auto& der : shown.chain_der) {
    auto read = readDer(der);
    if (!read || chain.size() >= kMaxChainCertificates) {
      out.fault = CertificateFault::Unreadable;
      out.why = read ? "its chain is too long" : "it is no certificate";
      return out;
    }
    chain.push_back(std::move(read));
  }
  if (chain.empty()) return {{}, CertificateFault::Unreadable, "there is none"};
  out.names = namesOf(chain.front().get());
  const std::unique_ptr<STACK_OF(X509), FreeMore> rest(sk_X509_new_null());
  for (std::size_t i = 1; i < chain.size(); ++i) sk_X509_push(rest.get(), chain[i].get());
  const Handle<X509_STORE_CTX> context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), static_cast<X509_STORE*>(store_.get()),
                          chain.front().get(), rest.get()) != 1) {
    out.fault = CertificateFault::Unreadable;
    out.why = lastOpensslError();
    return out;
  }
  auto* param = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_CLIENT);
  X509_VERIFY_PARAM_set_auth_level(param, kSecurityLevel);
  X509_VERIFY_PARAM_set_time(
      param, std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count());
  X509_VERIFY_PARAM_set_flags(
      param, X509_V_FLAG_PARTIAL_CHAIN |
                 (checks_revocation_ ? X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL : 0UL));
  X509_STORE_CTX_set_verify_cb(context.get(), needNoListOfTheAnchor);
  const bool fine = X509_verify_cert(context.get()) == 1;
  int error = X509_STORE_CTX_get_error(context.get());
  if (!fine && error == X509_V_OK) error = X509_V_ERR_UNSPECIFIED;
  if (fine && error == X509_V_OK && !isForClients(chain.front().get()))
    error = X509_V_ERR_INVALID_PURPOSE;
  ERR_clear_error();
  out.fault = faultOf(error);
  out.why = X509_verify_cert_error_string(error);
  return out;
}

}  // namespace muster::io
