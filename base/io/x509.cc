// SPDX-License-Identifier: Apache-2.0
// Certificates: keys and requests, the small authority, self-signed identities. Declared in
// crypto.h.
#include "base/io/certificate_request.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/key_id.h"
#include "base/io/openssl.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <arpa/inet.h>

namespace muster::io {

namespace {

constexpr std::chrono::hours kRootLifetime{24 * 365 * 10};
constexpr std::chrono::hours kBmcLifetime{24 * 365 * 5};
/// Clocks of machines that have just been powered on lag behind.
constexpr std::chrono::hours kBackdate{24};
constexpr int kSerialBytes = 16;

Result<Handle<EVP_PKEY>> makeKey() {
  Handle<EVP_PKEY> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  if (!key) return failCrypto(ErrorCode::Internal, "cannot make a P-256 key");
  return key;
}

Result<Secret> privatePem(EVP_PKEY* key) {
  Handle<BIO> bio(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failCrypto(ErrorCode::Internal, "cannot write the private key");
  }
  return Secret(textOf(bio.get()));
}

Result<Handle<X509>> readCertificate(std::string_view pem) {
  auto bio = bioOf(pem);
  Handle<X509> certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate) return failCrypto(ErrorCode::Corrupt, "the certificate is not readable PEM");
  return certificate;
}

Result<std::string> writeCertificate(X509* certificate) {
  Handle<BIO> bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), certificate) != 1)
    return failCrypto(ErrorCode::Internal, "cannot write the certificate");
  return textOf(bio.get());
}

/// A root also has an organisation: a leaf with the root's very name would count as self-signed.
Handle<X509_NAME> nameOf(std::string_view common_name, bool root = false) {
  constexpr std::string_view kRootOrganisation = "muster certificate authority";
  Handle<X509_NAME> name(X509_NAME_new());
  if (root) {
    X509_NAME_add_entry_by_NID(name.get(), NID_organizationName, MBSTRING_UTF8,
                               bytesOf(kRootOrganisation),
                               static_cast<int>(kRootOrganisation.size()), -1, 0);
  }
  X509_NAME_add_entry_by_NID(name.get(), NID_commonName, MBSTRING_UTF8, bytesOf(common_name),
                             static_cast<int>(common_name.size()), -1, 0);
  return name;
}

/// "DNS:a,IP:10.0.0.1". Only characters that cannot break out of OpenSSL's configuration syntax are
/// let through.
Result<std::string> subjectAltNames(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) {
    const bool clean = !name.empty() &&
                       name.find_first_not_of(
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-:*_") ==
                           std::string::npos;
    if (!clean)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("\"{}\" is neither a host name nor an address", name));
    unsigned char scratch[16];
    const bool address = ::inet_pton(AF_INET, name.c_str(), scratch) == 1 ||
                         ::inet_pton(AF_INET6, name.c_str(), scratch) == 1;
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", address ? "IP" : "DNS", name);
  }
  return out;
}

/// A copy of an algorithm's parameters, as X509_PUBKEY_set0_param takes them; null where there are
/// none.
void* copyOf(int type, const void* value) {
  if (type == V_ASN1_UNDEF || type == V_ASN1_NULL || !value) return nullptr;
  if (type == V_ASN1_OBJECT) return OBJ_dup(static_cast<const ASN1_OBJECT*>(value));
  return ASN1_STRING_dup(static_cast<const ASN1_STRING*>(value));
}

/// The key as the request shows it. X509_set_pubkey would write it and read it again, which is a
/// third of what a certificate costs.
bool takeKey(X509* certificate, X509_REQ* request) {
  X509_ALGOR* algorithm = nullptr;
  const unsigned char* bits = nullptr;
  int size = 0;
  if (X509_PUBKEY_get0_param(nullptr, &bits, &size, &algorithm,
                             X509_REQ_get_X509_PUBKEY(request)) != 1)
    return false;
  const ASN1_OBJECT* name = nullptr;
  int type = V_ASN1_UNDEF;
  const void* value = nullptr;
  X509_ALGOR_get0(&name, &type, &value, algorithm);
  auto* copied_bits =
      static_cast<unsigned char*>(OPENSSL_memdup(bits, static_cast<std::size_t>(size)));
  return copied_bits && X509_PUBKEY_set0_param(X509_get_X509_PUBKEY(certificate), OBJ_dup(name),
                                               type, copyOf(type, value), copied_bits, size) == 1;
}

struct Draft {
  std::string_view common_name;
  EVP_PKEY* subject_key = nullptr;
  X509* issuer = nullptr;  ///< null: self-signed
  EVP_PKEY* issuer_key = nullptr;
  std::chrono::hours lifetime{0};
  std::vector<std::pair<int, std::string>> extensions;
  bool is_root = false;
  X509_REQ* request = nullptr;  ///< instead of subject_key: whose key it is for
};

