// SPDX-License-Identifier: Apache-2.0
// TLS settings and the decision whether a server is who it must be.
#include "base/io/client_certificate.h"
#include "base/io/http_stream.h"
#include "base/io/openssl.h"
#include "base/io/server_chain.h"
#include "base/io/server_tls.h"
#include "base/io/tls_sessions.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <arpa/inet.h>

namespace muster::io {

namespace {

/// Of TLS 1.2; those of 1.3 are all as good. BMCs as servers choose their own.
constexpr const char* kServerCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

int handshakeIndex() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

bool isAddress(const std::string& host) {
  unsigned char scratch[16];
  return ::inet_pton(AF_INET, host.c_str(), scratch) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), scratch) == 1;
}

/// Extended key usage, said outright: OpenSSL takes a certificate without that extension for any
/// purpose.
bool isMadeFor(X509* leaf, std::uint32_t usage) {
  return (X509_get_extension_flags(leaf) & EXFLAG_XKUSAGE) != 0 &&
         (X509_get_extended_key_usage(leaf) & usage) != 0;
}

/// Neither end begins a second handshake in a connection: nobody here needs it, and a client could
/// make the server work for nothing.
void setCommonOptions(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}

/// The chain must lead to one of `roots`, be made for servers, and name the host. Answers the
/// refusal; empty: fine.
std::string verifyChain(X509* leaf, STACK_OF(X509) * chain, const std::vector<X509*>& roots,
                        const std::string& host) {
  Handle<X509_STORE> store(X509_STORE_new());
  for (X509* root : roots) X509_STORE_add_cert(store.get(), root);
  Handle<X509_STORE_CTX> context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store.get(), leaf, chain) != 1) return lastOpensslError();
  auto* param = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER);
  if (isAddress(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(param, host.c_str(), host.size());
  }
  const bool fine = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (fine && !isMadeFor(leaf, XKU_SSL_SERVER))
    return "its certificate is not made for servers (extended key usage serverAuth is missing)";
  if (fine) return {};
  const int error = X509_STORE_CTX_get_error(context.get());
  std::string why = X509_verify_cert_error_string(error);
  if (error == X509_V_ERR_CERT_NOT_YET_VALID || error == X509_V_ERR_CERT_HAS_EXPIRED)
    why += "; is the clock of this machine right?";
  return why;
}

std::string refusalOf(const TlsTrust& trust, const std::vector<std::shared_ptr<void>>& owned,
                      X509* leaf, STACK_OF(X509) * chain, const Handshake& handshake) {
  const auto& pin = handshake.pin;
  const auto& host = handshake.host;
  if (trust.accept_first && pin.empty()) return {};
  if (!pin.empty() && !trust.pin_is_root) {
    if (handshake.fingerprint == pin) return {};
    return fmt::format("its certificate {} is not the pinned {}", handshake.fingerprint, pin);
  }
  if (!pin.empty()) {
    for (int i = 0; i < sk_X509_num(chain); ++i) {
      X509* candidate = sk_X509_value(chain, i);
      if (fingerprintOf(candidate) == pin) return verifyChain(leaf, chain, {candidate}, host);
    }
    return fmt::format("it does not present the pinned root {}", pin);
  }
  if (owned.empty()) return "no certificate authority and no pin is configured for it";
  std::vector<X509*> roots;
  for (const auto& root : owned) roots.push_back(static_cast<X509*>(root.get()));
  return verifyChain(leaf, chain, roots, host);
}

