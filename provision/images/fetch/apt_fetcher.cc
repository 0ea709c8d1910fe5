// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/apt_fetcher.h"

#include "base/io/spawn.h"
#include "provision/images/fetch/apt_filter.h"
#include "provision/images/fetch/apt_message.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace muster::provision {
namespace {

namespace fs = std::filesystem;

using std::chrono::steady_clock;

constexpr int kLookMilliseconds = 1000;
constexpr std::size_t kPieceBytes = 64u << 10;
/// Of messages that the method has not read yet; apt asks for ten files ahead.
constexpr std::size_t kMaxUnreadBytes = 4u << 20;

/// Less is a full disk: the file system keeps some for itself.
constexpr std::uint64_t kLeastRoomBytes = 1u << 16;

class Method {
 public:
  static Result<std::unique_ptr<Method>> start(const AptFetcher& fetcher) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0)
      return fail(ErrorCode::Internal, fmt::format("no pipe: {}", std::strerror(errno)));
    const io::Fd in_read(in[0]);
    io::Fd in_write(in[1]);
    if (::pipe2(out, O_CLOEXEC) != 0)
      return fail(ErrorCode::Internal, fmt::format("no pipe: {}", std::strerror(errno)));
    io::Fd out_read(out[0]);
    const io::Fd out_write(out[1]);
    ::fcntl(in_write.get(), F_SETFL, O_NONBLOCK);
    io::Command command{.program = fetcher.method.string(), .env = fetcher.env};
    TRY(pid, io::spawn(command, io::Bond::DiesWithMuster, in_read.get(), out_write.get(),
                       STDERR_FILENO));
    return std::make_unique<Method>(pid, std::move(in_write), std::move(out_read));
  }
  Method(pid_t pid, io::Fd in_end, io::Fd out_end)
      : in(std::move(in_end)), out(std::move(out_end)), pid_(pid) {}
  ~Method() { (void)end(); }
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;

  /// How it ended: by itself, or now.
  int end() {
    if (pid_ == 0) return 0;
    ::kill(-pid_, SIGKILL);
    return io::reap(std::exchange(pid_, 0), 0).value_or(0);
  }

  io::Fd in, out;

 private:
  pid_t pid_;
};

class Fetcher {
 public:
  Fetcher(FetchSocket& asker, Method& method, const AptFetcher& fetcher)
      : asker_(asker),
        method_(method),
        folder_(fetcher.folder),
        sign_interval_(fetcher.sign_interval) {}

  Result<void> run(std::string begun) {
    TRY_OK(fromAsker(begun));
    while (true) {
      const bool has_room = to_method_.size() < kMaxUnreadBytes;
      std::array<pollfd, 3> wait{
          pollfd{asker_.fd(), static_cast<short>(has_room ? POLLIN : POLLRDHUP), 0},
          {method_.out.get(), POLLIN, 0},
          {to_method_.empty() ? -1 : method_.in.get(), POLLOUT, 0}};
      const int ready = ::poll(wait.data(), wait.size(), places_.empty() ? -1 : kLookMilliseconds);
      if (!places_.empty()) TRY_OK(look());
      if (ready < 0) {
        if (errno == EINTR) continue;
        return fail(ErrorCode::Internal, fmt::format("cannot wait: {}", std::strerror(errno)));
      }
      if (wait[0].revents != 0) {
        std::string bytes;
        TRY(goes_on, asker_.receive(bytes));
        if (!goes_on) return {};
        TRY_OK(fromAsker(bytes));
      }
      if (wait[2].revents != 0) feedMethod();
      if (wait[1].revents != 0) TRY_OK(fromMethod());
    }
  }

 private:
  Result<void> fromAsker(std::string_view bytes) {
    asked_.add(bytes);
    while (true) {
      TRY(message, asked_.next());
      if (!message) return {};
      if (message->number == apt::kConfiguration)
        to_method_ += toText(filteredConfiguration(*message, readHostSettings));
      if (message->number == apt::kUriAcquire) TRY_OK(acquire(*message));
    }
  }

  Result<void> acquire(const AptMessage& asked) {
    auto message = filteredAcquire(asked);
    if (!message.field("URI"))
      return asker_.send(toText({apt::kUriFailure,
                                 "URI Failure",
                                 {{"URI", asked.field("URI").value_or("")},
                                  {"Message", "a URI with control characters is not fetched"}}}));
    const auto expected = expectedSize(message);
    for (auto& [name, value] : message.fields)
      if (isSameAptName(name, "Filename")) {
        const auto place = placeOf(value);
        most_[place] = std::min(kMaxFetchedBytes,
                                expected.most.value_or(expected.exact.value_or(kMaxFetchedBytes)));
        value = place.string();
      }
    to_method_ += toText(message);
    return {};
  }