Result<Handle<X509>> issue(const Draft& draft) {
  Handle<X509> certificate(X509_new());
  X509* c = certificate.get();
  auto serial = randomBytes(kSerialBytes);
  serial[0] = static_cast<char>(
      (serial[0] & 0x7f) |
      0x40);  // positive, and not zero: DER forbids padding, and readers refuse such a certificate
  Handle<X509_NAME> subject = nameOf(draft.common_name, draft.is_root);
  bool ok = X509_set_version(c, 2) == 1;
  ok = ok && ASN1_STRING_set(X509_get_serialNumber(c), serial.data(), kSerialBytes) == 1;
  ok = ok &&
       X509_gmtime_adj(X509_getm_notBefore(c), -std::chrono::seconds(kBackdate).count()) != nullptr;
  ok = ok && X509_gmtime_adj(X509_getm_notAfter(c), std::chrono::seconds(draft.lifetime).count()) !=
                 nullptr;
  ok = ok && X509_set_subject_name(c, subject.get()) == 1;
  ok = ok && X509_set_issuer_name(
                 c, draft.issuer ? X509_get_subject_name(draft.issuer) : subject.get()) == 1;
  ok = ok &&
       (draft.request ? takeKey(c, draft.request) : X509_set_pubkey(c, draft.subject_key) == 1);
  X509V3_CTX context;
  X509V3_set_ctx(&context, draft.issuer ? draft.issuer : c, c, nullptr, nullptr, 0);
  X509V3_set_ctx_nodb(&context);
  for (const auto& [nid, value] : draft.extensions) {
    Handle<X509_EXTENSION> extension(ok ? X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str())
                                        : nullptr);
    ok = extension && X509_add_ext(c, extension.get(), -1) == 1;
  }
  ok = ok && X509_sign(c, draft.issuer_key, EVP_sha256()) > 0;
  if (!ok)
    return failCrypto(ErrorCode::Internal,
                      fmt::format("cannot make the certificate of {}", draft.common_name));
  return certificate;
}

/// X509_REQ_set_pubkey would write the key and read it again, which takes longer than to make it.
bool showKey(X509_REQ* request, EVP_PKEY* key) {
  unsigned char* point = nullptr;
  const auto size = EVP_PKEY_get1_encoded_public_key(key, &point);
  return size > 0 && X509_PUBKEY_set0_param(X509_REQ_get_X509_PUBKEY(request),
                                            OBJ_nid2obj(NID_X9_62_id_ecPublicKey), V_ASN1_OBJECT,
                                            OBJ_nid2obj(NID_X9_62_prime256v1), point,
                                            static_cast<int>(size)) == 1;
}

}  // namespace

Result<KeyAndRequest> makeKeyAndRequest(std::string_view common_name) {
  TRY(key, makeKey());
  Handle<X509_REQ> request(X509_REQ_new());
  auto subject = nameOf(common_name);
  Handle<BIO> bio(BIO_new(BIO_s_mem()));
  const bool ok = X509_REQ_set_subject_name(request.get(), subject.get()) == 1 &&
                  showKey(request.get(), key.get()) &&
                  X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0 &&
                  PEM_write_bio_X509_REQ(bio.get(), request.get()) == 1;
  if (!ok) return failCrypto(ErrorCode::Internal, "cannot make the certificate request");
  TRY(key_pem, privatePem(key.get()));
  return KeyAndRequest{key_pem, textOf(bio.get())};
}

Result<CertificateInfo> describeCertificate(std::string_view pem) {
  TRY(certificate, readCertificate(pem));
  CertificateInfo info;
  char name[256] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name,
                            sizeof name);
  info.common_name = name;
  info.sha256_fingerprint = fingerprintOf(certificate.get());
  std::tm begin{}, end{};
  if (ASN1_TIME_to_tm(X509_get0_notBefore(certificate.get()), &begin) != 1 ||
      ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
    return failCrypto(ErrorCode::Corrupt, "the certificate's times are not readable");
  }
  info.not_before = std::chrono::system_clock::from_time_t(::timegm(&begin));
  info.not_after = std::chrono::system_clock::from_time_t(::timegm(&end));
  return info;
}

Result<std::string> keyIdOf(std::string_view certificate_pem) {
  TRY(certificate, readCertificate(certificate_pem));
  auto key_id = keyIdOf(certificate.get());
  if (key_id.empty())
    return failCrypto(ErrorCode::Corrupt, "the certificate's key is not readable");
  return key_id;
}

struct CertificateAuthority::Root {
  Handle<EVP_PKEY> key;
  Handle<X509> certificate;
};

