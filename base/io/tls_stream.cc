// SPDX-License-Identifier: Apache-2.0
#include "base/io/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>

#include <sys/socket.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster::io {
namespace {

bool again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

constexpr std::size_t kGreetingBytes = 16u << 10;  ///< a read's size during the handshake

long controlWire(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
  return 0;
}

/// What went wrong before is not the answer's reason.
void forgetErrors() {
  ERR_clear_error();
  errno = 0;
}

boost::system::error_code sslError(unsigned long code) {
  return {static_cast<int>(code), boost::asio::error::get_ssl_category()};
}

}  // namespace

// OpenSSL's own socket BIO would raise SIGPIPE, block where the socket does, and know a number of a
// descriptor that may since belong to another connection; this one asks the socket, which has none
// once it is closed.

BIO_METHOD* TlsStream::wireMethod() {
  static BIO_METHOD* const method = [] {
    auto* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    BIO_meth_set_read(made, readWire);
    BIO_meth_set_write(made, writeWire);
    BIO_meth_set_ctrl(made, controlWire);
    BIO_meth_set_create(made, [](BIO* bio) {
      BIO_set_init(bio, 1);
      return 1;
    });
    return made;
  }();
  return method;
}

int TlsStream::readWire(BIO* bio, char* into, int size) {
  auto& wire = *static_cast<Wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (const auto left = wire.in.size() - wire.taken; left > 0) {
    const auto count = std::min(left, static_cast<std::size_t>(size));
    std::memcpy(into, wire.in.data() + wire.taken, count);
    wire.taken += count;
    if (wire.taken == wire.in.size()) wire.taken = 0, wire.in = std::string();
    return static_cast<int>(count);
  }
  if (wire.side || wire.failure) {
    errno = wire.failure == kEnd ? 0 : wire.failure;
    if (!wire.failure) BIO_set_retry_read(bio);
    if (wire.failure == kEnd) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return wire.failure == kEnd ? 0 : -1;
  }
  const auto got =
      ::recv(wire.socket.native_handle(), into, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (got < 0 && again(errno)) BIO_set_retry_read(bio);
  if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(got);
}

int TlsStream::writeWire(BIO* bio, const char* from, int size) {
  auto& wire = *static_cast<Wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (wire.side) {
    wire.out.append(from, static_cast<std::size_t>(size));
    return size;
  }
  const auto sent = ::send(wire.socket.native_handle(), from, static_cast<std::size_t>(size),
                           MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && again(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

void TlsStream::receive() {
  if (!wire_.side) return;
  char bytes[kGreetingBytes];
  const auto got = ::recv(socket_.native_handle(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got > 0) wire_.in.append(bytes, static_cast<std::size_t>(got));
  if (got == 0) wire_.failure = kEnd;
  if (got < 0 && !again(errno)) wire_.failure = errno;
}

TlsStream::Step TlsStream::flush() {
  while (!wire_.out.empty()) {
    const auto sent = ::send(socket_.native_handle(), wire_.out.data(), wire_.out.size(),
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && again(errno)) return {Want::Writable};
    if (sent < 0) return {Want::Nothing, error_code(errno, boost::system::system_category())};
    wire_.out.erase(0, static_cast<std::size_t>(sent));
  }
  wire_.out.shrink_to_fit();
  return {};
}

TlsStream::TlsStream(tcp::socket& socket, asio::ssl::context& context)
    : socket_(socket), ssl_(SSL_new(context.native_handle())) {
  if (!ssl_) throw std::bad_alloc();
  SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                               SSL_MODE_RELEASE_BUFFERS);
  SSL_set_read_ahead(ssl_.get(), 1);  // a record's head and body by one read
  auto* bio = BIO_new(wireMethod());
  if (!bio) throw std::bad_alloc();
  BIO_set_data(bio, &wire_);
  SSL_set_bio(ssl_.get(), bio, bio);
}

TlsStream::Step TlsStream::handshake() {
  forgetErrors();
  return evaluate(SSL_do_handshake(ssl_.get()), 0);
}

TlsStream::Step TlsStream::shutdown() {
  forgetErrors();
  int answer = SSL_shutdown(ssl_.get());
  if (answer == 0) answer = SSL_shutdown(ssl_.get());  // ours is said; now the other's
  return evaluate(answer, 0);
}

TlsStream::Step TlsStream::read(asio::mutable_buffer into) {
  if (into.size() == 0) return {};
  forgetErrors();
  std::size_t bytes = 0;
  const int answer = SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
  return evaluate(answer, bytes);
}

TlsStream::Step TlsStream::write(asio::const_buffer from) {
  if (from.size() == 0) return {};
  forgetErrors();
  std::size_t bytes = 0;
  const int answer = SSL_write_ex(ssl_.get(), from.data(), from.size(), &bytes);
  return evaluate(answer, bytes);
}

TlsStream::Step TlsStream::evaluate(int answer, std::size_t bytes) {
  const int system_error = errno;
  if (answer > 0) return {Want::Nothing, {}, bytes};
  switch (SSL_get_error(ssl_.get(), answer)) {
    case SSL_ERROR_WANT_READ:
      return {Want::Readable};
    case SSL_ERROR_WANT_WRITE:
      return {Want::Writable};
    case SSL_ERROR_ZERO_RETURN:
      return {Want::Nothing, boost::asio::error::eof};
    case SSL_ERROR_SYSCALL:
      if (const auto code = ERR_get_error()) return {Want::Nothing, sslError(code)};
      if (system_error == 0) return {Want::Nothing, boost::asio::ssl::error::stream_truncated};
      return {Want::Nothing, error_code(system_error, boost::system::system_category())};
    default:
      break;
  }
  const auto code = ERR_get_error();
  if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
      ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
    return {Want::Nothing, boost::asio::ssl::error::stream_truncated};
  return {Want::Nothing, sslError(code)};
}

}  // namespace muster::io