  /// At what grows: the method itself ends a transfer that is over its size.
  Result<void> look() {
    const auto now = steady_clock::now();
    if (now < next_look_) return {};
    next_look_ = now + std::chrono::milliseconds(kLookMilliseconds);
    std::uint64_t bytes = 0;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error)) {
      const auto size = entry.file_size(error);
      if (error) continue;
      const auto most = most_.find(entry.path());
      if (size > (most == most_.end() ? kMaxFetchedBytes : most->second))
        return fail(ErrorCode::Corrupt,
                    fmt::format("a file has {} bytes, more than apt expects", size));
      bytes += size;
    }
    if (bytes == std::exchange(bytes_, bytes) || now < next_sign_) return {};
    next_sign_ = now + sign_interval_;
    return asker_.send("\n");
  }

  /// The same for a file that is asked for again, so that what has come of it is gone on with.
  fs::path placeOf(const std::string& file) {
    const auto [found, is_new] =
        places_.try_emplace(file, folder_ / fmt::format("{}", places_.size()));
    return found->second;
  }

  void feedMethod() {
    const auto done = ::write(method_.in.get(), to_method_.data(), to_method_.size());
    if (done > 0) to_method_.erase(0, static_cast<std::size_t>(done));
    if (done < 0 && errno != EAGAIN && errno != EINTR) to_method_.clear();  // its end is seen, too
  }

  Result<void> fromMethod() {
    std::array<char, kPieceBytes> piece;
    const auto got = ::read(method_.out.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) return {};
    if (got <= 0)
      return fail(ErrorCode::Unavailable,
                  fmt::format("apt's method has ended with {}", method_.end()));
    said_.add({piece.data(), static_cast<std::size_t>(got)});
    while (true) {
      TRY(message, said_.next());
      if (!message) return {};
      TRY_OK(answer(*message));
    }
  }

  Result<void> answer(const AptMessage& said) {
    if (said.number == apt::kUriFailure && !hasRoom())
      return asker_.send(toText(withoutRoom(said)));
    if (said.number != apt::kUriDone) return asker_.send(toText(said));
    const auto file = said.field("Filename").value_or("");
    const io::Fd fetched(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (fetched.valid()) ::unlink(file.c_str());
    return asker_.send(toText(said), fetched.get());
  }

  bool hasRoom() const {
    struct statvfs status{};
    return ::statvfs(folder_.c_str(), &status) != 0 ||
           status.f_bavail * status.f_frsize >= kLeastRoomBytes;
  }
  /// apt would ask again after a full disk as after a bad line, and apt 2.6 then waits for ever.
  AptMessage withoutRoom(const AptMessage& said) const {
    AptMessage out{said.number, said.words, {}};
    for (const auto* name : {"URI", "Message"})
      if (const auto value = said.field(name)) out.fields.emplace_back(name, *value);
    for (auto& [name, value] : out.fields)
      if (name == "Message")
        value = fmt::format("no space left in {} of the fetch unit: {}",
                            folder_.parent_path().string(), value);
    return out;
  }

  FetchSocket& asker_;
  Method& method_;
  fs::path folder_;
  std::chrono::milliseconds sign_interval_;
  std::map<std::string, fs::path> places_;  ///< of files of the asker's
  std::map<fs::path, std::uint64_t> most_;  ///< bytes, of a place
  std::uint64_t bytes_ = 0;                 ///< in all places, when they were looked at
  steady_clock::time_point next_look_{}, next_sign_{};
  AptMessageReader asked_, said_;
  std::string to_method_;
};

}  // namespace

Result<void> fetchForApt(FetchSocket& asker, std::string begun, const AptFetcher& fetcher) {
  io::ignoreBrokenPipes();
  auto method = Method::start(fetcher);
  auto done = method ? Fetcher(asker, **method, fetcher).run(std::move(begun))
                     : Result<void>(std::unexpected(std::move(method).error()));
  if (!done)
    (void)asker.send(toText({apt::kGeneralFailure,
                             "General Failure",
                             {{"Message", "the fetch unit: " + done.error().str()}}}));
  return done;
}

}  // namespace muster::provision
