// SPDX-License-Identifier: Apache-2.0
// Who is named when a collective stands still: ranks as threads, one of which stops.
#include "validate/collective/tcp_roll_call.h"
#include "tests/validate/collective/free_port.h"
#include "validate/collective/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace muster::collective {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RollCall, theSilentAreNamedAndElseWhomTheLastWaitsFor) {
  const std::vector<std::string> addresses{"10.0.0.1", "10.0.0.2", "10.0.0.3", ""};
  EXPECT_THAT(evaluateRollCall({{0, 3, 7}, {1, 0, 8}, {3, 2, 6}}, 4, addresses),
              HasSubstr("rank 2 (10.0.0.3) does not answer"));
  EXPECT_THAT(evaluateRollCall({{0, 3, 7}, {1, 0, 8}}, 4, addresses),
              HasSubstr("rank 2 (10.0.0.3), rank 3 do not answer"));
  EXPECT_THAT(evaluateRollCall({{0, 3, 7}, {1, 0, 8}, {2, 1, 9}, {3, 2, 6}}, 4, addresses),
              AllOf(HasSubstr("rank 3 has come least far, 6 exchanges, and waits for rank 2 "
                              "(10.0.0.3)"),
                    Not(HasSubstr("does not answer"))));
  EXPECT_THAT(evaluateRollCall({{0, 1, 0}}, 1'000, {}), HasSubstr("991 more do not answer"));
}

/// A rank that joins and then stops, as a process does that gets SIGSTOP: until all others are
/// through.
class Stops final : public Communicator {
 public:
  struct Others {
    std::mutex mutex;
    std::condition_variable wake;
    int left = 0;
    void ended() {
      std::lock_guard lock(mutex);
      --left;
      wake.notify_all();
    }
    void awaitAll() {
      std::unique_lock lock(mutex);
      wake.wait(lock, [this] { return left == 0; });
    }
  };
  Stops(std::unique_ptr<Communicator> joined, Others& others, bool stops)
      : joined_(std::move(joined)), others_(others), stops_(stops) {}
  ~Stops() override {
    if (!stops_) others_.ended();
  }
  std::string device() const override { return joined_->device(); }
  Result<std::uint64_t> check(const Step& step, std::uint64_t seed) override {
    if (stops_) {
      others_.awaitAll();
      return fail(ErrorCode::Timeout, "it stood still");
    }
    return joined_->check(step, seed);
  }
  Result<double> time(const Step& step, int iterations) override {
    return joined_->time(step, iterations);
  }

 private:
  std::unique_ptr<Communicator> joined_;
  Others& others_;
  const bool stops_;
};

Job allReduceOf(int ranks, std::chrono::seconds limit) {
  Job job;
  job.group = "g", job.meeting = fmt::format("127.0.0.1:{}", freePort());
  job.ranks = job.local_ranks = ranks;
  job.operations = {Operation::AllReduce};
  job.transport = Transport::Tcp;
  job.min_bytes = job.max_bytes = 4'096;
  job.iterations = 1, job.limit = limit;
  return job;
}

JobReport runWithStopped(int stopped, int ranks) {
  const auto job = allReduceOf(ranks, std::chrono::seconds(2));
  Stops::Others others;
  others.left = ranks - 1;
  return runJob(
      job, [&](const Job& asked, int rank, int local) -> Result<std::unique_ptr<Communicator>> {
        TRY(joined, joinTcp(asked, rank, local));
        return std::make_unique<Stops>(std::move(joined), others, rank == stopped);
      });
}

// What was wrong: each rank said that "the other side" stalled, and nobody which.
TEST(RollCall, aRankThatStopsIsNamedByAllOthers) {
  const auto report = runWithStopped(2, 5);
  EXPECT_FALSE(report.passed);
  int named = 0;
  for (const auto& finding : report.findings)
    if (finding.find("rank 2 (127.0.0.1) does not answer the roll call") != std::string::npos)
      ++named;
  EXPECT_EQ(named, 4) << testing::PrintToString(report.findings);
  EXPECT_THAT(report.findings, Contains(HasSubstr("waiting for rank 2 (127.0.0.1)")));
}

/// A rank whose process ends: its streams close, and nobody is told why.
class Ends final : public Communicator {
 public:
  explicit Ends(std::unique_ptr<Communicator> joined) : joined_(std::move(joined)) {}
  std::string device() const override { return "gone"; }
  Result<std::uint64_t> check(const Step&, std::uint64_t) override {
    joined_.reset();
    return fail(ErrorCode::Internal, "killed");
  }
  Result<double> time(const Step&, int) override { return fail(ErrorCode::Internal, "killed"); }

 private:
  std::unique_ptr<Communicator> joined_;
};

JobReport runWithEnded(int ended, int ranks) {
  const auto job = allReduceOf(ranks, std::chrono::seconds(60));
  return runJob(
      job, [&](const Job& asked, int rank, int local) -> Result<std::unique_ptr<Communicator>> {
        TRY(joined, joinTcp(asked, rank, local));
        if (rank != ended) return std::move(joined);
        return std::make_unique<Ends>(std::move(joined));
      });
}

// What was wrong: a rank that ended let its neighbour end, and two of three accused a good one.
TEST(RollCall, aRankThatEndsIsNamedByAllOthersLongBeforeTheLimit) {
  for (const int ended : {1, 2, 4}) {
    const auto began = StreamClock::now();
    const auto report = runWithEnded(ended, 5);
    EXPECT_FALSE(report.passed);
    EXPECT_LT(StreamClock::now() - began, std::chrono::seconds(45));
    const auto name = fmt::format("rank {} (127.0.0.1) does not answer the roll call", ended);
    EXPECT_EQ(std::ranges::count_if(report.findings,
                                    [&](const auto& each) { return each.contains(name); }),
              4)
        << testing::PrintToString(report.findings);
    EXPECT_EQ(std::ranges::count_if(
                  report.findings,
                  [](const auto& each) { return each.contains("does not answer the roll call"); }),
              4)
        << "nobody else is accused: " << testing::PrintToString(report.findings);
  }
}

TEST(RollCall, rankZeroIsNamedWhenItIsTheOneThatStops) {
  const auto report = runWithStopped(0, 3);
  int named = 0;
  for (const auto& finding : report.findings)
    if (finding.find("rank 0 (127.0.0.1) does not answer the roll call") != std::string::npos)
      ++named;
  EXPECT_EQ(named, 2) << testing::PrintToString(report.findings);
}

TEST(RollCall, whatIsNoneOfTheJobsCountsForNothing) {
  const auto port = freePort();
  const auto listener = listenAt(port);
  ASSERT_TRUE(listener);
  std::string said;
  Result<std::string> first = fail(ErrorCode::Internal, "not asked"), twice = first;
  const auto end = StreamClock::now() + std::chrono::seconds(4);
  {
    // All are in the listener's queue before it is asked, in this order.
    const auto noise = connectTo("127.0.0.1", port, end);
    ASSERT_TRUE(noise);
    const std::string words(200, 'G');
    ASSERT_TRUE(sendAll(noise->get(), words.data(), words.size(), end));
    const auto silent = connectTo("127.0.0.1", port, end);
    ASSERT_TRUE(silent);
    std::jthread other([&] { twice = answerRollCall("127.0.0.1", port, 77, {1, 0, 3}, end); });
    std::jthread one([&] { first = answerRollCall("127.0.0.1", port, 5, {1, 0, 3}, end); });
    said = takeRollCall(listener->get(), 5, {0, 1, 3}, 3, {}, StreamClock::now() + kRollCall);
  }
  EXPECT_THAT(said, HasSubstr("rank 2 does not answer"));
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_EQ(*first, said);
  EXPECT_FALSE(twice) << "another job's rank";
}

}  // namespace
}  // namespace muster::collective
