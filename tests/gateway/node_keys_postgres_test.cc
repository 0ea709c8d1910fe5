// SPDX-License-Identifier: Apache-2.0
// Keys of nodes in a PostgreSQL store that several controllers change at the same moment.
#include "gateway/node_keys.h"
#include "tests/lifecycle/postgres_server.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using namespace test;

const NodeName kNode("gpu001");

TEST(KeysInPostgres, ofControllersThatHandOutAtTheSameMomentOneHasTheLastWord) {
  PostgresServer server;
  if (!server.whyNot().empty()) GTEST_SKIP() << server.whyNot();
  constexpr int kControllers = 4, kTurns = 25;
  const auto url = server.createDatabase();
  {
    auto first = lifecycle::openStore(url);
    ASSERT_TRUE(first) << first.error().str();
    ASSERT_TRUE(gateway::changeKeys(**first, kNode, [](gateway::NodeKeys& keys) {
      return keys.admitPoll("installed", wire::Mode::Disk, false);
    }));
  }
  std::vector<std::thread> controllers;
  std::atomic<int> handed = 0;
  for (int number = 0; number < kControllers; ++number) {
    controllers.emplace_back([&, number] {
      auto store = lifecycle::openStore(url);
      if (!store) return;
      for (int turn = 0; turn < kTurns; ++turn) {
        const auto key = fmt::format("{}-{}", number, turn);
        const auto out = gateway::changeKeys(**store, kNode, [&](gateway::NodeKeys& keys) {
          return keys.certified("installed", key);
        });
        handed += out.has_value();
      }
    });
  }
  for (auto& controller : controllers) controller.join();
  EXPECT_EQ(handed, kControllers * kTurns);
  auto one = lifecycle::openStore(url), other = lifecycle::openStore(url);
  ASSERT_TRUE(one && other);
  const auto keys = gateway::loadKeys(**one, kNode);
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->disk.now, "installed") << "it has not been used up by those that never called";
  const auto last = keys->disk.next;
  EXPECT_THAT(last, ::testing::EndsWith(fmt::format("-{}", kTurns - 1)));
  ASSERT_TRUE(gateway::changeKeys(**other, kNode, [&](gateway::NodeKeys& now) {
    return now.admitPoll(last, wire::Mode::Disk, false);
  }));
  const auto late = gateway::changeKeys(**one, kNode, [](gateway::NodeKeys& now) {
    return now.admitPoll("installed", wire::Mode::Disk, false);
  });
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::Denied);
}

}  // namespace
}  // namespace muster::agent
