// SPDX-License-Identifier: Apache-2.0
#include "base/io/daemon_server.h"

#include "base/io/files.h"
#include "base/io/json_lines.h"
#include "base/io/peer_credentials.h"
#include "base/io/spawn.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/log.h"
#include "base/printable.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <list>
#include <memory>
extern "C" {  // glibc 2.36 forgot to say so
#include <sys/pidfd.h>
}

namespace muster::io {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMaxConnections = 16;
/// Lists of GUIDs of the largest fabric, as JSON.
constexpr std::size_t kMaxRequestBytes = 16u << 20;
constexpr milliseconds kSendLimit{1'000};
constexpr std::size_t kQuotedBytes = 600;  ///< of the daemon's last words
/// Who was refused stays for so long, or until he hangs up: a connection that is closed before what
/// came on it was read is a reset one for its other side, which then may never see the words.
constexpr milliseconds kRefusedStay{1'000};
constexpr std::size_t kMaxRefused = 8;  ///< the oldest goes

struct AskingSide {
  explicit AskingSide(Fd opened) : fd(std::move(opened)), lines(fd.get(), kMaxRequestBytes) {}
  Fd fd;
  LineReader lines;
};
using Asker = std::shared_ptr<AskingSide>;

/// Was told so; what he sends is read, and not looked at.
struct RefusedSide {
  Fd fd;
  steady_clock::time_point until;
};

/// False: nothing more comes.
bool readAway(int fd) {
  std::array<char, 64u << 10> piece;
  const auto got = ::read(fd, piece.data(), piece.size());
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

json errorLine(const Error& error) {
  return {{"error", std::string(toString(error.code()))}, {"text", error.str()}};
}

class DaemonServer {
 public:
  DaemonServer(int listening, const ServedDaemon& daemon, const DaemonServerOptions& options)
      : listening_(listening), daemon_(daemon), options_(options) {}
  ~DaemonServer() {
    if (pid_ > 0) {
      ::kill(-pid_, SIGKILL);
      reap(pid_, 0);
    }
  }

  Result<void> run();

 private:
  void accept();
  void refuse(const Asker& asker, const Error& why);
  /// `polled`: one for each of refused_, in their order.
  void lookAtRefused(const pollfd* polled);
  /// False: the connection has ended.
  bool serve(const Asker& asker);
  void answer(const Asker& asker, const json& request);
  Result<void> write(const json& files, bool at_start);
  Result<void> start(const Asker& asker, const json& files);
  Result<void> launch();
  void end();
  void pass();
  void lookAtDaemon();
  void drop(const Asker& asker);
  void say(const Asker& asker, const json& line) const {
    if (const auto sent = sendJsonLine(asker->fd.get(), line, kSendLimit); !sent)
      logWarning(daemon_.name, "who asked was not answered: {}", sent.error().str());
  }
  milliseconds patience() const;

  struct Waiting {
    Asker asker;
    json request;
  };

  int listening_;
  const ServedDaemon& daemon_;
  const DaemonServerOptions& options_;
  std::vector<Asker> askers_;
  std::list<RefusedSide> refused_;
  Asker holder_;                  ///< who has started it, where it ends with that
  std::vector<Waiting> waiting_;  ///< until the daemon that is being ended has ended
  pid_t pid_ = -1;
  Fd pidfd_, output_;
  std::string words_;  ///< its last ones
  std::optional<steady_clock::time_point> kill_at_;
  steady_clock::time_point idle_since_ = steady_clock::now();
};

Result<void> DaemonServer::run() {
  while (true) {
    std::vector<pollfd> wait{{listening_, POLLIN, 0}};
    if (pid_ > 0) wait.push_back({pidfd_.get(), POLLIN, 0});
    if (output_.valid()) wait.push_back({output_.get(), POLLIN, 0});
    const auto first = wait.size();
    for (const auto& asker : askers_) wait.push_back({asker->fd.get(), POLLIN | POLLRDHUP, 0});
    const auto first_refused = wait.size();
    for (const auto& side : refused_) wait.push_back({side.fd.get(), POLLIN | POLLRDHUP, 0});
    if (pid_ > 0 || !askers_.empty()) idle_since_ = steady_clock::now();
    const int ready = ::poll(wait.data(), wait.size(), static_cast<int>(patience().count()));
    if (ready < 0 && errno != EINTR)
      return fail(ErrorCode::Internal, fmt::format("poll: {}", std::strerror(errno)));
    if ((wait.front().revents & (POLLERR | POLLNVAL)) != 0)
      return fail(ErrorCode::Internal, "the descriptor is no listening socket");
    lookAtRefused(wait.data() + first_refused);  // before others join them
    pass();
    lookAtDaemon();
    const auto heard = askers_;  // who is there changes while they are served
    for (std::size_t at = 0; at < heard.size(); ++at)
      if (wait[first + at].revents != 0 && !serve(heard[at])) drop(heard[at]);
    if ((wait.front().revents & POLLIN) != 0) accept();
    if (askers_.empty() && pid_ <= 0 && steady_clock::now() - idle_since_ >= options_.idle)
      return {};
  }
}

milliseconds DaemonServer::patience() const {
  const auto now = steady_clock::now();
  const auto until = [now](steady_clock::time_point then) {
    return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(then - now));
  };
  auto first = steady_clock::time_point::max();
  if (kill_at_)
    first = *kill_at_;
  else if (pid_ <= 0 && askers_.empty())
    first = idle_since_ + options_.idle;
  for (const auto& side : refused_) first = std::min(first, side.until);
  return first == steady_clock::time_point::max() ? milliseconds(-1) : until(first);
}

void DaemonServer::accept() {
  Fd fd(::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  const auto asker = std::make_shared<AskingSide>(std::move(fd));
  const auto peer = peerCredentials(asker->fd.get());
  if (!peer || (options_.asker && peer->uid != *options_.asker))
    return refuse(asker, Error(ErrorCode::Denied, fmt::format("user {} may not ask for {}",
                                                              peer ? peer->uid : 0, daemon_.name)));
  if (askers_.size() >= kMaxConnections)
    return refuse(asker, Error(ErrorCode::Unavailable, "too many connections"));
  askers_.push_back(asker);
}

void DaemonServer::refuse(const Asker& asker, const Error& why) {
  say(asker, errorLine(why));
  ::shutdown(asker->fd.get(), SHUT_WR);
  if (refused_.size() >= kMaxRefused) refused_.erase(refused_.begin());
  refused_.push_back({std::move(asker->fd), steady_clock::now() + kRefusedStay});
}

void DaemonServer::lookAtRefused(const pollfd* polled) {
  const auto now = steady_clock::now();
  for (auto side = refused_.begin(); side != refused_.end();) {
    const bool is_ready = (polled++)->revents != 0;
    const bool stays = now < side->until && (!is_ready || readAway(side->fd.get()));
    side = stays ? std::next(side) : refused_.erase(side);
  }
}

bool DaemonServer::serve(const Asker& asker) {
  while (true) {
    const auto line = asker->lines.next(steady_clock::now());
    if (!line && line.error().code() == ErrorCode::Timeout) return true;
    if (!line) {
      if (line.error().code() != ErrorCode::InvalidInput) return false;
      // Whose daemon runs is told of its end, too.
      if (asker == holder_)
        say(asker, errorLine(line.error()));
      else
        refuse(asker, line.error());
      return false;
    }
    const auto request = parseJson(*line, kRequestJson);
    if (request)
      answer(asker, *request);
    else
      say(asker, errorLine(request.error()));
  }
}

void DaemonServer::drop(const Asker& asker) {
  std::erase(askers_, asker);
  std::erase_if(waiting_, [&asker](const Waiting& each) { return each.asker == asker; });
  if (holder_ != asker) return;
  end();
  // Told when it has ended: who asks may still read.
  if (pid_ <= 0) holder_.reset();
}

void DaemonServer::answer(const Asker& asker, const json& request) {
  const bool one = request.is_object() && request.size() == 1;
  if (one && request.contains("start")) {
    if (pid_ > 0 && holder_ && std::ranges::find(askers_, holder_) != askers_.end())
      return say(asker,
                 errorLine(Error(ErrorCode::Conflict,
                                 fmt::format("{} (process {}) runs for another muster of this host",
                                             daemon_.name, pid_))));
    if (pid_ > 0) {
      end();
      waiting_.push_back({asker, request});
      return;
    }
    if (const auto started = start(asker, request["start"]); !started)
      return say(asker, errorLine(started.error()));
    return say(asker, {{"pid", pid_}});
  }
  if (one && request.contains("write")) {
    auto written = write(request["write"], false);
    return say(asker, written ? json{{"done", true}} : errorLine(written.error()));
  }
  if (one && request.contains("stop")) {
    if (pid_ <= 0) return say(asker, {{"done", true}});
    end();
    waiting_.push_back({asker, request});
    return;
  }
  if (one && muster::textOf(request, "signal") == "hup") {
    if (pid_ <= 0 || ::kill(pid_, SIGHUP) != 0)
      return say(asker, errorLine(Error(ErrorCode::Unavailable, daemon_.name + " does not run")));
    return say(asker, {{"done", true}});
  }
  say(asker,
      errorLine(Error(
          ErrorCode::InvalidInput,
          R"(asked is one of {"start": {FILE: TEXT}}, {"write": …}, {"signal": "hup"}, {"stop": true})")));
}

/// All are looked at before one is written.
Result<void> DaemonServer::write(const json& files, bool at_start) {
  if (!files.is_object()) return fail(ErrorCode::InvalidInput, "files are {NAME: TEXT}");
  for (const auto& [name, text] : files.items()) {
    if (!text.is_string()) return fail(ErrorCode::InvalidInput, name + " is no text");
    auto fine = daemon_.check(name, text.get_ref<const std::string&>());
    if (!fine) return fail(std::move(fine).error().within(name));
  }
  std::error_code error;
  for (const auto& [name, text] : files.items()) {
    const auto path = options_.folder / name;
    const bool only_first = std::ranges::find(daemon_.first, name) != daemon_.first.end();
    if (only_first && (!at_start || std::filesystem::exists(path, error))) continue;
    TRY_OK(writeFileAtomic(path, text.get_ref<const std::string&>(), 0640));
  }
  return {};
}

Result<void> DaemonServer::start(const Asker& asker, const json& files) {
  for (const auto& name : daemon_.needed)
    if (!files.is_object() || !files.contains(name))
      return fail(ErrorCode::InvalidInput, fmt::format("{} needs {}", daemon_.name, name));
  TRY_OK(write(files, true));
  TRY_OK(launch());
  if (daemon_.ends_with_asker) holder_ = asker;
  logInfo(daemon_.name, "process {} runs", pid_);
  return {};
}

Result<void> DaemonServer::launch() {
  std::error_code ignored;
  for (const auto& name : daemon_.removed) std::filesystem::remove(options_.folder / name, ignored);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorCode::Unavailable,
                fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  Fd output(ends[0]), say(ends[1]);
  ::fcntl(output.get(), F_SETFL, O_NONBLOCK);
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  auto command = daemon_.command;
  command.working_dir = options_.folder;
  TRY(pid, spawn(command, Bond::DiesWithMuster, null.get(), say.get(), say.get()));
  Fd pidfd(::pidfd_open(pid, 0));
  if (!pidfd.valid()) {
    ::kill(pid, SIGKILL);
    reap(pid, 0);
    return fail(ErrorCode::Internal, fmt::format("pidfd_open: {}", std::strerror(errno)));
  }
  pid_ = pid;
  pidfd_ = std::move(pidfd);
  output_ = std::move(output);
  words_.clear();
  return {};
}

void DaemonServer::end() {
  if (pid_ <= 0 || kill_at_) return;
  ::kill(-pid_, SIGTERM);
  ::kill(pid_, SIGTERM);
  kill_at_ = steady_clock::now() + options_.grace;
}

/// Its words go to the journal, and the last ones to who asked when it ends.
void DaemonServer::pass() {
  std::array<char, 4096> piece;
  for (ssize_t got; output_.valid();) {
    got = ::read(output_.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) output_ = Fd();
    if (got <= 0) return;
    const std::string_view said(piece.data(), static_cast<std::size_t>(got));
    for (auto left = said; !left.empty();) {
      const auto put = ::write(STDERR_FILENO, left.data(), left.size());
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) break;
      left.remove_prefix(static_cast<std::size_t>(put));
    }
    words_ += said;
    if (words_.size() > kQuotedBytes) words_.erase(0, words_.size() - kQuotedBytes);
  }
}

void DaemonServer::lookAtDaemon() {
  if (pid_ <= 0) return;
  const auto code = reap(pid_, WNOHANG);
  if (!code) {
    if (kill_at_ && steady_clock::now() >= *kill_at_) {
      ::kill(-pid_, SIGKILL);
      kill_at_ = steady_clock::now() + options_.grace;
    }
    return;
  }
  pass();
  while (words_.ends_with('\n')) words_.pop_back();
  const auto text = fmt::format("{} (process {}) ended with code {}{}", daemon_.name, pid_, *code,
                                words_.empty() ? "" : ": " + printable(words_));
  logInfo(daemon_.name, "{}", text);
  pid_ = -1;
  pidfd_ = Fd();
  output_ = Fd();
  kill_at_.reset();
  if (const auto holder = std::exchange(holder_, nullptr)) say(holder, {{"ended", text}});
  for (auto& [asker, request] : std::exchange(waiting_, {})) answer(asker, request);
}

}  // namespace

Result<void> serveDaemon(int listening, const ServedDaemon& daemon,
                         const DaemonServerOptions& options) {
  ignoreBrokenPipes();
  return DaemonServer(listening, daemon, options).run();
}

}  // namespace muster::io
