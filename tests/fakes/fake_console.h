// SPDX-License-Identifier: Apache-2.0
// FakeConsole: serial lines in memory. A test says what the machine writes, and whether the line
// can be opened.
#pragma once

#include "bmc/console/source.h"

#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <memory>

namespace muster::test {

/// One machine's line; sources of it and the test share it.
struct FakeSerial {
  std::deque<std::string> said;     ///< not read yet
  std::string typed;                ///< what came from the operator's side
  std::optional<Error> refuse;      ///< what open answers
  bool closes_when_hung_up = true;  ///< as ipmitool does
  std::string turned_away;          ///< not empty: every session says this and closes
  bool closed = false;
  int opened = 0, open_now = 0, evicted = 0;
  std::shared_ptr<asio::steady_timer> bell;

  void say(std::string text) {
    said.push_back(std::move(text));
    notify();
  }
  void close() {
    closed = true;
    notify();
  }
  void notify() {
    if (bell) bell->cancel();
  }
};

class FakeConsole final : public bmc::ConsoleSource {
 public:
  explicit FakeConsole(std::shared_ptr<FakeSerial> serial) : serial_(std::move(serial)) {}
  std::string name() const override { return "the fake line"; }
  Async<std::unique_ptr<io::Dialogue>> open() override {
    if (serial_->refuse) co_return fail(*serial_->refuse);
    serial_->bell = std::make_shared<asio::steady_timer>(co_await asio::this_coro::executor,
                                                         asio::steady_timer::time_point::max());
    serial_->closed = !serial_->turned_away.empty();
    if (serial_->closed) serial_->said.push_back(serial_->turned_away);
    ++serial_->opened;
    co_return std::unique_ptr<io::Dialogue>(std::make_unique<Line>(serial_));
  }
  Async<void> evict() override {
    ++serial_->evicted;
    co_return Result<void>();
  }

 private:
  class Line final : public io::Dialogue {
   public:
    explicit Line(std::shared_ptr<FakeSerial> serial) : serial_(std::move(serial)) {
      ++serial_->open_now;
    }
    ~Line() override { --serial_->open_now; }
    Async<std::string> read() override {
      while (serial_->said.empty() && !serial_->closed) {
        boost::system::error_code ignored;
        auto bell = serial_->bell;
        co_await bell->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        if ((co_await asio::this_coro::cancellation_state).cancelled() !=
            asio::cancellation_type::none)
          throw boost::system::system_error(asio::error::operation_aborted);
      }
      if (serial_->said.empty()) co_return std::string();
      auto piece = std::move(serial_->said.front());
      serial_->said.pop_front();
      co_return piece;
    }
    Async<void> write(std::string bytes) override {
      serial_->typed += bytes;
      co_return Result<void>();
    }
    void hangUp() override {
      if (serial_->closes_when_hung_up) serial_->close();
    }

   private:
    std::shared_ptr<FakeSerial> serial_;
  };
  std::shared_ptr<FakeSerial> serial_;
};

}  // namespace muster::test
