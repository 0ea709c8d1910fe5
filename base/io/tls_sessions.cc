// SPDX-License-Identifier: Apache-2.0
#include "base/io/tls_sessions.h"

namespace muster::io {
namespace {

std::string keyOf(const std::string& host, const std::string& pin) { return pin + " " + host; }

/// Where a connection keeps the key under which its session is put away; it goes with the
/// connection.
int keyIndex() {
  static const int index = SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr, [](void*, void* key, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<std::string*>(key);
      });
  return index;
}

}  // namespace

TlsSessions& TlsSessions::ofProcess() {
  static TlsSessions sessions;
  return sessions;
}

void TlsSessions::collect(SSL_CTX* context) {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, &TlsSessions::keep);
}

bool TlsSessions::prepare(SSL* ssl, const std::string& host, const std::string& pin) {
  auto key = keyOf(host, pin);
  std::lock_guard lock(guard_);
  const auto at = kept_.find(key);
  if (at != kept_.end() && at->second.failures >= kFailures) return false;
  SSL_set_ex_data(ssl, keyIndex(), new std::string(std::move(key)));
  return at != kept_.end() && at->second.session &&
         SSL_set_session(ssl, at->second.session.get()) == 1;
}

void TlsSessions::expect(SSL* ssl, const std::string& host, const std::string& pin) {
  SSL_set_ex_data(ssl, keyIndex(), new std::string(keyOf(host, pin)));
}

void TlsSessions::failed(const std::string& host, const std::string& pin) {
  std::lock_guard lock(guard_);
  auto& kept = kept_[keyOf(host, pin)];
  kept.session.reset();
  ++kept.failures;
}

/// OpenSSL's callback; 1: the session is ours now.
int TlsSessions::keep(SSL* ssl, SSL_SESSION* session) {
  const auto* key = static_cast<std::string*>(SSL_get_ex_data(ssl, keyIndex()));
  if (!key || !SSL_SESSION_is_resumable(session)) return 0;
  auto& all = ofProcess();
  std::lock_guard lock(all.guard_);
  if (all.kept_.size() >= kMost) all.kept_.clear();
  all.kept_[*key].session.reset(session);
  return 1;
}

}  // namespace muster::io
