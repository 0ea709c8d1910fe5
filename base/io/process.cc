// SPDX-License-Identifier: Apache-2.0
// Programs that are run to their end, and daemons. The kernel's pidfd tells when they end (spawn.h
// starts them).
#include "base/io/process.h"

#include "base/io/files.h"
#include "base/io/spawn.h"

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/writable_pipe.hpp>
#include <boost/asio/write.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <thread>
extern "C" {  // glibc 2.36 forgot to say so
#include <sys/pidfd.h>
}

namespace muster::io {

using boost::system::error_code;

namespace {

constexpr std::size_t kPipePieceBytes = 64u << 10;
/// After the program has ended, how long a grandchild that kept its output open may delay the
/// answer.
constexpr std::chrono::milliseconds kDrainGrace{500};
constexpr std::size_t kQuotedStderrBytes = 2000;
constexpr std::chrono::milliseconds kReapPoll{10};

/// One run: pipes, the process, and the promise that neither outlives the coroutine.
struct Running {
  asio::writable_pipe in;
  asio::readable_pipe out, err;
  asio::posix::stream_descriptor ended;  ///< pidfd; readable when the process has ended
  asio::steady_timer limit, drain;
  pid_t pid = -1;
  bool timed_out = false, overflow = false;
  int open_outputs = 2;
  ProcessExit exit;

