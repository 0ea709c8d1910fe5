// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: TLS sessions with servers whose certificate is pinned, kept so that the next
// connection needs no key exchange by certificates: that is most of what a request costs here, and
// a second of a slow BMC's time.
//
// A session belongs to a pin: it was made when the server proved that it holds the pinned
// certificate's key, and whoever takes it up again proves that it is that server. Where another pin
// is asked for, it is not offered.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace muster::io {

/// Used from any thread.
class TlsSessions {
 public:
  static TlsSessions& ofProcess();
  /// For the settings of clients: sessions that servers offer go to those connections that were
  /// prepared.
  static void collect(SSL_CTX* context);

  /// Before the handshake with `host`: what it offers will be kept, and what is kept is offered.
  /// Answers whether there was one.
  bool prepare(SSL* ssl, const std::string& host, const std::string& pin);
  /// After a first contact, which could offer none: the server has proved that it holds the key of
  /// `pin`, and what it offers will be kept.
  void expect(SSL* ssl, const std::string& host, const std::string& pin);
  /// The handshake failed with what was offered. Some servers cannot take up a session: after a few
  /// times none is kept for them.
  void failed(const std::string& host, const std::string& pin);
  /// A session was taken up; and how many have been: handshakes saved.
  void tookUp() { ++taken_up_; }
  std::size_t takenUp() const { return taken_up_; }

 private:
  struct Free {
    void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
  };
  struct Kept {
    std::unique_ptr<SSL_SESSION, Free> session;
    int failures = 0;
  };
  static constexpr std::size_t kMost = 32'768;
  static constexpr int kFailures = 3;
  static int keep(SSL* ssl, SSL_SESSION* session);

  std::atomic<std::size_t> taken_up_ = 0;
  std::mutex guard_;
  std::unordered_map<std::string, Kept> kept_;  ///< by pin and host
};

}  // namespace muster::io
