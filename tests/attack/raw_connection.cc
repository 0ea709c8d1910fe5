// SPDX-License-Identifier: Apache-2.0
#include "tests/attack/raw_connection.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

namespace muster::attack {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::size_t kMostHeardBytes = 4u << 20;

sockaddr_in endpoint(const std::string& address, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &out.sin_addr);
  return out;
}

/// Whether something happened before the deadline.
bool waitOn(int fd, short events, Steady::time_point until) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until - Steady::now()).count();
  pollfd one{fd, events, 0};
  return left > 0 && ::poll(&one, 1, static_cast<int>(left)) > 0;
}

}  // namespace

struct RawConnection::Tls {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{SSL_CTX_new(TLS_client_method()),
                                                            SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> session{nullptr, SSL_free};
};

RawConnection::RawConnection(const std::string& address, std::uint16_t port,
                             const std::string& from) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  (void)::setsockopt(fd_, IPPROTO_IP, 24 /* IP_BIND_ADDRESS_NO_PORT */, &yes, sizeof yes);
  const auto own = endpoint(from, 0), other = endpoint(address, port);
  const timeval limit{2, 0};
  (void)::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // of connect too
  (void)::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0 &&
      ::connect(fd_, reinterpret_cast<const sockaddr*>(&other), sizeof other) == 0)
    return;
  ::close(std::exchange(fd_, -1));
}

RawConnection::RawConnection(RawConnection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), tls_(std::move(other.tls_)) {}

RawConnection::~RawConnection() {
  tls_.reset();
  if (fd_ >= 0) ::close(fd_);
}

bool RawConnection::startTls(const TlsOffer& offer) {
  if (!up()) return false;
  tls_ = std::make_unique<Tls>();
  SSL_CTX* context = tls_->context.get();
  SSL_CTX_set_security_level(context, 0);  // an attacker's own library refuses nothing
  if (offer.min_version) SSL_CTX_set_min_proto_version(context, offer.min_version);
  if (offer.max_version) SSL_CTX_set_max_proto_version(context, offer.max_version);
  if (!offer.certificate_pem.empty()) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> chain(
        BIO_new_mem_buf(offer.certificate_pem.data(),
                        static_cast<int>(offer.certificate_pem.size())),
        BIO_free);
    const std::unique_ptr<BIO, decltype(&BIO_free)> secret(
        BIO_new_mem_buf(offer.key_pem.data(), static_cast<int>(offer.key_pem.size())), BIO_free);
    const std::unique_ptr<X509, decltype(&X509_free)> leaf(
        PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr), X509_free);
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
        PEM_read_bio_PrivateKey(secret.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
    if (!leaf || !key || SSL_CTX_use_certificate(context, leaf.get()) != 1 ||
        SSL_CTX_use_PrivateKey(context, key.get()) != 1)
      std::abort();
    while (X509* more = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr))
      SSL_CTX_add_extra_chain_cert(context, more);
  }
  tls_->session.reset(SSL_new(context));
  SSL_set_fd(tls_->session.get(), fd_);
  return SSL_connect(tls_->session.get()) == 1;
}

std::size_t RawConnection::say(std::string_view bytes, std::chrono::milliseconds limit) {
  std::size_t said = 0;
  auto until = Steady::now() + limit;
  while (up() && said < bytes.size()) {
    const auto rest = bytes.substr(said);
    ssize_t some = 0;
    if (tls_) {
      some = SSL_write(tls_->session.get(), rest.data(), static_cast<int>(rest.size()));
      if (some <= 0) break;
    } else {
      if (!waitOn(fd_, POLLOUT, until)) break;
      some = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (some < 0 && errno == EAGAIN) continue;
      if (some < 0) break;
    }
    said += static_cast<std::size_t>(some);
    until = Steady::now() + limit;
  }
  return said;
}

RawConnection::Heard RawConnection::hear(std::chrono::milliseconds limit, bool head_only) {
  Heard heard;
  const auto until = Steady::now() + limit;
  std::string piece(16'384, '\0');
  while (up() && heard.bytes.size() < kMostHeardBytes) {
    if (head_only && heard.bytes.find("\r\n\r\n") != std::string::npos) break;
    const bool waiting = !tls_ || SSL_pending(tls_->session.get()) == 0;
    if (waiting && !waitOn(fd_, POLLIN, until)) break;
    const auto some =
        tls_ ? SSL_read(tls_->session.get(), piece.data(), static_cast<int>(piece.size()))
             : ::recv(fd_, piece.data(), piece.size(), MSG_DONTWAIT);
    if (!tls_ && some < 0 && errno == EAGAIN) continue;
    if (some <= 0) {
      heard.closed = true;
      break;
    }
    heard.bytes.append(piece, 0, static_cast<std::size_t>(some));
  }
  if (heard.bytes.starts_with("HTTP/1.") && heard.bytes.size() > 12)
    heard.status = std::atoi(heard.bytes.c_str() + 9);
  return heard;
}

void RawConnection::endSending() {
  if (up()) ::shutdown(fd_, SHUT_WR);
}

RawConnection::Heard askRaw(const std::string& address, std::uint16_t port, std::string_view bytes,
                            std::chrono::milliseconds limit) {
  RawConnection connection(address, port);
  connection.say(bytes, limit);
  return connection.hear(limit);
}

RawConnection::Heard askTls(const std::string& address, std::string_view bytes,
                            const TlsOffer& offer) {
  RawConnection connection(address, 8443);
  if (!connection.startTls(offer)) return {"", true, 0};
  connection.say(bytes);
  return connection.hear();
}

std::string post(std::string_view target, std::string_view body) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: muster\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\n\r\n{}",
      target, body.size(), body);
}

}  // namespace muster::attack
