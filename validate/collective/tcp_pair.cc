// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/tcp_pair.h"

#include "validate/burn/arith.h"
#include "validate/collective/tcp_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace muster::collective {
namespace {

constexpr std::size_t kBlockBytes = 4u << 20;
constexpr std::uint64_t kMagic = 0x706169722d746370;  ///< "pair-tcp"
constexpr int kMaxStreams = 64;

/// What each stream begins with, and what its receiver answers.
struct Hello {
  std::uint64_t magic, seed, bytes;
};
struct Receipt {
  std::uint64_t bytes, wrong_blocks;
};

std::vector<char> blockOf(std::uint64_t seed) {
  std::vector<std::uint64_t> words(kBlockBytes / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = burn::draw(seed, i);
  std::vector<char> block(kBlockBytes);
  std::memcpy(block.data(), words.data(), kBlockBytes);
  return block;
}

Result<Receipt> sendStream(const TcpPair& pair, int fd, const std::vector<char>& block,
                           StreamClock::time_point end) {
  const Hello hello{kMagic, pair.seed, pair.bytes};
  TRY_OK(sendAll(fd, &hello, sizeof hello, end));
  for (std::uint64_t sent = 0; sent < pair.bytes; sent += kBlockBytes)
    TRY_OK(sendAll(fd, block.data(), std::min<std::uint64_t>(kBlockBytes, pair.bytes - sent), end));
  Receipt receipt{};
  TRY_OK(receiveAll(fd, &receipt, sizeof receipt, end));
  return receipt;
}

Result<Receipt> receiveStream(const TcpPair& pair, int fd, const std::vector<char>& block,
                              StreamClock::time_point end) {
  Hello hello{};
  TRY_OK(receiveAll(fd, &hello, sizeof hello, end));
  if (hello.magic != kMagic || hello.bytes != pair.bytes)
    return fail(ErrorCode::Conflict, "the caller runs another test");
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

Result<std::vector<Socket>> openStreams(const TcpPair& pair, StreamClock::time_point end) {
  std::vector<Socket> streams;
  if (!pair.peer.empty()) {
    while (streams.size() < static_cast<std::size_t>(pair.streams)) {
      TRY(stream, connectTo(pair.peer, pair.port, end));
      streams.push_back(std::move(stream));
    }
    return streams;
  }
  TRY(listener, listenAt(pair.port));
  while (streams.size() < static_cast<std::size_t>(pair.streams)) {
    TRY(stream, acceptOne(listener.get(), end));
    streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace

Result<TcpMeasured> runTcpPair(const TcpPair& pair) {
  if (pair.port < 1 || pair.port > 65535)
    return fail(ErrorCode::InvalidInput, fmt::format("{} is no port", pair.port));
  if (pair.streams < 1 || pair.streams > kMaxStreams || pair.bytes == 0)
    return fail(ErrorCode::InvalidInput,
                fmt::format("1 to {} streams of at least one byte", kMaxStreams));
  const auto end = StreamClock::now() + pair.limit;
  const auto block = blockOf(pair.seed);
  TRY(streams, openStreams(pair, end));
  std::vector<Result<Receipt>> receipts(streams.size(), fail(ErrorCode::Internal, "not run"));
  const auto start = StreamClock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < streams.size(); ++i)
      threads.emplace_back([&, i] {
        receipts[i] = pair.peer.empty() ? receiveStream(pair, streams[i].get(), block, end)
                                        : sendStream(pair, streams[i].get(), block, end);
      });
  }
  const std::chrono::duration<double> seconds = StreamClock::now() - start;
  TcpMeasured measured;
  for (auto& receipt : receipts) {
    if (!receipt) return fail(receipt.error());
    if (receipt->bytes != pair.bytes)
      return fail(ErrorCode::Corrupt,
                  fmt::format("{} of {} bytes were received", receipt->bytes, pair.bytes));
    measured.bytes += receipt->bytes, measured.wrong_blocks += receipt->wrong_blocks;
  }
  measured.gbits = static_cast<double>(measured.bytes) * 8e-9 / seconds.count();
  return measured;
}

}  // namespace muster::collective
