// SPDX-License-Identifier: Apache-2.0
#include "base/io/dialogue.h"

#include "base/io/files.h"
#include "base/io/spawn.h"
#include "base/io/unix_client.h"

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/write.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace muster::io {

using boost::system::error_code;

namespace {

class StreamDialogue final : public Dialogue {
 public:
  StreamDialogue(const asio::any_io_executor& executor, Fd in, Fd out, pid_t pid, HangUp hang_up)
      : in_(executor), out_(executor), pid_(pid), hang_up_(hang_up) {
    error_code error;
    in_.assign(in.release(), error);
    out_.assign(out.release(), error);
  }
  ~StreamDialogue() override {
    if (pid_ < 0) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);  // the group does not exist yet when exec has not been reached
    reap(pid_, 0);
  }

  Async<std::string> read() override {
    std::string piece(kDialoguePieceBytes, '\0');
    error_code error;
    const auto count = co_await in_.async_read_some(
        asio::buffer(piece), asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) throw boost::system::system_error(error);
    // A terminal whose other side has closed says EIO; a socket that was never accepted is reset.
    const bool closed =
        error == asio::error::eof || error.value() == EIO || error.value() == ECONNRESET;
    if (error && !closed)
      co_return fail(ErrorCode::Unavailable, "the line broke: " + error.message());
    piece.resize(error ? 0 : count);
    co_return piece;
  }

  Async<void> write(std::string bytes) override {
    error_code error;
    co_await asio::async_write(out_, asio::buffer(bytes),
                               asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) throw boost::system::system_error(error);
    if (error) co_return fail(ErrorCode::Unavailable, "the line takes nothing: " + error.message());
    co_return Result<void>();
  }

  void hangUp() override {
    error_code ignored;
    if (pid_ < 0) ::shutdown(out_.native_handle(), SHUT_WR);
    out_.close(ignored);
    if (pid_ >= 0 && hang_up_ == HangUp::Terminate)
      ::kill(pid_, SIGTERM);  // ours until the destructor has waited for it
  }

 private:
  asio::posix::stream_descriptor in_, out_;
  pid_t pid_;
  HangUp hang_up_;
};

std::unexpected<Error> cannotDial(const std::filesystem::path& path, int number) {
  const auto code =
      number == EACCES || number == EPERM ? ErrorCode::Denied : ErrorCode::Unavailable;
  return fail(code, fmt::format("{}: {}", path.string(), std::strerror(number)));
}

Result<Fd> openTerminal(const std::filesystem::path& path) {
  Fd line(::open(path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (!line.valid()) return cannotDial(path, errno);
  termios mode{};
  if (::tcgetattr(line.get(), &mode) != 0)
    return fail(ErrorCode::InvalidInput,
                path.string() + " is neither a socket nor a terminal device");
  ::cfmakeraw(&mode);
  ::tcsetattr(line.get(), TCSANOW, &mode);
  return line;
}

}  // namespace

Result<std::unique_ptr<Dialogue>> startDialogue(asio::any_io_executor executor,
                                                const Command& command, HangUp hang_up) {
  ignoreBrokenPipes();
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  Fd in_read(in[0]), in_write(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  Fd out_read(out[0]), out_write(out[1]);
  TRY(pid, spawn(command, Bond::DiesWithMuster, in_read.get(), out_write.get(), out_write.get()));
  return std::make_unique<StreamDialogue>(executor, std::move(out_read), std::move(in_write), pid,
                                          hang_up);
}

Result<std::unique_ptr<Dialogue>> dialDialogue(asio::any_io_executor executor,
                                               const std::filesystem::path& path) {
  ignoreBrokenPipes();
  struct stat what{};
  if (::stat(path.c_str(), &what) != 0) return cannotDial(path, errno);
  auto line = S_ISSOCK(what.st_mode) ? dialUnixSocket(path) : openTerminal(path);
  if (!line) return std::unexpected(std::move(line).error());
  Fd again(::fcntl(line->get(), F_DUPFD_CLOEXEC, 0));
  if (!again.valid()) return cannotDial(path, errno);
  return std::make_unique<StreamDialogue>(executor, std::move(*line), std::move(again), -1,
                                          HangUp::EndOfInput);
}

}  // namespace muster::io
