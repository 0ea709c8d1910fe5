// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/tcp_streams.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

namespace muster::collective {
namespace {

constexpr std::chrono::milliseconds kTryAgain{100};
constexpr int kWaiting = 1024;  ///< connections that a listener keeps until they are accepted

std::unexpected<Error> broken(const char* what) {
  return fail(ErrorCode::Unavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

/// Until one of them is ready.
Result<void> waitFor(std::span<pollfd> watched, StreamClock::time_point end) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - StreamClock::now()).count();
    const int ready = left > 0 ? ::poll(watched.data(), watched.size(),
                                        static_cast<int>(std::min<long>(left, 60'000)))
                               : 0;
    if (ready > 0) return {};
    if (ready == 0 && StreamClock::now() >= end)
      return fail(ErrorCode::Timeout,
                  "the other side did not connect, or stalled, until the limit");
    if (ready < 0 && errno != EINTR) return broken("poll");
  }
}

/// One direction of an exchange.
struct Transfer {
  int fd;
  short events;
  char* data;
  std::size_t left;

  /// As far as it goes without waiting.
  Result<void> move() {
    while (left > 0) {
      const auto moved = events == POLLIN ? ::recv(fd, data, left, MSG_DONTWAIT)
                                          : ::send(fd, data, left, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (moved > 0) {
        data += moved, left -= static_cast<std::size_t>(moved);
      } else if (moved == 0) {
        return fail(ErrorCode::Unavailable, "the other side closed the stream");
      } else if (errno == EAGAIN) {
        return {};
      } else if (errno != EINTR) {
        return broken("stream");
      }
    }
    return {};
  }
};

Result<void> moveAll(std::span<Transfer> transfers, StreamClock::time_point end) {
  for (;;) {
    std::array<pollfd, 2> watched;
    std::size_t open = 0;
    for (auto& transfer : transfers) {
      TRY_OK(transfer.move());
      if (transfer.left > 0) watched[open++] = {transfer.fd, transfer.events, 0};
    }
    if (open == 0) return {};
    TRY_OK(waitFor(std::span(watched).first(open), end));
  }
}

char* writable(const void* data) {
  return static_cast<char*>(const_cast<void*>(data));
}  // send reads only

Result<sockaddr_in> addressOf(const std::string& host, int port) {
  if (port < 0 || port > 65535)
    return fail(ErrorCode::InvalidInput, fmt::format("{} is no port", port));
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (host.empty())
    address.sin_addr.s_addr = INADDR_ANY;
  else if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    return fail(ErrorCode::InvalidInput, fmt::format("'{}' is not an IPv4 address", host));
  return address;
}

/// Small messages go at once: a mesh waits for each.
void sendSmallAtOnce(int fd) {
  const int yes = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

Result<sockaddr_in> boundTo(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return broken("getsockname");
  return address;
}

}  // namespace

Result<void> sendAll(int fd, const void* data, std::size_t bytes, StreamClock::time_point end) {
  Transfer transfer{fd, POLLOUT, writable(data), bytes};
  return moveAll({&transfer, 1}, end);
}
Result<void> receiveAll(int fd, void* data, std::size_t bytes, StreamClock::time_point end) {
  Transfer transfer{fd, POLLIN, static_cast<char*>(data), bytes};
  return moveAll({&transfer, 1}, end);
}
Result<void> exchangeAll(int to, const void* out, std::size_t out_bytes, int from, void* in,
                         std::size_t in_bytes, StreamClock::time_point end, std::size_t* in_left) {
  std::array<Transfer, 2> transfers{Transfer{to, POLLOUT, writable(out), out_bytes},
                                    Transfer{from, POLLIN, static_cast<char*>(in), in_bytes}};
  auto moved = moveAll(transfers, end);
  if (in_left) *in_left = transfers[1].left;
  return moved;
}

Result<Socket> listenAt(int port) {
  TRY(address, addressOf("", port));
  Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (listener.get() < 0 ||
      ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), kWaiting) != 0)
    return broken(fmt::format("listening at port {}", port).c_str());
  return listener;
}

Result<int> portOf(int listener) {
  TRY(address, boundTo(listener));
  return int{ntohs(address.sin_port)};
}

Result<Socket> acceptOne(int listener, StreamClock::time_point end) {
  for (;;) {
    pollfd watched{listener, POLLIN, 0};
    TRY_OK(waitFor({&watched, 1}, end));
    Socket stream(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (stream.get() >= 0) {
      sendSmallAtOnce(stream.get());
      return stream;
    }
    if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN) return broken("accept");
  }
}

Result<Socket> connectTo(const std::string& host, int port, StreamClock::time_point end) {
  TRY(address, addressOf(host, port));
  for (;;) {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) return broken("socket");
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      sendSmallAtOnce(socket.get());
      return socket;
    }
    if (errno != ECONNREFUSED && errno != EINTR) return broken("connect");
    if (StreamClock::now() + kTryAgain >= end)
      return fail(ErrorCode::Timeout, fmt::format("nothing listens at {}:{}", host, port));
    std::this_thread::sleep_for(kTryAgain);
  }
}

Result<std::string> ownAddress(int fd) {
  TRY(address, boundTo(fd));
  char text[INET_ADDRSTRLEN] = {};
  if (!::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text)) return broken("inet_ntop");
  return std::string(text);
}

}  // namespace muster::collective
