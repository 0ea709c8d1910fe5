// SPDX-License-Identifier: Apache-2.0
#include "bmc/console/shared.h"

#include "base/io/files.h"

#include <fmt/format.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include <sys/stat.h>

#include <array>
#include <list>

namespace muster::bmc {

using boost::system::error_code;
using Local = asio::local::stream_protocol;

namespace {

/// Somebody who reads along.
struct Watcher {
  explicit Watcher(Local::socket s) : socket(std::move(s)) {}
  Local::socket socket;
  std::string waiting, sending;
  std::size_t lost = 0;
  std::array<char, io::kDialoguePieceBytes> typed{};
};

/// The line and who is at it. Handlers hold it, so it may outlive the SharedLine by a moment, but
/// nothing is read or written by then.
class Hub : public std::enable_shared_from_this<Hub> {
 public:
  Hub(asio::any_io_executor executor, io::FileLock lock, std::unique_ptr<io::Dialogue> line)
      : executor_(executor), lock_(std::move(lock)), line_(std::move(line)), acceptor_(executor) {}

  Result<void> serve(const std::filesystem::path& path) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);  // of a holder that died: the lock is ours
    error_code error;
    acceptor_.open(Local(), error);
    if (!error) acceptor_.bind(Local::endpoint(path.string()), error);
    if (!error) ::chmod(path.c_str(), 0600);
    if (!error) acceptor_.listen(static_cast<int>(kMaxWatchers), error);
    if (error)
      return fail(ErrorCode::Unavailable, fmt::format("the console cannot be shared at {}: {}",
                                                      path.string(), error.message()));
    path_ = path;
    accept();
    return {};
  }

  io::Dialogue& line() { return *line_; }

  void feed(std::string_view piece) {
    for (auto& watcher : watchers_) {
      if (watcher->waiting.size() + piece.size() > kWatcherBytes) {
        watcher->lost += watcher->waiting.size();
        watcher->waiting.clear();
      }
      watcher->waiting += piece;
      send(watcher);
    }
  }

  /// Whoever types, one piece after the other.
  Result<void> type(std::string_view bytes) {
    if (typed_.size() + bytes.size() > kTypedBytes)
      return fail(ErrorCode::Unavailable, "the line does not take what is typed");
    typed_ += bytes;
    if (!writing_ && !stopped_) {
      writing_ = true;
      asio::co_spawn(executor_, writeTyped(shared_from_this()),
                     asio::bind_cancellation_slot(end_.slot(), [](const std::exception_ptr&) {}));
    }
    return {};
  }

  void stop() {
    stopped_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    for (auto& watcher : watchers_) watcher->socket.close(ignored);
    watchers_.clear();
    if (writing_)
      end_.emit(asio::cancellation_type::terminal);  // the slot of one that has ended leads nowhere
    std::error_code gone;
    std::filesystem::remove(path_, gone);
  }

 private:
  using At = std::shared_ptr<Watcher>;

  void accept() {
    acceptor_.async_accept([self = shared_from_this()](error_code error, Local::socket socket) {
      if (self->stopped_ || error)
        return;  // no descriptors are left, say: who listens already goes on
      if (self->watchers_.size() < kMaxWatchers) {
        auto watcher = std::make_shared<Watcher>(std::move(socket));
        self->watchers_.push_back(watcher);
        self->listen(watcher);
      }
      self->accept();
    });
  }

  void leave(const At& watcher) {
    error_code ignored;
    watcher->socket.close(ignored);
    watchers_.remove(watcher);
  }

  void listen(const At& watcher) {
    watcher->socket.async_read_some(
        asio::buffer(watcher->typed),
        [self = shared_from_this(), watcher](error_code error, std::size_t count) {
          if (error || self->stopped_ || !self->type({watcher->typed.data(), count}))
            return self->leave(watcher);
          self->listen(watcher);
        });
  }

  void send(const At& watcher) {
    if (!watcher->sending.empty() || watcher->waiting.empty()) return;
    if (const auto lost = std::exchange(watcher->lost, 0))
      watcher->sending =
          fmt::format("\r\n[muster: {} bytes are left out: this reader is slow]\r\n", lost);
    watcher->sending += std::exchange(watcher->waiting, {});
    asio::async_write(watcher->socket, asio::buffer(watcher->sending),
                      [self = shared_from_this(), watcher](error_code error, std::size_t) {
                        watcher->sending.clear();
                        if (error || self->stopped_) return self->leave(watcher);
                        self->send(watcher);
                      });
  }

  static Task<void> writeTyped(std::shared_ptr<Hub> self) {
    while (!self->typed_.empty() && !self->stopped_) {
      if (auto written = co_await self->line_->write(std::exchange(self->typed_, {})); !written)
        break;  // the reader sees the line's end too
    }
    self->writing_ = false;
  }

  asio::any_io_executor executor_;
  io::FileLock lock_;
  std::unique_ptr<io::Dialogue> line_;
  Local::acceptor acceptor_;
  std::filesystem::path path_;
  std::list<At> watchers_;
  std::string typed_;
  bool writing_ = false, stopped_ = false;
  asio::cancellation_signal end_;
};

class SharedLine final : public io::Dialogue {
 public:
  explicit SharedLine(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}
  ~SharedLine() override { hub_->stop(); }
  Async<std::string> read() override {
    auto hub = hub_;
    auto piece = co_await hub->line().read();
    if (piece) hub->feed(*piece);
    co_return piece;
  }
  Async<void> write(std::string bytes) override { co_return hub_->type(bytes); }
  void hangUp() override { hub_->line().hangUp(); }

 private:
  std::shared_ptr<Hub> hub_;
};

class SharedConsole final : public ConsoleSource {
 public:
  SharedConsole(std::unique_ptr<ConsoleSource> source, std::filesystem::path run_folder,
                NodeName node)
      : source_(std::move(source)), run_(std::move(run_folder)), node_(std::move(node)) {}

  std::string name() const override { return source_->name(); }

  Async<std::unique_ptr<io::Dialogue>> open() override {
    auto executor = co_await asio::this_coro::executor;
    CO_TRY_OK(io::makeDirs(run_, 0700));
    auto lock = io::FileLock::take(run_ / (node_.str() + ".lock"));
    const auto socket = run_ / (node_.str() + ".sock");
    if (!lock && lock.error().code() == ErrorCode::Conflict)
      co_return io::dialDialogue(executor, socket);
    if (!lock) co_return std::unexpected(std::move(lock).error());
    CO_TRY(line, co_await source_->open());
    auto hub = std::make_shared<Hub>(executor, std::move(*lock), std::move(line));
    CO_TRY_OK(hub->serve(socket));
    co_return std::unique_ptr<io::Dialogue>(std::make_unique<SharedLine>(std::move(hub)));
  }

  Async<void> evict() override { return source_->evict(); }

 private:
  std::unique_ptr<ConsoleSource> source_;
  std::filesystem::path run_;
  NodeName node_;
};

}  // namespace

std::unique_ptr<ConsoleSource> shareConsole(std::unique_ptr<ConsoleSource> source,
                                            std::filesystem::path run_folder, NodeName node) {
  return std::make_unique<SharedConsole>(std::move(source), std::move(run_folder), std::move(node));
}

}  // namespace muster::bmc