int verifyCallback(X509_STORE_CTX* store_context, void*) {
  auto* ssl = static_cast<SSL*>(
      X509_STORE_CTX_get_ex_data(store_context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* handshake = static_cast<Handshake*>(SSL_get_ex_data(ssl, handshakeIndex()));
  return handshake && handshake->client && handshake->client->accepts(store_context, *handshake)
             ? 1
             : 0;
}

/// Making one costs as much as several handshakes; what is trusted is not in it but in the
/// handshake, and so is who the client is.
std::shared_ptr<asio::ssl::context> makeClientContext() {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  setCommonOptions(context->native_handle());
  context->set_verify_mode(asio::ssl::verify_peer);
  SSL_CTX_set_cert_verify_callback(context->native_handle(), verifyCallback, nullptr);
  TlsSessions::collect(context->native_handle());
  return context;
}

template <class T>
std::shared_ptr<void> shared(Handle<T> handle) {
  return {handle.release(), [](void* owned) { Free()(static_cast<T*>(owned)); }};
}

using Roots = std::vector<std::shared_ptr<void>>;

/// A process trusts few authorities, in very many clients. One that cannot be read is none.
Roots rootsOf(const std::string& ca_pem) {
  static Kept<Roots> kept;
  return *kept.get(ca_pem, [&]() -> Result<Roots> {
    Roots roots;
    for (auto& root : certificatesOf(ca_pem)) roots.push_back(shared(std::move(root)));
    return roots;
  });
}

Result<void> useIdentity(asio::ssl::context& context, const TlsIdentity& identity) {
  error_code error;
  context.use_certificate_chain(asio::buffer(identity.certificate_pem), error);
  if (!error)
    context.use_private_key(asio::buffer(identity.key_pem.reveal()), asio::ssl::context::pem,
                            error);
  if (!error && SSL_CTX_check_private_key(context.native_handle()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::InvalidInput, "the TLS key does not belong to the certificate");
  }
  if (error)
    return fail(ErrorCode::InvalidInput,
                "the TLS certificate or key is not usable: " + error.message());
  return {};
}

/// Whoever holds the key of what they show is let in, and `clientOf` knows none of them: the
/// verdict is that nothing was verified.
void takeAnyClient(SSL_CTX* native, const std::string& ca_pem) {
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET);  // as below
  SSL_CTX_set_num_tickets(native, 0);
  for (const auto& root : certificatesOf(ca_pem)) SSL_CTX_add_client_CA(native, root.get());
  SSL_CTX_set_max_cert_list(native, static_cast<long>(kMaxShownChainBytes));
  SSL_CTX_set_verify(native, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(
      native,
      [](X509_STORE_CTX* store, void*) {
        X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
        return 1;
      },
      nullptr);
}

}  // namespace

Result<void> checkServerChain(std::string_view chain_pem, std::string_view roots_pem,
                              const std::string& host) {
  const auto chain = certificatesOf(chain_pem), roots = certificatesOf(roots_pem);
  if (chain.empty() || roots.empty())
    return fail(ErrorCode::InvalidInput, "there is no certificate in PEM form");
  const std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)> rest(
      sk_X509_new_null(), [](STACK_OF(X509) * stack) { sk_X509_free(stack); });
  for (std::size_t i = 1; i < chain.size(); ++i) sk_X509_push(rest.get(), chain[i].get());
  std::vector<X509*> trusted;
  for (const auto& root : roots) trusted.push_back(root.get());
  if (auto why = verifyChain(chain.front().get(), rest.get(), trusted, host); !why.empty())
    return fail(ErrorCode::Denied, std::move(why));
  return {};
}

Result<std::shared_ptr<TlsClient>> TlsClient::make(TlsTrust trust) {
  std::shared_ptr<TlsClient> client(new TlsClient(std::move(trust)));
  client->roots_ = rootsOf(client->trust_.ca_pem);
  static const auto of_all = makeClientContext();
  client->context_ = of_all;
  if (client->trust_.identity) TRY_OK(client->readIdentity());
  return client;
}

Result<void> TlsClient::readIdentity() {
  for (auto& certificate : certificatesOf(trust_.identity->certificate_pem))
    chain_.push_back(shared(std::move(certificate)));
  auto key = readPrivateKey(trust_.identity->key_pem);
  if (chain_.empty() || !key)
    return fail(ErrorCode::InvalidInput, "the TLS certificate or key is not usable: " +
                                             (key ? "no certificate in it" : key.error().str()));
  if (X509_check_private_key(static_cast<X509*>(chain_.front().get()), key->get()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::InvalidInput, "the TLS key does not belong to the certificate");
  }
  key_ = shared(std::move(*key));
  return {};
}

void TlsClient::prepare(TlsStream& stream, Handshake& handshake) const {
  handshake.client = this;
  handshake.pin = trust_.pinned_fingerprint;
  SSL_set_ex_data(stream.native_handle(), handshakeIndex(), &handshake);
  if (key_) {
    SSL_use_certificate(stream.native_handle(), static_cast<X509*>(chain_.front().get()));
    for (std::size_t i = 1; i < chain_.size(); ++i)
      SSL_add1_chain_cert(stream.native_handle(), static_cast<X509*>(chain_[i].get()));
    SSL_use_PrivateKey(stream.native_handle(), static_cast<EVP_PKEY*>(key_.get()));
  }
  const bool by_pin = !trust_.pinned_fingerprint.empty() && !trust_.pin_is_root && !trust_.identity;
  if (by_pin)
    handshake.resuming = TlsSessions::ofProcess().prepare(stream.native_handle(), handshake.host,
                                                          trust_.pinned_fingerprint);
  if (!isAddress(handshake.host))
    SSL_set_tlsext_host_name(stream.native_handle(), handshake.host.c_str());
}

void TlsClient::met(TlsStream& stream, Handshake& handshake) {
  if (SSL_session_reused(stream.native_handle()) == 1) {
    TlsSessions::ofProcess().tookUp();
    const auto* leaf = SSL_get0_peer_certificate(stream.native_handle());
    handshake.fingerprint = leaf ? fingerprintOf(leaf) : "";
    if (handshake.fingerprint != trust_.pinned_fingerprint)
      handshake.refusal =
          fmt::format("its session is not that of the pinned {}", trust_.pinned_fingerprint);
  }
  if (!trust_.accept_first || !handshake.pin.empty()) return;
  if (!trust_.pinned_fingerprint.empty()) {  // another connection was the first contact meanwhile
    if (handshake.fingerprint != trust_.pinned_fingerprint)
      handshake.refusal = fmt::format("its certificate {} is not the pinned {}",
                                      handshake.fingerprint, trust_.pinned_fingerprint);
    return;
  }
  trust_.pinned_fingerprint = handshake.fingerprint;
  if (!trust_.identity)
    TlsSessions::ofProcess().expect(stream.native_handle(), handshake.host, handshake.fingerprint);
}

