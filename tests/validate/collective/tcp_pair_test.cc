// SPDX-License-Identifier: Apache-2.0
// The TCP pair engine between two threads on the loopback.
#include "validate/collective/tcp_pair.h"
#include "tests/validate/collective/free_port.h"

#include <gtest/gtest.h>

#include <thread>

namespace muster::collective {
namespace {

struct Both {
  Result<TcpMeasured> server = fail(ErrorCode::Internal, ""),
                      client = fail(ErrorCode::Internal, "");
};
Both runBoth(TcpPair server, TcpPair client) {
  Both both;
  {
    std::jthread first([&] { both.server = runTcpPair(server); });
    std::jthread second([&] { both.client = runTcpPair(client); });
  }
  return both;
}
TcpPair side(int port, bool server) {
  TcpPair pair;
  pair.peer = server ? "" : "127.0.0.1";
  pair.port = port, pair.streams = 3, pair.bytes = (8u << 20) + 123,
  pair.limit = std::chrono::seconds(20);
  return pair;
}

TEST(TcpPairs, measureAndCompareEveryBlock) {
  const int port = freePort();
  const auto both = runBoth(side(port, true), side(port, false));
  ASSERT_TRUE(both.server) << both.server.error().str();
  ASSERT_TRUE(both.client) << both.client.error().str();
  EXPECT_EQ(both.client->bytes, 3u * ((8u << 20) + 123));
  EXPECT_EQ(both.server->wrong_blocks, 0u);
  EXPECT_EQ(both.client->wrong_blocks, 0u);
  EXPECT_GT(both.client->gbits, 0);
}

TEST(TcpPairs, dataThatIsNotWhatWasMeantIsCountedOnBothSides) {
  const int port = freePort();
  auto client = side(port, false);
  client.seed = 2;  // its data is not what the server expects
  const auto both = runBoth(side(port, true), client);
  ASSERT_TRUE(both.server && both.client);
  EXPECT_EQ(both.server->wrong_blocks, 9u) << "three blocks of each stream";
  EXPECT_EQ(both.client->wrong_blocks, 9u) << "the sender learns it from the receipt";
}

TEST(TcpPairs, anotherTestIsRefused) {
  const int port = freePort();
  auto client = side(port, false);
  client.bytes = 1 << 20;
  const auto both = runBoth(side(port, true), client);
  EXPECT_EQ(both.server.error().code(), ErrorCode::Conflict);
  EXPECT_FALSE(both.client) << "no receipt, no result";
}

TEST(TcpPairs, nobodyThereIsATimeout) {
  auto alone = side(freePort(), false);
  alone.limit = std::chrono::seconds(1);
  EXPECT_EQ(runTcpPair(alone).error().code(), ErrorCode::Timeout);
  alone.peer.clear();
  EXPECT_EQ(runTcpPair(alone).error().code(), ErrorCode::Timeout);
}

TEST(TcpPairs, badWordsAreRefused) {
  auto bad = side(1, false);
  bad.port = 0;
  EXPECT_EQ(runTcpPair(bad).error().code(), ErrorCode::InvalidInput);
  bad = side(1, false), bad.streams = 0;
  EXPECT_EQ(runTcpPair(bad).error().code(), ErrorCode::InvalidInput);
  bad = side(1, false), bad.peer = "node.example";
  EXPECT_EQ(runTcpPair(bad).error().code(), ErrorCode::InvalidInput);
}

}  // namespace
}  // namespace muster::collective
