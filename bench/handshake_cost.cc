// SPDX-License-Identifier: Apache-2.0
#include "bench/handshake_cost.h"

#include "base/io/crypto.h"
#include "bench/bench.h"
#include "bench/lifecycle_bench.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <memory>

namespace muster::bench {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* held) const {
    Free(held);
  }
};
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Connection = std::unique_ptr<SSL, Freed<SSL_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;

void must(bool holds, const char* what) {
  if (holds) return;
  fmt::print(stderr, "bench: the handshake that others are compared with: {}\n", what);
  std::exit(2);
}

Context contextOf(const SSL_METHOD* method) {
  Context context(SSL_CTX_new(method));
  must(context != nullptr, "no context");
  must(SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1, "no TLS 1.3");
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  must(SSL_CTX_set_num_tickets(context.get(), 0) == 1, "tickets stay");
  return context;
}

Context serverContext() {
  const auto identity = need(io::selfSigned("bench", {"127.0.0.1"}));
  auto context = contextOf(TLS_server_method());
  const auto& key_pem = identity.key_pem.reveal();
  const Bio key(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  const Bio text(BIO_new_mem_buf(identity.certificate_pem.data(),
                                 static_cast<int>(identity.certificate_pem.size())));
  const std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>> private_key(
      PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr));
  const std::unique_ptr<X509, Freed<X509_free>> certificate(
      PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  must(private_key && certificate, "no identity");
  must(SSL_CTX_use_certificate(context.get(), certificate.get()) == 1 &&
           SSL_CTX_use_PrivateKey(context.get(), private_key.get()) == 1,
       "the identity is not taken");
  return context;
}

void shakeHands(SSL_CTX* client_context, SSL_CTX* server_context) {
  BIO *near = nullptr, *far = nullptr;
  must(BIO_new_bio_pair(&near, 0, &far, 0) == 1, "no pair");
  const Connection client(SSL_new(client_context)), server(SSL_new(server_context));
  SSL_set_bio(client.get(), near, near);
  SSL_set_bio(server.get(), far, far);
  SSL_set_connect_state(client.get());
  SSL_set_accept_state(server.get());
  bool is_done = false;
  for (int turn = 0; turn < 10 && !is_done; ++turn) {
    const int here = SSL_do_handshake(client.get()), there = SSL_do_handshake(server.get());
    is_done = here == 1 && there == 1;
  }
  must(is_done && SSL_session_reused(client.get()) == 0, "it did not end");
}

}  // namespace

double handshakeCpuSeconds(int handshakes) {
  const auto server = serverContext();
  const auto client = contextOf(TLS_client_method());
  SSL_CTX_set_verify(client.get(), SSL_VERIFY_NONE, nullptr);
  shakeHands(client.get(), server.get());  // what is set up once is not counted
  const double begin = secondsOf(CLOCK_THREAD_CPUTIME_ID);
  for (int each = 0; each < handshakes; ++each) shakeHands(client.get(), server.get());
  return (secondsOf(CLOCK_THREAD_CPUTIME_ID) - begin) / handshakes;
}

}  // namespace muster::bench
