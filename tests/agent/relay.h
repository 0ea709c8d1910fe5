// SPDX-License-Identifier: Apache-2.0
// Relay: a TCP proxy on loopback whose connections a test can cut all at once, as a switch that
// loses its power.
#pragma once

#include "base/async/task.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <list>
#include <memory>

namespace muster::test {

class Relay {
 public:
  explicit Relay(std::uint16_t to)
      : to_(asio::ip::address_v4::loopback(), to),
        acceptor_(io, {asio::ip::address_v4::loopback(), 0}) {
    asio::co_spawn(io, acceptAll(), [](std::exception_ptr) {});
  }
  ~Relay() {
    acceptor_.close();
    cut();
    io.restart();
    io.poll();
  }
  Relay(const Relay&) = delete;

  asio::io_context io;
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  std::size_t connections() const { return pairs_.size(); }
  int accepted() const { return accepted_; }
  /// Both ends of every connection are reset.
  void cut() {
    for (auto& pair : pairs_) pair->reset();
  }

 private:
  using tcp = asio::ip::tcp;
  struct Pair {
    explicit Pair(tcp::socket from, asio::io_context& io) : near(std::move(from)), far(io) {}
    tcp::socket near, far;
    int pumps = 0;
    void reset() {
      boost::system::error_code ignored;
      for (auto* socket : {&near, &far}) {
        socket->set_option(asio::socket_base::linger(true, 0), ignored);
        socket->close(ignored);
      }
    }
  };
  using Shared = std::shared_ptr<Pair>;

  Task<void> acceptAll() {
    while (acceptor_.is_open()) {
      boost::system::error_code error;
      auto socket =
          co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return;
      ++accepted_;
      auto pair = std::make_shared<Pair>(std::move(socket), io);
      co_await pair->far.async_connect(to_, asio::redirect_error(asio::use_awaitable, error));
      if (error) continue;
      pairs_.push_back(pair);
      pair->pumps = 2;
      asio::co_spawn(io, pump(pair, &pair->near, &pair->far), [](std::exception_ptr) {});
      asio::co_spawn(io, pump(pair, &pair->far, &pair->near), [](std::exception_ptr) {});
    }
  }
  Task<void> pump(Shared pair, tcp::socket* from, tcp::socket* to) {
    std::array<char, 16'384> buffer{};
    boost::system::error_code error;
    while (!error) {
      const auto bytes = co_await from->async_read_some(
          asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
      if (error) break;
      co_await asio::async_write(*to, asio::buffer(buffer.data(), bytes),
                                 asio::redirect_error(asio::use_awaitable, error));
    }
    boost::system::error_code ignored;
    pair->near.close(ignored);
    pair->far.close(ignored);
    if (--pair->pumps == 0) std::erase(pairs_, pair);
  }

  const tcp::endpoint to_;
  tcp::acceptor acceptor_;
  std::list<Shared> pairs_;
  int accepted_ = 0;
};

}  // namespace muster::test
