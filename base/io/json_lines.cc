// SPDX-License-Identifier: Apache-2.0
#include "base/io/json_lines.h"

#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace muster::io {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = 64u << 10;
constexpr std::array kCodes{ErrorCode::InvalidInput, ErrorCode::NotFound, ErrorCode::Conflict,
                            ErrorCode::Unavailable,  ErrorCode::Timeout,  ErrorCode::Denied,
                            ErrorCode::Corrupt,      ErrorCode::Internal};

/// Whether `what` was there before `until`; errors of the descriptor count, reading says them.
bool isReady(int fd, short what, steady_clock::time_point until) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - steady_clock::now()).count();
    pollfd wait{fd, what, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    return ready > 0;
  }
}

}  // namespace

Result<std::string> LineReader::next(steady_clock::time_point until) {
  while (true) {
    if (const auto end = rest_.find('\n', looked_); end != std::string::npos) {
      auto line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      looked_ = 0;
      return line;
    }
    looked_ = rest_.size();
    if (rest_.size() > max_line_bytes_)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("a line has more than {} bytes", max_line_bytes_));
    if (!isReady(fd_, POLLIN, until)) return fail(ErrorCode::Timeout, "no answer in time");
    std::array<char, kPieceBytes> piece;
    const auto got = ::read(fd_, piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return fail(ErrorCode::Unavailable, "the connection has ended");
    rest_.append(piece.data(), static_cast<std::size_t>(got));
  }
}

Result<void> sendJsonLine(int fd, const nlohmann::json& value, std::chrono::milliseconds limit) {
  const auto text = jsonText(value) + "\n";
  const auto until = steady_clock::now() + limit;
  std::string_view left = text;
  while (!left.empty()) {
    const auto sent = ::send(fd, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      if (!isReady(fd, POLLOUT, until)) return fail(ErrorCode::Timeout, "nobody reads");
      continue;
    }
    if (sent < 0)
      return fail(ErrorCode::Unavailable,
                  fmt::format("the connection has ended: {}", std::strerror(errno)));
    left.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

ErrorCode errorCodeOf(std::string_view word) {
  for (const auto code : kCodes)
    if (toString(code) == word) return code;
  return ErrorCode::Internal;
}

}  // namespace muster::io
