#include "validate/collective/tcp_pair.h"

#include "base/io/files.h"
#include "validate/burn/arith.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

namespace muster::collective {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kBlockBytes = 4u << 20;
constexpr std::uint64_t kMagic = 0x706169722d746370;   ///< "pair-tcp"
constexpr int kMaxStreams = 64;
constexpr std::chrono::milliseconds kTryAgain{100};

/// What each stream begins with, and what its receiver answers.
struct Hello {
  std::uint64_t magic, seed, bytes;
};
struct Receipt {
  std::uint64_t bytes, wrong_blocks;
};

using Socket = io::Fd;

tl::unexpected<Error> broken(const char* what) { return fail(ErrorCode::Unavailable, fmt::format("{}: {}", what, std::strerror(errno))); }

Result<void> waitFor(int fd, short events, Clock::time_point end) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd watched{fd, events, 0};
    const int ready = left > 0 ? ::poll(&watched, 1, static_cast<int>(left)) : 0;
    if (ready > 0) return {};
    if (ready == 0) return fail(ErrorCode::Timeout, "the other side did not come, or stood still, until the limit");
    if (errno != EINTR) return broken("poll");
  }
}

/// All bytes, sent or received.
template <class Transfer>
Result<void> all(int fd, short events, char* data, std::size_t size, Clock::time_point end, Transfer transfer) {
  for (std::size_t done = 0; done < size;) {
    const auto moved = transfer(fd, data + done, size - done);
    if (moved > 0) {
      done += static_cast<std::size_t>(moved);
    } else if (moved == 0) {
      return fail(ErrorCode::Unavailable, "the other side closed the stream");
    } else if (errno == EAGAIN) {
      TRY_OK(waitFor(fd, events, end));
    } else if (errno != EINTR) {
      return broken("stream");
    }
  }
  return {};
}
Result<void> sendAll(int fd, const void* data, std::size_t size, Clock::time_point end) {
  return all(fd, POLLOUT, static_cast<char*>(const_cast<void*>(data)), size, end, [](int to, char* from, std::size_t bytes) { return ::send(to, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT); });
}
Result<void> receiveAll(int fd, void* data, std::size_t size, Clock::time_point end) {
  return all(fd, POLLIN, static_cast<char*>(data), size, end, [](int from, char* to, std::size_t bytes) { return ::recv(from, to, bytes, MSG_DONTWAIT); });
}

std::vector<char> blockOf(std::uint64_t seed) {
  std::vector<std::uint64_t> words(kBlockBytes / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = burn::draw(seed, i);
  std::vector<char> block(kBlockBytes);
  std::memcpy(block.data(), words.data(), kBlockBytes);
  return block;
}

Result<sockaddr_in> addressOf(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET, address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (host.empty()) address.sin_addr.s_addr = INADDR_ANY;
  else if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return fail(ErrorCode::InvalidInput, fmt::format("'{}' is no IPv4 address", host));
  return address;
}

Result<Socket> connectTo(const TcpPair& pair, Clock::time_point end) {
  TRY(address, addressOf(pair.peer, pair.port));
  for (;;) {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) return broken("socket");
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
    if (errno != ECONNREFUSED && errno != EINTR) return broken("connect");
    if (Clock::now() + kTryAgain >= end) return fail(ErrorCode::Timeout, fmt::format("nobody listens at {}:{}", pair.peer, pair.port));
    std::this_thread::sleep_for(kTryAgain);
  }
}

Result<Receipt> sendStream(const TcpPair& pair, int fd, const std::vector<char>& block, Clock::time_point end) {
  const Hello hello{kMagic, pair.seed, pair.bytes};
  TRY_OK(sendAll(fd, &hello, sizeof hello, end));
  for (std::uint64_t sent = 0; sent < pair.bytes; sent += kBlockBytes) TRY_OK(sendAll(fd, block.data(), std::min<std::uint64_t>(kBlockBytes, pair.bytes - sent), end));
  Receipt receipt{};
  TRY_OK(receiveAll(fd, &receipt, sizeof receipt, end));
  return receipt;
}

Result<Receipt> receiveStream(const TcpPair& pair, int fd, const std::vector<char>& block, Clock::time_point end) {
  Hello hello{};
  TRY_OK(receiveAll(fd, &hello, sizeof hello, end));
  if (hello.magic != kMagic || hello.bytes != pair.bytes) return fail(ErrorCode::Conflict, "whoever called means another test");
  std::vector<char> seen(kBlockBytes);
  Receipt receipt{};
  while (receipt.bytes < pair.bytes) {
    const auto size = std::min<std::uint64_t>(kBlockBytes, pair.bytes - receipt.bytes);
    TRY_OK(receiveAll(fd, seen.data(), size, end));
    receipt.bytes += size;
    receipt.wrong_blocks += std::memcmp(seen.data(), block.data(), size) != 0;
  }
  TRY_OK(sendAll(fd, &receipt, sizeof receipt, end));
  return receipt;
}

Result<std::vector<Socket>> openStreams(const TcpPair& pair, Clock::time_point end) {
  std::vector<Socket> streams;
  if (!pair.peer.empty()) {
    while (streams.size() < static_cast<std::size_t>(pair.streams)) {
      TRY(stream, connectTo(pair, end));
      streams.push_back(std::move(stream));
    }
    return streams;
  }
  Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  TRY(address, addressOf("", pair.port));
  if (listener.get() < 0 || ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(listener.get(), kMaxStreams) != 0)
    return broken("listen");
  while (streams.size() < static_cast<std::size_t>(pair.streams)) {
    TRY_OK(waitFor(listener.get(), POLLIN, end));
    Socket stream(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (stream.get() >= 0) streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace

Result<TcpMeasured> runTcpPair(const TcpPair& pair) {
  if (pair.port < 1 || pair.port > 65535) return fail(ErrorCode::InvalidInput, fmt::format("{} is no port", pair.port));
  if (pair.streams < 1 || pair.streams > kMaxStreams || pair.bytes == 0) return fail(ErrorCode::InvalidInput, fmt::format("1 to {} streams of at least one byte", kMaxStreams));
  const auto end = Clock::now() + pair.limit;
  const auto block = blockOf(pair.seed);
  TRY(streams, openStreams(pair, end));
  std::vector<Result<Receipt>> receipts(streams.size(), fail(ErrorCode::Internal, "not run"));
  const auto start = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < streams.size(); ++i)
      threads.emplace_back([&, i] { receipts[i] = pair.peer.empty() ? receiveStream(pair, streams[i].get(), block, end) : sendStream(pair, streams[i].get(), block, end); });
  }
  const std::chrono::duration<double> seconds = Clock::now() - start;
  TcpMeasured measured;
  for (auto& receipt : receipts) {
    if (!receipt) return fail(receipt.error());
    if (receipt->bytes != pair.bytes) return fail(ErrorCode::Corrupt, fmt::format("{} of {} bytes were received", receipt->bytes, pair.bytes));
    measured.bytes += receipt->bytes, measured.wrong_blocks += receipt->wrong_blocks;
  }
  measured.gbits = static_cast<double>(measured.bytes) * 8e-9 / seconds.count();
  return measured;
}

}  // namespace muster::collective