Result<CertificateAuthority> CertificateAuthority::loadOrCreate(const std::filesystem::path& folder,
                                                                std::string_view common_name) {
  const auto key_file = folder / "ca.key";
  const auto certificate_file = folder / "ca.crt";
  CertificateAuthority ca;
  Secret written_key;
  auto stored_key = readFile(key_file, 1u << 16);
  auto stored_certificate = readFile(certificate_file, 1u << 16);
  for (const auto* stored : {&stored_key, &stored_certificate}) {
    if (!*stored && stored->error().code() != ErrorCode::NotFound)
      return std::unexpected(stored->error());
  }
  // The key is written first: a key without certificate is an interrupted start and gets its
  // certificate now. A certificate without key is damage; making a new root silently would cut off
  // every enrolled node.
  if (stored_certificate && !stored_key) {
    return fail(ErrorCode::Corrupt, fmt::format("{} is there but {} is missing; restore it",
                                                certificate_file.string(), key_file.string()));
  }
  if (!stored_key) {
    TRY_OK(makeDirs(folder, 0700));
    TRY(key, makeKey());
    TRY(key_pem, privatePem(key.get()));
    TRY_OK(writeFileAtomic(key_file, key_pem.reveal(), 0600));
    written_key = std::move(key_pem);
  } else {
    written_key = Secret(std::move(*stored_key));
  }
  auto key = readPrivateKey(written_key);
  if (!key) return std::unexpected(std::move(key).error().within(key_file.string()));
  if (!stored_certificate) {
    TRY(root, issue({common_name,
                     key->get(),
                     nullptr,
                     key->get(),
                     kRootLifetime,
                     {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                      {NID_key_usage, "critical,keyCertSign,cRLSign"},
                      {NID_subject_key_identifier, "hash"}},
                     true}));
    TRY(pem, writeCertificate(root.get()));
    TRY_OK(writeFileAtomic(certificate_file, pem, 0600));
    ca.certificate_pem_ = std::move(pem);
  } else {
    ca.certificate_pem_ = std::move(*stored_certificate);
  }
  auto root = readCertificate(ca.certificate_pem_);
  if (!root) return std::unexpected(std::move(root).error().within(certificate_file.string()));
  if (X509_check_private_key(root->get(), key->get()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::Corrupt, fmt::format("{} does not belong to {}", key_file.string(),
                                                certificate_file.string()));
  }
  ca.fingerprint_ = fingerprintOf(root->get());
  ca.root_ = std::make_shared<const Root>(Root{std::move(*key), std::move(*root)});
  return ca;
}

namespace {

using Extensions = decltype(Draft::extensions);

Extensions serverExtensions(std::string key_usage, const std::string& alt_names) {
  Extensions out{{NID_basic_constraints, "critical,CA:FALSE"},
                 {NID_key_usage, std::move(key_usage)},
                 {NID_ext_key_usage, "serverAuth"},
                 {NID_authority_key_identifier, "keyid:always"}};
  if (!alt_names.empty()) out.emplace_back(NID_subject_alt_name, alt_names);
  return out;
}

}  // namespace

Result<TlsIdentity> CertificateAuthority::issueServer(std::string_view common_name,
                                                      const std::vector<std::string>& names,
                                                      std::chrono::hours lifetime) const {
  TRY(key, makeKey());
  TRY(alt_names, subjectAltNames(names));
  Draft draft{
      common_name,      key.get(), root_->certificate.get(),
      root_->key.get(), lifetime,  serverExtensions("critical,digitalSignature", alt_names)};
  TRY(leaf, issue(draft));
  TRY(leaf_pem, writeCertificate(leaf.get()));
  TRY(key_pem, privatePem(key.get()));
  return TlsIdentity{key_pem,
                     leaf_pem + certificate_pem_};  // leaf + root: nodes pin the root's fingerprint
}

Result<std::string> CertificateAuthority::signServer(std::string_view csr_pem,
                                                     std::string_view common_name,
                                                     const std::vector<std::string>& names,
                                                     std::chrono::hours lifetime) const {
  TRY(request, acceptRequest(csr_pem, RequestPolicy::BmcServer));
  TRY(alt_names, subjectAltNames(names));
  Draft draft{common_name,
              nullptr,
              root_->certificate.get(),
              root_->key.get(),
              lifetime,
              serverExtensions("critical,digitalSignature,keyEncipherment", alt_names),
              false,
              request.get()};
  TRY(leaf, issue(draft));
  TRY(leaf_pem, writeCertificate(leaf.get()));
  return leaf_pem + certificate_pem_;
}

Result<std::string> CertificateAuthority::signClient(std::string_view csr_pem,
                                                     std::string_view common_name,
                                                     std::chrono::hours lifetime) const {
  TRY(request, acceptRequest(csr_pem, RequestPolicy::Client));
  TRY(leaf, issue({common_name,
                   nullptr,
                   root_->certificate.get(),
                   root_->key.get(),
                   lifetime,
                   {{NID_basic_constraints, "critical,CA:FALSE"},
                    {NID_key_usage, "critical,digitalSignature"},
                    {NID_ext_key_usage, "clientAuth"},
                    {NID_authority_key_identifier, "keyid:always"}},
                   false,
                   request.get()}));
  return writeCertificate(leaf.get());
}

Result<TlsIdentity> selfSigned(std::string_view common_name,
                               const std::vector<std::string>& names) {
  TRY(key, makeKey());
  TRY(alt_names, subjectAltNames(names));
  Draft draft{common_name, key.get(),    nullptr,
              key.get(),   kBmcLifetime, {{NID_basic_constraints, "critical,CA:FALSE"}}};
  if (!alt_names.empty()) draft.extensions.emplace_back(NID_subject_alt_name, alt_names);
  TRY(certificate, issue(draft));
  TRY(pem, writeCertificate(certificate.get()));
  TRY(key_pem, privatePem(key.get()));
  return TlsIdentity{key_pem, pem};
}

}  // namespace muster::io
