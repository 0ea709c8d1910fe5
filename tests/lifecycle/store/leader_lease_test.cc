// SPDX-License-Identifier: Apache-2.0
// Which of several hosts serves: one at a time, whoever was stopped, and by no clock that somebody
// sets.
#include "lifecycle/store/leader_lease.h"
#include "tests/lifecycle/crash_store.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

namespace muster::lifecycle {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// A host: its own session on the store that they share, its own clock.
struct Host {
  explicit Host(const std::filesystem::path& file, std::string name, std::string address)
      : store(std::move(*openSqliteStore(file))),
        lease(*store, clock, std::move(name), std::move(address)) {}
  bool takes() {
    auto now = lease.take();
    return now && now->ours;
  }
  FakeClock clock;
  std::unique_ptr<Store> store;
  LeaderLease lease;
};

class LeaderLeaseTest : public ::testing::Test {
 protected:
  test::TempFolder folder;
  Host a{folder / "muster.db", "ctl1 (x)", "10.20.0.1"},
      b{folder / "muster.db", "ctl2 (y)", "10.20.0.2"};
};

TEST_F(LeaderLeaseTest, theFirstHasItAndTheOtherWaitsAsLongAsItRenews) {
  EXPECT_FALSE(*currentLeader(*a.store));
  ASSERT_TRUE(a.takes());
  for (int turn = 0; turn < 20; ++turn) {
    const auto seen = b.lease.take();
    ASSERT_TRUE(seen) << seen.error().str();
    EXPECT_FALSE(seen->ours);
    EXPECT_EQ(seen->holder, "ctl1 (x)");
    EXPECT_EQ(seen->address, "10.20.0.1");
    EXPECT_EQ(seen->alive, turn > 0) << "it has renewed since it was seen first";
    b.clock.advance(kLeaderLease - 1s);
    ASSERT_TRUE(a.lease.renew());
  }
}

TEST_F(LeaderLeaseTest, whoStandsStillForALeaseLosesItAndLearnsSo) {
  ASSERT_TRUE(a.takes());
  EXPECT_FALSE(b.takes());
  b.clock.advance(kLeaderLease - 1ms);
  EXPECT_FALSE(b.takes());
  b.clock.advance(1ms);
  EXPECT_TRUE(b.takes());
  const auto late = a.lease.renew();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(late.error().str(), HasSubstr("ctl2 (y) serves the site now, at 10.20.0.2"));
  EXPECT_EQ((*currentLeader(*a.store))->term, 2);
  EXPECT_FALSE(a.takes()) << "and stands by";
  EXPECT_TRUE(b.lease.renew());
}

TEST_F(LeaderLeaseTest, aHostThatWasJustStartedWaitsAWholeLease) {
  ASSERT_TRUE(a.takes());
  a.clock.advance(24h);
  b.clock.advance(24h);
  EXPECT_FALSE(b.takes()) << "it has not seen yet how long the other one stands still";
}

/// Each renewal keeps it, and it changes hands with the site.
TEST_F(LeaderLeaseTest, whoServesSaysWhereItsApiAnswers) {
  LeaderLease first(*a.store, a.clock, "ctl1 (x)", "10.20.0.1", "https://ctl1:9443");
  ASSERT_TRUE(first.take()->ours);
  EXPECT_EQ((*currentLeader(*b.store))->api_url, "https://ctl1:9443");
  ASSERT_TRUE(first.renew());
  EXPECT_EQ((*currentLeader(*b.store))->api_url, "https://ctl1:9443");
  EXPECT_EQ(b.lease.take()->api_url, "https://ctl1:9443");
  b.clock.advance(kLeaderLease);
  ASSERT_TRUE(b.takes());
  EXPECT_EQ((*currentLeader(*a.store))->api_url, "") << "it answers its own host alone";
}

TEST_F(LeaderLeaseTest, whatAnOlderMusterHasWrittenIsRead) {
  ASSERT_TRUE(a.store->putValue(
      "site/serves", R"json({"holder":"ctl2 (y)","address":"10.20.0.2","term":3,"beat":7})json"));
  const auto leader = currentLeader(*a.store);
  ASSERT_TRUE(leader && *leader);
  EXPECT_EQ((*leader)->holder, "ctl2 (y)");
  EXPECT_EQ((*leader)->api_url, "");
}

TEST_F(LeaderLeaseTest, theNextProcessOfTheSameHostHasItAtOnce) {
  ASSERT_TRUE(a.takes());
  Host again(folder / "muster.db", "ctl1 (x)", "10.20.0.1");
  EXPECT_TRUE(again.takes());
  EXPECT_FALSE(a.lease.renew()) << "the former one is over";
  EXPECT_TRUE(again.lease.renew());
}

TEST_F(LeaderLeaseTest, aRenewalOfWhichOnlyTheAnswerWasLostIsOne) {
  test::CrashStore store(*a.store, test::CrashStore::kNever, false);
  LeaderLease lease(store, a.clock, "ctl1 (x)", "10.20.0.1");
  ASSERT_TRUE(lease.take()->ours);
  store.refuses = [](int) {
    return test::CrashStore::Refusal{Error(ErrorCode::Unavailable, "the connection broke"), true,
                                     false};
  };
  ASSERT_FALSE(lease.renew());
  store.refuses = {};
  EXPECT_TRUE(lease.renew());
  EXPECT_EQ((*currentLeader(*b.store))->heartbeat, 1) << "the one that was made";
  EXPECT_TRUE(lease.renew());
  EXPECT_EQ((*currentLeader(*b.store))->heartbeat, 2);
}

TEST_F(LeaderLeaseTest, ofTwoThatWaitOneGetsIt) {
  Host c{folder / "muster.db", "ctl3 (z)", "10.20.0.3"};
  ASSERT_TRUE(a.takes());
  for (int turn = 0; turn < 10; ++turn) {
    EXPECT_FALSE(b.takes());
    EXPECT_FALSE(c.takes());
    b.clock.advance(kLeaderLease);
    c.clock.advance(kLeaderLease);
    const bool first = b.takes(), second = c.takes();
    EXPECT_TRUE(first != second);
    EXPECT_EQ(b.lease.renew().has_value(), first);
    Host next(folder / "muster.db", "ctl1 (x)", "10.20.0.1");
    next.lease.take().value();
    next.clock.advance(kLeaderLease);
    ASSERT_TRUE(next.takes());
  }
}

TEST_F(LeaderLeaseTest, aValueThatCannotBeReadIsNotTaken) {
  ASSERT_TRUE(a.store->putValue("site/serves", "{}"));
  const auto taken = a.lease.take();
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), ErrorCode::Corrupt);
}

TEST_F(LeaderLeaseTest, theFirstHostSaysWhatAllAgreeOn) {
  EXPECT_EQ(*agreedSiteValue(*a.store, "site/ca", "one"), "one");
  EXPECT_EQ(*agreedSiteValue(*b.store, "site/ca", "two"), "one");
}

}  // namespace
}  // namespace muster::lifecycle
