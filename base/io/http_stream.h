// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: one connection, plain or TLS, with a watchdog. Shared by client and server,
// so that Beast's algorithms are instantiated for one stream type only.
#pragma once

#include "base/io/deadline_timer.h"
#include "base/io/http.h"
#include "base/io/tls_stream.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/fields.hpp>

namespace muster::io {

using asio::ip::tcp;
using boost::system::error_code;

/// A TCP socket, with TLS on top when asked for. Fulfils Asio's async stream concepts.
class AnyStream {
 public:
  using executor_type = asio::any_io_executor;
  explicit AnyStream(tcp::socket socket) : socket_(std::move(socket)) {}

  executor_type get_executor() { return socket_.get_executor(); }
  tcp::socket& socket() { return socket_; }
  void startTls(asio::ssl::context& context) {
    tls_ = std::make_unique<TlsStream>(socket_, context);
  }
  TlsStream* tls() { return tls_.get(); }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Token>(token));
    return socket_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Token>(token));
    return socket_.async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  tcp::socket socket_;
  std::unique_ptr<TlsStream> tls_;
};

/// A connection and its deadline: past it the socket is closed, which ends every pending operation.
class Connection {
 public:
  explicit Connection(tcp::socket socket)
      : stream(std::move(socket)), deadline_(stream.get_executor(), [this] {
          timed_out_ = true;
          close();
        }) {}

  void arm(std::chrono::milliseconds limit) { deadline_.set(limit); }
  /// Nothing keeps the loop busy afterwards.
  void disarm() { deadline_.stop(); }
  /// As disarm, for a connection that is armed again soon.
  void lift() { deadline_.lift(); }
  bool timedOut() const { return timed_out_; }
  void close() {
    deadline_.stop();
    error_code ignored;
    stream.socket().close(ignored);
  }

  std::shared_ptr<void> keep;  ///< what the stream refers to: the TLS settings
  AnyStream stream;
  boost::beast::flat_buffer buffer;

 private:
  bool timed_out_ = false;
  Deadline deadline_;
};

/// Repeated fields are joined with ", ".
template <class Fields>
Headers headersOf(const Fields& fields) {
  Headers out;
  for (const auto& field : fields) {
    auto& value = out[std::string(field.name_string())];
    if (!value.empty()) value += ", ";
    value += std::string(field.value());
  }
  return out;
}

class TlsClient;

/// How TLS ended one handshake, filled by the verification.
struct Handshake {
  std::string host;
  const TlsClient* client = nullptr;
  std::string pin;  ///< what was pinned as it began: another connection's first contact may pin
                    ///< while this one is evaluated on the side thread
  std::string fingerprint;
  std::string refusal;    ///< why the peer is not trusted; empty: it is
  bool resuming = false;  ///< an earlier session was offered
};

/// A client's TLS settings: trust is decided by `TlsTrust` alone, never by the machine's own stores
/// or environment.
class TlsClient {
 public:
  static Result<std::shared_ptr<TlsClient>> make(TlsTrust trust);
  asio::ssl::context& context() { return *context_; }
  /// Before the handshake: attaches what the verification needs. Both must outlive it.
  void prepare(TlsStream& stream, Handshake& handshake) const;
  /// After a handshake that OpenSSL is content with. A session that was taken up shows no
  /// certificate: then it is evaluated whose it was. The verdict is in the handshake.
  void met(TlsStream& stream, Handshake& handshake);
  /// The handshake failed with the session that was offered.
  void failedWithSession(const Handshake& handshake) const;

  /// The verdict on what the server shows (an X509_STORE_CTX); the reason goes into the handshake.
  bool accepts(void* store_context, Handshake& handshake) const;

 private:
  explicit TlsClient(TlsTrust trust) : trust_(std::move(trust)) {}
  /// Reads trust_.identity. Errors: InvalidInput (not PEM, or not one pair)
  Result<void> readIdentity();
  TlsTrust trust_;
  std::shared_ptr<void> key_;                 ///< of trust_.identity: EVP_PKEY
  std::vector<std::shared_ptr<void>> chain_;  ///< likewise, the leaf first: X509
  std::vector<std::shared_ptr<void>> roots_;  ///< of trust_.ca_pem: X509
  std::shared_ptr<asio::ssl::context> context_;
};

/// Who a client's certificate says it is; all empty without one.
struct TlsPeer {
  std::string common_name;          ///< of a valid certificate
  std::string expired_common_name;  ///< of one that is right but for its age
                                    ///< (ServerOptions::admit_expired_clients)
  std::string key_id;               ///< SHA-256 of its public key, hex
};
TlsPeer clientOf(TlsStream& stream);
/// What it has shown, believed or not; nothing: no certificate.
std::shared_ptr<const ShownCertificate> shownBy(TlsStream& stream);

}  // namespace muster::io
