// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <array>

namespace muster::cli {

using boost::system::error_code;

namespace {

/// Raw mode for as long as it lives; nothing when stdin is no terminal.
class RawTerminal {
 public:
  RawTerminal() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) return;
    changed_ = true;
    auto raw = before_;
    ::cfmakeraw(&raw);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  ~RawTerminal() {
    if (changed_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  termios before_{};
  bool changed_ = false;
};

bool show(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

Async<void> hear(io::Dialogue& line) {
  while (true) {
    CO_TRY(piece, co_await line.read());
    if (piece.empty() || !show(piece)) co_return Result<void>();
  }
}

Async<void> typeInto(io::Dialogue& line) {
  auto executor = co_await asio::this_coro::executor;
  asio::posix::stream_descriptor keys(executor);
  error_code error;
  keys.assign(::dup(STDIN_FILENO),
              error);  // files and /dev/null cannot be waited for: nothing is typed then
  std::array<char, io::kDialoguePieceBytes> piece;
  while (!error) {
    const auto count = co_await keys.async_read_some(
        asio::buffer(piece), asio::redirect_error(asio::use_awaitable, error));
    std::string typed(piece.data(), error ? 0 : count);
    if (typed.find(kLeaveKey) != std::string::npos) co_return Result<void>();
    if (typed.empty()) break;
    CO_TRY_OK(co_await line.write(std::move(typed)));
  }
  asio::steady_timer never(executor, asio::steady_timer::time_point::max());
  co_await never.async_wait(asio::redirect_error(asio::use_awaitable, error));
  co_return Result<void>();
}

/// The line is given back: a BMC must not believe for minutes that somebody is there.
Async<void> giveBack(io::Dialogue& line) {
  using namespace asio::experimental::awaitable_operators;
  line.hangUp();
  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::seconds(3));
  auto limit = timer.async_wait(asio::use_awaitable);
  auto end = [](io::Dialogue& rest) -> Async<void> {
    while (true) {
      CO_TRY(piece, co_await rest.read());
      if (piece.empty()) co_return Result<void>();
    }
  };
  auto ending = end(line);
  co_await (std::move(ending) || std::move(limit));
  co_return Result<void>();
}

}  // namespace

Async<void> talk(std::unique_ptr<io::Dialogue> line) {
  using namespace asio::experimental::awaitable_operators;
  RawTerminal raw;
  auto heard = hear(*line);
  auto typed = typeInto(*line);
  auto first = co_await (std::move(heard) || std::move(typed));
  (void)co_await giveBack(*line);
  if (first.index() == 0) co_return std::get<0>(std::move(first));
  co_return std::get<1>(std::move(first));
}

bool waitWhileRead(std::chrono::milliseconds time) {
  pollfd out{STDOUT_FILENO, 0, 0};  // no event is asked for: only an error or a hang-up ends it
  const int changed = ::poll(&out, 1, static_cast<int>(time.count()));
  return changed <= 0 || (out.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0;
}

}  // namespace muster::cli
