// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: TLS over a TCP socket, as an Asio stream. OpenSSL reads from and writes to
// the socket itself.
//
// asio::ssl::stream keeps four buffers of 17 KiB for every connection, idle or not: with an agent
// and some BMC connections a node that alone is more than a gigabyte for ten thousand nodes. Here
// an idle connection holds none (docs/adr/0014).
#pragma once

#include "base/io/side_thread.h"

#include <openssl/ssl.h>
#include <boost/asio/compose.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>

#include <array>
#include <memory>
#include <string>

namespace muster::io {

class TlsStream {
 public:
  using tcp = asio::ip::tcp;
  using error_code = boost::system::error_code;
  using executor_type = tcp::socket::executor_type;
  enum class Side { Client, Server };

  /// The socket must outlive the stream.
  TlsStream(tcp::socket& socket, asio::ssl::context& context);

  executor_type get_executor() { return socket_.get_executor(); }
  SSL* native_handle() { return ssl_.get(); }

  /// Completes with (error_code).
  template <class Token>
  auto async_handshake(Side side, Token&& token) {
    side == Side::Client ? SSL_set_connect_state(ssl_.get()) : SSL_set_accept_state(ssl_.get());
    wire_.side = SideThread::of(get_executor());
    return asio::async_compose<Token, void(error_code)>(Greeting{*this}, token, socket_);
  }
  /// Says goodbye and waits for the other side's. Completes with (error_code).
  template <class Token>
  auto async_shutdown(Token&& token) {
    return begin<void(error_code)>([this] { return shutdown(); }, token);
  }
  /// Asio's streams: complete with (error_code, bytes).
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return begin<void(error_code, std::size_t)>(
        [this, buffers] { return read(firstOf<asio::mutable_buffer>(buffers)); }, token);
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return begin<void(error_code, std::size_t)>([this, buffers] { return writeSome(buffers); },
                                                token);
  }

 private:
  enum class Want { Nothing, Readable, Writable };
  /// What one try came to.
  struct Step {
    Want want = Want::Nothing;
    error_code error = {};
    std::size_t bytes = 0;
  };
  struct Free {
    void operator()(SSL* ssl) const {
      SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN);  // a connection cut short is no reason not to take
                                                 // its session up again
      SSL_free(ssl);
    }
  };
  static constexpr std::size_t kJoinBytes =
      8u << 10;  ///< a head and a small body go out in one record

  /// Tries; waits for the socket; tries again. Never completes from within the call that began it.
  template <class Signature, class Try>
  struct Operation {
    TlsStream& stream;
    Try attempt;
    Step step = {};
    bool waited = false, over = false;

    template <class Self>
    void operator()(Self& self, error_code error = {}) {
      if (over) return finish(self);
      step = error ? Step{Want::Nothing, error} : attempt();
      if (step.want != Want::Nothing) {
        waited = true;
        return stream.socket_.async_wait(
            step.want == Want::Readable ? tcp::socket::wait_read : tcp::socket::wait_write,
            std::move(self));
      }
      over = true;
      if (waited) return finish(self);
      asio::post(stream.get_executor(), std::move(self));
    }
    template <class Self>
    void finish(Self& self) {
      if constexpr (std::is_same_v<Signature, void(error_code)>) {
        self.complete(step.error);
      } else {
        self.complete(step.error, step.bytes);
      }
    }
  };

  /// The handshake. With a side thread OpenSSL works there on what was received, and the socket
  /// stays with the control thread.
  struct Greeting {
    TlsStream& stream;
    Step step = {};
    enum class Next { Try, Tried, Receive, Done } next = Next::Try;

    template <class Self>
    void operator()(Self& self, error_code error = {}) {
      if (next == Next::Done) return self.complete(step.error);
      if (error) return end(self, {Want::Nothing, error});
      if (next == Next::Tried) return tried(self);
      if (next == Next::Receive) stream.receive();
      auto* side = stream.wire_.side;
      if (!side) return (*this)(self, stream.handshake());
      side->run(
          stream.get_executor(), [&stream = stream] { return stream.handshake(); },
          std::move(self));
    }
    template <class Self>
    void operator()(Self& self, Step tried_now) {
      step = tried_now;
      tried(self);
    }
    template <class Self>
    void tried(Self& self) {
      if (self.cancelled() != asio::cancellation_type::none)
        return end(self, {Want::Nothing, asio::error::operation_aborted});
      const auto sent = stream.flush();
      if (sent.want == Want::Writable) return wait(self, sent.want, Next::Tried);
      if (step.want == Want::Nothing || sent.error)
        return end(self, step.error || !sent.error ? step : sent);
      wait(self, step.want, step.want == Want::Readable ? Next::Receive : Next::Try);
    }
    template <class Self>
    void wait(Self& self, Want what, Next then) {
      next = then;
      stream.socket_.async_wait(
          what == Want::Readable ? tcp::socket::wait_read : tcp::socket::wait_write,
          std::move(self));
    }
    /// Never from within the call that began it.
    template <class Self>
    void end(Self& self, Step last) {
      step = last;
      next = Next::Done;
      stream.wire_.side = nullptr;
      asio::post(stream.get_executor(), std::move(self));
    }
  };

  template <class Signature, class Try, class Token>
  auto begin(Try attempt, Token& token) {
    return asio::async_compose<Token, Signature>(
        Operation<Signature, Try>{*this, std::move(attempt)}, token, socket_);
  }

  template <class Buffer, class Buffers>
  static Buffer firstOf(const Buffers& buffers) {
    for (auto at = asio::buffer_sequence_begin(buffers); at != asio::buffer_sequence_end(buffers);
         ++at)
      if (Buffer buffer(*at); buffer.size() > 0) return buffer;
    return {};
  }

  template <class Buffers>
  Step writeSome(const Buffers& buffers) {
    const auto first = firstOf<asio::const_buffer>(buffers);
    if (first.size() >= kJoinBytes || first.size() == asio::buffer_size(buffers))
      return write(first);
    std::array<char, kJoinBytes> joined;
    return write(asio::buffer(joined.data(), asio::buffer_copy(asio::buffer(joined), buffers)));
  }

  /// What OpenSSL reads from and writes to. With a side thread these are the buffers while the
  /// handshake lasts; what is left of `in` then is read before the socket.
  struct Wire {
    tcp::socket& socket;
    SideThread* side = nullptr;
    std::string in = {}, out = {};
    std::size_t taken = 0;  ///< of `in`
    int failure = 0;        ///< errno of the last receive; kEnd: the other side has closed
  };
  static constexpr int kEnd = -1;

  static int readWire(BIO* bio, char* into, int size);
  static int writeWire(BIO* bio, const char* from, int size);
  static BIO_METHOD* wireMethod();

  Step handshake();
  /// Moves what has arrived into the wire, and what OpenSSL has written out of it.
  void receive();
  Step flush();
  Step shutdown();
  Step read(asio::mutable_buffer into);
  Step write(asio::const_buffer from);
  Step evaluate(int answer, std::size_t bytes);

  tcp::socket& socket_;
  Wire wire_{socket_};
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace muster::io