  explicit Running(const asio::any_io_executor& executor)
      : in(executor),
        out(executor),
        err(executor),
        ended(executor),
        limit(executor),
        drain(executor) {}
  ~Running() {
    if (pid < 0) return;
    killGroup();
    reap(pid, 0);
  }
  void killGroup() const {
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);  // the group does not exist yet when exec has not been reached
  }
};
using Run = std::shared_ptr<Running>;

Result<void> launch(Running& run, const Command& command) {
  int in[2], out[2], err[2];
  if (::pipe2(in, O_CLOEXEC) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  Fd in_read(in[0]), in_write(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  Fd out_read(out[0]), out_write(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  Fd err_read(err[0]), err_write(err[1]);
  TRY(pid, spawn(command, Bond::DiesWithMuster, in_read.get(), out_write.get(), err_write.get()));
  run.pid = pid;
  Fd pidfd(::pidfd_open(pid, 0));
  if (!pidfd.valid())
    return fail(ErrorCode::Internal, fmt::format("pidfd_open: {}", std::strerror(errno)));
  error_code error;
  run.in.assign(in_write.release(), error);
  run.out.assign(out_read.release(), error);
  run.err.assign(err_read.release(), error);
  run.ended.assign(pidfd.release(), error);
  if (error) return fail(ErrorCode::Internal, "cannot watch the process: " + error.message());
  return {};
}

Task<void> feed(Run run, std::string text) {
  error_code error;  // a program need not read its input
  if (!text.empty()) {
    co_await asio::async_write(run->in, asio::buffer(text),
                               asio::redirect_error(asio::use_awaitable, error));
  }
  run->in.close(error);
}

Task<void> collect(Run run, asio::readable_pipe& pipe, std::string& into, std::size_t max_bytes) {
  std::vector<char> piece(kPipePieceBytes);
  for (;;) {
    error_code error;
    const auto n = co_await pipe.async_read_some(asio::buffer(piece),
                                                 asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
    if (into.size() + n > max_bytes) {
      run->overflow = true;
      run->killGroup();
      break;
    }
    into.append(piece.data(), n);
  }
  if (--run->open_outputs == 0) run->drain.cancel();
}

/// Ends when the process has ended and its output is read.
Task<void> awaitEnd(Run run) {
  error_code error;
  co_await run->ended.async_wait(asio::posix::stream_descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, error));
  run->limit.cancel();
  run->in.close(error);
  if (run->open_outputs > 0) {
    run->drain.expires_after(kDrainGrace);
    co_await run->drain.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
  run->out.close(error);
  run->err.close(error);
}

Task<void> watch(Run run, std::chrono::seconds timeout) {
  error_code error;
  run->limit.expires_after(timeout);
  co_await run->limit.async_wait(asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return;
  run->timed_out = true;
  run->killGroup();
}

Async<ProcessExit> runCommand(Command command) {
  using namespace asio::experimental::awaitable_operators;
  auto executor = co_await asio::this_coro::executor;
  auto run = std::make_shared<Running>(executor);
  CO_TRY_OK(launch(*run, command));
  auto input = feed(run, std::move(command.stdin_text));
  auto out = collect(run, run->out, run->exit.out, command.max_output_bytes);
  auto err = collect(run, run->err, run->exit.err, command.max_output_bytes);
  auto end = awaitEnd(run);
  auto limit = watch(run, command.timeout);
  auto streams = std::move(input) && std::move(out);
  auto more = std::move(streams) && std::move(err);
  auto ends = std::move(end) && std::move(limit);
  co_await (std::move(more) && std::move(ends));

  ::kill(-run->pid, SIGKILL);  // whatever it left behind in its group
  run->exit.code = reap(run->pid, 0).value_or(255);
  run->pid = -1;
  if (run->timed_out) {
    co_return fail(ErrorCode::Timeout, fmt::format("{} did not finish within {} s and was killed",
                                                   command.str(), command.timeout.count()));
  }
  if (run->overflow) {
    co_return fail(ErrorCode::Internal, fmt::format("{} printed more than {} bytes and was killed",
                                                    command.str(), command.max_output_bytes));
  }
  co_return std::move(run->exit);
}

Result<Fd> openLog(const std::filesystem::path& file) {
  const auto path = file.empty() ? std::filesystem::path("/dev/null") : file;
  // Without O_NONBLOCK a FIFO would hold us up until somebody reads; it is no log with it either.
  Fd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
               0600));
  struct stat status{};
  if (fd.valid() && ::fstat(fd.get(), &status) == 0 && S_ISFIFO(status.st_mode))
    return fail(ErrorCode::Internal,
                fmt::format("{} is a FIFO, which is no log; remove it", path.string()));
  if (!fd.valid())
    return fail(ErrorCode::Internal,
                fmt::format("cannot open {}: {}", path.string(), std::strerror(errno)));
  return fd;
}

Result<pid_t> spawnDaemon(const Command& command, const std::filesystem::path& log_file,
                          Bond bond) {
  TRY(log, openLog(log_file));
  Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.valid())
    return fail(ErrorCode::Internal,
                fmt::format("cannot open /dev/null: {}", std::strerror(errno)));
  return spawn(command, bond, null.get(), log.get(), log.get());
}

class DaemonChild final : public Child {
 public:
  explicit DaemonChild(pid_t pid) : pid_(pid) {}
  ~DaemonChild() override { terminate(std::chrono::seconds(2)); }
  pid_t pid() const override { return pid_; }
  bool running() override {
    if (!ended_) ended_ = reap(pid_, WNOHANG).has_value();
    return !ended_;
  }
  void signal(int number) override {
    if (running()) ::kill(pid_, number);
  }
  void terminate(std::chrono::milliseconds grace) override {
    if (!running()) return;
    ::kill(-pid_, SIGTERM);
    const auto until = std::chrono::steady_clock::now() + grace;
    while (running() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(kReapPoll);
    if (!running()) return;
    ::kill(-pid_, SIGKILL);
    reap(pid_, 0);
    ended_ = true;
  }

 private:
  pid_t pid_;
  bool ended_ = false;
};

class SystemProcessRunner final : public ProcessRunner {
 public:
  Async<ProcessExit> run(Command command) override { return runCommand(std::move(command)); }
  Result<std::unique_ptr<Child>> start(Command command, std::filesystem::path log_file) override {
    TRY(pid, spawnDaemon(command, log_file, Bond::DiesWithMuster));
    return std::make_unique<DaemonChild>(pid);
  }
  Result<pid_t> startDetached(Command command, std::filesystem::path log_file) override {
    return spawnDaemon(command, log_file, Bond::OutlivesMuster);
  }
};

/// State letter and start time in clock ticks since boot, from /proc/PID/stat.
struct ProcessStat {
  char state = 0;
  std::uint64_t start_ticks = 0;
};

std::optional<ProcessStat> statOf(pid_t pid) {
  const auto text = readFile(fmt::format("/proc/{}/stat", pid));
  if (!text) return std::nullopt;
  auto at = text->rfind(')');  // the program's name may hold blanks and parentheses
  if (at == std::string::npos || at + 2 >= text->size()) return std::nullopt;
  ProcessStat stat{(*text)[at + 2], 0};
  constexpr int kStartTimeField = 22;
  int field = 2;
  for (at += 1; at < text->size(); ++at) {
    if ((*text)[at] != ' ') continue;
    if (++field < kStartTimeField) continue;
    std::from_chars(text->data() + at + 1, text->data() + text->size(), stat.start_ticks);
    return stat;
  }
  return std::nullopt;
}

std::string bootId() {
  auto id = readFile("/proc/sys/kernel/random/boot_id");
  if (!id) return "?";
  while (!id->empty() && id->back() == '\n') id->pop_back();
  return *id;
}

bool awaitPidfd(int pidfd, std::chrono::milliseconds limit) {
  pollfd wait{pidfd, POLLIN, 0};
  return ::poll(&wait, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace

std::string Command::str() const {
  std::string out = program;
  for (const auto& arg : args) out += " " + arg;
  return out;
}

std::unique_ptr<ProcessRunner> makeProcessRunner() {
  ignoreBrokenPipes();
  return std::make_unique<SystemProcessRunner>();
}

Result<ProcessExit> runBlocking(const Command& command) {
  ignoreBrokenPipes();
  asio::io_context io;
  std::optional<Result<ProcessExit>> answer;
  asio::co_spawn(io, runCommand(command),
                 [&answer](std::exception_ptr thrown, Result<ProcessExit> result) {
                   if (!thrown) answer = std::move(result);
                 });
  io.run();
  if (!answer) return fail(ErrorCode::Internal, "running " + command.str() + " was interrupted");
  return std::move(*answer);
}

Result<std::string> runChecked(const Command& command) {
  TRY(exit, runBlocking(command));
  if (exit.code == 0) return std::move(exit.out);
  auto said = exit.err.empty() ? exit.out : exit.err;
  if (said.size() > kQuotedStderrBytes) said = "…" + said.substr(said.size() - kQuotedStderrBytes);
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return fail(ErrorCode::Internal,
              fmt::format("{} ended with code {}: {}", command.str(), exit.code, said));
}

Result<void> PidFile::write(pid_t pid) const {
  const auto stat = statOf(pid);
  if (!stat) return fail(ErrorCode::NotFound, fmt::format("process {} does not live", pid));
  return writeFileAtomic(path, fmt::format("{} {} {}\n", pid, stat->start_ticks, bootId()));
}

std::optional<pid_t> PidFile::alive() const {
  const auto text = readFile(path, 4096);
  if (!text) return std::nullopt;
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  char boot[64] = {};
  if (std::sscanf(text->c_str(), "%d %lu %63s", &pid, &start_ticks, boot) != 3 || pid <= 0 ||
      boot != bootId())
    return std::nullopt;
  const auto stat = statOf(pid);
  if (!stat || stat->state == 'Z' || stat->state == 'X' || stat->start_ticks != start_ticks)
    return std::nullopt;
  return pid;
}

Result<void> PidFile::terminate(std::chrono::milliseconds grace) const {
  const auto pid = alive();
  if (pid) {
    Fd pidfd(::pidfd_open(*pid, 0));
    // Asked again: between alive() and pidfd_open the pid could have been handed to another
    // process.
    if (pidfd.valid() && alive() == pid) {
      ::pidfd_send_signal(pidfd.get(), SIGTERM, nullptr, 0);
      if (!awaitPidfd(pidfd.get(), grace)) {
        ::pidfd_send_signal(pidfd.get(), SIGKILL, nullptr, 0);
        if (!awaitPidfd(pidfd.get(), grace))
          return fail(ErrorCode::Timeout, fmt::format("process {} does not end", *pid));
      }
      ::waitpid(*pid, nullptr, WNOHANG);  // when it is our own child
    }
  }
  std::error_code error;
  std::filesystem::remove(path, error);
  return {};
}

std::size_t raiseDescriptorLimit(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  const rlimit beyond{
      wanted, std::max<rlim_t>(limit.rlim_max, wanted)};  // only root may go beyond the hard limit
  if (::setrlimit(RLIMIT_NOFILE, &beyond) == 0) return beyond.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace muster::io
