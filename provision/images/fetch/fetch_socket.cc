// SPDX-License-Identifier: Apache-2.0
#include "provision/images/fetch/fetch_socket.h"

#include "base/io/peer_credentials.h"
#include "base/io/unix_client.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace muster::provision {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kPieceBytes = 64u << 10;
constexpr std::size_t kMaxDescriptorsAtOnce = 8;
/// Each is taken with the message that it came with.
constexpr std::size_t kMaxDescriptors = 64;
/// The other side copies a large package meanwhile.
constexpr std::chrono::minutes kSendLimit{30};
constexpr std::size_t kCopyPieceBytes = 64u << 20;

Result<void> waitToSend(int fd, steady_clock::time_point until) {
  while (true) {
    pollfd wait{fd, POLLOUT, 0};
    const int ready = ::poll(&wait, 1, millisecondsUntil(until));
    if (ready > 0) return {};
    if (ready < 0 && errno == EINTR) continue;
    return fail(ErrorCode::Timeout, "nobody reads");
  }
}

std::unexpected<Error> failedCopy(const std::filesystem::path& to) {
  return fail(ErrorCode::Internal,
              fmt::format("cannot write {}: {}", to.string(), std::strerror(errno)));
}

/// Where what is written in it begins and ends, from `at` on; a hole until the end has neither.
std::pair<off_t, off_t> nextData(int file, off_t at, off_t size) {
  const auto begin = ::lseek(file, at, SEEK_DATA);
  if (begin < 0 && errno == ENXIO) return {size, size};
  if (begin < at) return {at, size};  // a file system that knows of no holes
  const auto end = ::lseek(file, begin, SEEK_HOLE);
  return {std::min(begin, size), end > begin ? std::min(end, size) : size};
}

}  // namespace

int millisecondsUntil(steady_clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

Result<bool> FetchSocket::receive(std::string& bytes) {
  std::array<char, kPieceBytes> piece;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptorsAtOnce * sizeof(int))> control;
  iovec data{piece.data(), piece.size()};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto got = ::recvmsg(fd_, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return false;
  for (auto* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const auto count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      descriptors_.emplace_back(fd);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 || descriptors_.size() > kMaxDescriptors)
    return fail(ErrorCode::Corrupt, "more descriptors came than were asked for");
  bytes.append(piece.data(), static_cast<std::size_t>(got));
  return true;
}

std::optional<io::Fd> FetchSocket::takeDescriptor() {
  if (descriptors_.empty()) return std::nullopt;
  auto out = std::move(descriptors_.front());
  descriptors_.pop_front();
  return out;
}

Result<void> FetchSocket::send(std::string_view text, int descriptor) {
  const auto until = steady_clock::now() + kSendLimit;
  while (!text.empty()) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec data{const_cast<char*>(text.data()), text.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      auto* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
    }
    const auto sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      TRY_OK(waitToSend(fd_, until));
      continue;
    }
    if (sent < 0)
      return fail(ErrorCode::Unavailable,
                  fmt::format("the connection has ended: {}", std::strerror(errno)));
    descriptor = -1;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<io::Fd> dialFetchUnit(const std::filesystem::path& socket, uid_t owner) {
  auto dialed = io::dialUnixSocket(socket);
  if (!dialed && dialed.error().has(io::DialFailure::NobodyListens))
    return fail(
        ErrorCode::Unavailable,
        fmt::format("nobody listens on {}, and the build unit has no network of its own; "
                    "as root: systemctl start muster-fetch.socket (where it is masked, first: "
                    "systemctl unmask muster-fetch.socket)",
                    socket.string()));
  if (!dialed) return fail(std::move(dialed).error());
  TRY(peer, io::peerCredentials(dialed->get()));
  if (peer.uid != owner)
    return fail(ErrorCode::Denied,
                fmt::format("{} belongs to a program of the user with uid {}, and is not believed",
                            socket.string(), peer.uid));
  return *std::move(dialed);
}

Result<std::uint64_t> copyFetched(int from, const std::filesystem::path& to, FetchedSize size) {
  struct stat status{};
  if (::fstat(from, &status) != 0 || !S_ISREG(status.st_mode))
    return fail(ErrorCode::Corrupt, "what was fetched is no regular file");
  const auto has = static_cast<std::uint64_t>(status.st_size);
  if (has > size.most || has < size.least)
    return fail(ErrorCode::Corrupt,
                fmt::format("what was fetched has {} bytes, and may have {}", has,
                            size.least == size.most ? fmt::format("{} alone", size.most)
                                                    : fmt::format("{} at most", size.most)));
  const io::Fd file(
      ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.valid() || ::fchmod(file.get(), 0644) != 0) return failedCopy(to);
  for (off_t at = 0; at < status.st_size;) {
    const auto [begin, end] = nextData(from, at, status.st_size);
    if (begin < end && ::lseek(file.get(), begin, SEEK_SET) < 0) return failedCopy(to);
    for (at = begin; at < end;) {
      const auto wanted =
          std::min<std::uint64_t>(static_cast<std::uint64_t>(end - at), kCopyPieceBytes);
      const auto done = ::sendfile(file.get(), from, &at, wanted);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return failedCopy(to);
      if (done == 0) return fail(ErrorCode::Corrupt, "what was fetched has become shorter");
    }
  }
  if (::ftruncate(file.get(), status.st_size) != 0) return failedCopy(to);  // a hole at its end
  const timespec times[2] = {status.st_mtim, status.st_mtim};
  if (::futimens(file.get(), times) != 0) return failedCopy(to);
  return has;
}

}  // namespace muster::provision