void TlsClient::failedWithSession(const Handshake& handshake) const {
  TlsSessions::ofProcess().failed(handshake.host, trust_.pinned_fingerprint);
}

bool TlsClient::accepts(void* store_context, Handshake& handshake) const {
  auto* context = static_cast<X509_STORE_CTX*>(store_context);
  X509* leaf = X509_STORE_CTX_get0_cert(context);
  if (!leaf) return false;
  handshake.fingerprint = fingerprintOf(leaf);
  handshake.refusal =
      refusalOf(trust_, roots_, leaf, X509_STORE_CTX_get0_untrusted(context), handshake);
  const bool fine = handshake.refusal.empty();
  X509_STORE_CTX_set_error(context, fine ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION);
  return fine;
}

Result<std::shared_ptr<asio::ssl::context>> makeServerTls(const ServerOptions& options) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  auto* native = context->native_handle();
  setCommonOptions(native);
  if (SSL_CTX_set_cipher_list(native, kServerCiphers) != 1)
    return fail(ErrorCode::Internal, "OpenSSL has none of the ciphers that a server needs");
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  TRY_OK(useIdentity(*context, *options.identity));
  if (options.takes_any_client_certificate) {
    takeAnyClient(native, options.client_ca_pem);
    return context;
  }
  if (options.client_ca_pem.empty()) {
    SSL_CTX_set_num_tickets(native, 1);
    return context;
  }
  SSL_CTX_set_options(
      native,
      SSL_OP_NO_TICKET);  // a session that is taken up would not show the client's certificate anew
  SSL_CTX_set_num_tickets(native, 0);
  error_code error;
  context->add_certificate_authority(asio::buffer(options.client_ca_pem), error);
  if (error)
    return fail(ErrorCode::InvalidInput, "the client CA is not readable PEM: " + error.message());
  for (const auto& root : certificatesOf(options.client_ca_pem))
    SSL_CTX_add_client_CA(native, root.get());
  context->set_verify_mode(options.require_client_certificate
                               ? asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert
                               : asio::ssl::verify_peer);
  // Only the age of the leaf is forgiven, and it stays the handshake's verdict. Every other fault,
  // of an expired certificate too, is reported in a call of its own and ends the handshake.
  context->set_verify_callback([admit_expired = options.admit_expired_clients](
                                   bool fine, asio::ssl::verify_context& verify) {
    auto* store = verify.native_handle();
    const bool leaf = X509_STORE_CTX_get_error_depth(store) == 0;
    if (!fine &&
        !(admit_expired && leaf && X509_STORE_CTX_get_error(store) == X509_V_ERR_CERT_HAS_EXPIRED))
      return false;
    if (!leaf || isMadeFor(X509_STORE_CTX_get_current_cert(store), XKU_SSL_CLIENT)) return true;
    X509_STORE_CTX_set_error(store, X509_V_ERR_INVALID_PURPOSE);
    return false;
  });
  return context;
}

void forgetSessions(asio::ssl::context& context) {
  auto* native = context.native_handle();
  auto keys =
      randomBytes(static_cast<std::size_t>(SSL_CTX_get_tlsext_ticket_keys(native, nullptr, 0)));
  SSL_CTX_set_tlsext_ticket_keys(native, keys.data(), static_cast<long>(keys.size()));
}

std::shared_ptr<const ShownCertificate> shownBy(TlsStream& stream) {
  SSL* ssl = stream.native_handle();
  auto* leaf = SSL_get0_peer_certificate(ssl);
  if (!leaf) return nullptr;
  auto out = std::make_shared<ShownCertificate>();
  Sha256 digest;
  const auto add = [&](const X509* certificate) {
    unsigned char* der = nullptr;
    const int size = i2d_X509(certificate, &der);
    if (size <= 0) return;
    out->chain_der.emplace_back(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
    OPENSSL_free(der);
    digest.update(out->chain_der.back().data(), out->chain_der.back().size());
  };
  add(leaf);
  auto* chain = SSL_get_peer_cert_chain(ssl);  // of a client: without its own
  for (int i = 0; chain && i < sk_X509_num(chain); ++i) add(sk_X509_value(chain, i));
  out->digest = digest.finishHex();
  return out;
}

TlsPeer clientOf(TlsStream& stream) {
  SSL* ssl = stream.native_handle();
  Handle<X509> certificate(SSL_get1_peer_certificate(ssl));
  const long verdict = SSL_get_verify_result(ssl);
  TlsPeer peer;
  if (!certificate || (verdict != X509_V_OK && verdict != X509_V_ERR_CERT_HAS_EXPIRED)) return peer;
  char name[256] = {};
  const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()),
                                             NID_commonName, name, sizeof name);
  if (size <= 0) return peer;
  (verdict == X509_V_OK ? peer.common_name : peer.expired_common_name)
      .assign(name, static_cast<std::size_t>(size));
  peer.key_id = keyIdOf(certificate.get());
  return peer;
}

}  // namespace muster::io
