// SPDX-License-Identifier: Apache-2.0
// Groups, jobs, data and evaluation of collectives, over ranks that are threads with shared memory.
#include "validate/collective/collective.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <barrier>
#include <cmath>
#include <map>

namespace muster::collective {
namespace {

Job job(int ranks = 4) {
  Job job;
  job.group = "g", job.meeting = "10.0.0.1:41000", job.ranks = ranks, job.local_ranks = ranks;
  job.operations = {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter,
                    Operation::AllToAll, Operation::SendRecv};
  job.min_bytes = job.max_bytes = 4096;
  job.iterations = 2;
  return job;
}

/// All ranks in one place. The operations are done by their definition, not by the formula that
/// checks them.
struct World {
  explicit World(int ranks) : together(ranks), inputs(static_cast<std::size_t>(ranks)) {}
  std::barrier<> together;
  std::vector<std::vector<float>> inputs;
  int corrupt = -1;     ///< this rank's input is flipped on its way
  bool silent = false;  ///< outputs are never written
  double seconds = 1e-5;
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(World& world, int rank)
      : world_(world), rank_(rank), ranks_(static_cast<int>(world.inputs.size())) {}
  std::string device() const override { return fmt::format("gpu{}", rank_); }
  Result<double> time(const Step&, int) override { return world_.seconds; }

  Result<std::uint64_t> check(const Step& step, std::uint64_t seed) override {
    const auto& shape = step.shape;
    auto& mine = world_.inputs[static_cast<std::size_t>(rank_)];
    mine.clear();
    for (std::uint64_t i = 0; i < shape.input; ++i) mine.push_back(inputValue(seed, rank_, i));
    if (rank_ == world_.corrupt) mine[mine.size() / 2] += 1;
    world_.together.arrive_and_wait();
    std::vector<float> out(shape.output, std::nanf(""));
    for (std::uint64_t i = 0; i < shape.output && !world_.silent; ++i) out[i] = outputOf(step, i);
    world_.together.arrive_and_wait();
    std::uint64_t wrong = 0;
    const int whose = step.operation == Operation::Pair ? step.peer : rank_;
    for (std::uint64_t i = 0; i < shape.output; ++i)
      wrong += !(out[i] == outputValue(step.operation, seed, whose, ranks_, shape.count, i));
    return wrong;
  }

 private:
  float of(int rank, std::uint64_t i) const {
    return world_.inputs[static_cast<std::size_t>(rank)][i];
  }
  float sumOf(std::uint64_t i) const {
    float sum = 0;
    for (int rank = 0; rank < ranks_; ++rank) sum += of(rank, i);
    return sum;
  }
  float outputOf(const Step& step, std::uint64_t i) const {
    const auto& shape = step.shape;
    const auto mine = static_cast<std::uint64_t>(rank_) * shape.count;
    switch (step.operation) {
      case Operation::AllReduce:
        return sumOf(i);
      case Operation::ReduceScatter:
        return sumOf(mine + i);
      case Operation::AllGather:
        return of(static_cast<int>(i / shape.count), i % shape.count);
      case Operation::AllToAll:
        return of(static_cast<int>(i / shape.count), mine + i % shape.count);
      case Operation::SendRecv:
        return of((rank_ + ranks_ - 1) % ranks_, i);
      case Operation::Pair:
        return of(step.peer, i);
    }
    return 0;
  }
  World& world_;
  const int rank_, ranks_;
};

JobReport runIn(World& world, const Job& job) {
  return runJob(job, [&world](const Job&, int rank, int) -> Result<std::unique_ptr<Communicator>> {
    return std::make_unique<ThreadRank>(world, rank);
  });
}

class Ranks : public testing::TestWithParam<int> {};
TEST_P(Ranks, everyOperationGivesWhatTheFormulaSays) {
  World world(GetParam());
  const auto report = runIn(world, job(GetParam()));
  EXPECT_TRUE(report.passed) << testing::PrintToString(report.findings);
  EXPECT_EQ(report.rows.size(), static_cast<std::size_t>(GetParam()) * 5)
      << "one result a rank and operation";
}
INSTANTIATE_TEST_SUITE_P(Counts, Ranks, testing::Values(2, 3, 4, 5, 7, 8, 16));

TEST(Collective, oneWrongValueOfOneRankFailsWhoeverReceivesIt) {
  World world(4);
  world.corrupt = 2;
  const auto report = runIn(world, job());
  EXPECT_FALSE(report.passed);
  std::map<int, int> reduce;
  for (const auto& row : report.rows)
    if (row.operation == Operation::SendRecv && row.wrong) ++reduce[row.rank];
  EXPECT_EQ(reduce, (std::map<int, int>{{3, 1}})) << "its neighbour alone";
}

TEST(Collective, outputsThatNobodyWroteAreWrong) {
  World world(2);
  world.silent = true;
  const auto report = runIn(world, job(2));
  EXPECT_FALSE(report.passed);
  for (const auto& row : report.rows) EXPECT_GT(row.wrong, 0u);
}

TEST(Collective, aTimeThatIsNoneIsNoPass) {
  for (const double seconds : {0.0, std::nan(""), -1.0, HUGE_VAL}) {
    World world(2);
    world.seconds = seconds;
    EXPECT_FALSE(runIn(world, job(2)).passed) << seconds;
  }
}

TEST(Collective, theFloorIsOfTheLargestMessage) {
  World world(2);
  auto asked = job(2);
  asked.min_bytes = 1024, asked.max_bytes = 1 << 20;
  asked.min_busbw_gbytes_per_s = 50;  // 1 MiB in 10 us is 105 GB/s, half of that on the bus of an
                                      // all-gather of two; 1 KiB is far below
  EXPECT_TRUE(runIn(world, asked).passed);
  asked.min_busbw_gbytes_per_s = 53;
  EXPECT_FALSE(runIn(world, asked).passed);
}

TEST(Collective, aRankThatDoesNotJoinIsNamed) {
  const auto report =
      runJob(job(2), [](const Job&, int, int) -> Result<std::unique_ptr<Communicator>> {
        return fail(ErrorCode::Timeout, "nobody answers");
      });
  EXPECT_FALSE(report.passed);
  EXPECT_NE(report.findings.front().find("could not begin g"), std::string::npos)
      << report.findings.front();
}

TEST(BusBandwidth, factorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(busFactor(Operation::AllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(busFactor(Operation::AllGather, 8), 0.875);
  EXPECT_DOUBLE_EQ(busFactor(Operation::ReduceScatter, 8), 0.875);
  EXPECT_DOUBLE_EQ(busFactor(Operation::AllToAll, 8), 0.875);
  EXPECT_DOUBLE_EQ(busFactor(Operation::SendRecv, 8), 1);
}

TEST(Reports, travelAndAreEvaluatedAgainByWhoReadsThem) {
  World world(2);
  const auto asked = job(2);
  const auto report = runIn(world, asked);
  const auto read = parseReport(toJson(report).dump(), asked);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_TRUE(read->passed);
  EXPECT_EQ(read->rows.size(), report.rows.size());
  auto lacking = toJson(report);
  lacking["rows"].erase(3);
  EXPECT_FALSE(parseReport(lacking.dump(), asked)->passed) << "a pass without all of its rows";
  auto wrong = toJson(report);
  wrong["rows"][0]["wrong"] = 1;
  EXPECT_FALSE(parseReport(wrong.dump(), asked)->passed) << "a pass with wrong values";
  auto null = toJson(report);
  null["rows"][0]["busbw_gbytes_per_s"] = nullptr;
  EXPECT_FALSE(parseReport(null.dump(), asked)->passed) << "NaN";
  auto mute = toJson(report);
  mute["passed"] = false;
  EXPECT_FALSE(parseReport(mute.dump(), asked)->passed);
  for (const char* text : {"", "{}", "OK", R"({"format":"muster-collective/1","group":"other"})"})
    EXPECT_FALSE(parseReport(text, asked)) << text;
}

TEST(Jobs, travelAndAreRefusedWhenTheyMakeNoSense) {
  auto asked = job(8);
  asked.hcas = "=mlx5_3", asked.first_rank = 4, asked.local_ranks = 4;
  const auto read = parseJob(toJson(asked).dump());
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(toJson(*read), toJson(asked));
  const std::vector<std::pair<const char*, nlohmann::json>> wrong = {
      {"ranks", 1},
      {"local_ranks", 0},
      {"first_rank", 6},
      {"first_rank", -1},
      {"meeting", "here"},
      {"operations", nlohmann::json::array()},
      {"operations", {"all-shout"}},
      {"max_bytes", 1},
      {"iterations", 0},
      {"limit_seconds", 0},
      {"group", ""},
      {"ranks", "many"}};
  for (const auto& [key, value] : wrong) {
    auto bad = toJson(asked);
    bad[key] = value;
    const auto refused = parseJob(bad.dump());
    ASSERT_FALSE(refused) << key << value;
    EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
  }
  EXPECT_FALSE(parseJob("nonsense"));
}

/// A number that is rounded, cut off or taken from `true` would be another job.
TEST(Jobs, aFieldOfAnotherKindIsNamed) {
  const auto asked = toJson(job(8));
  const std::vector<std::pair<const char*, nlohmann::json>> wrong = {
      {"group", 7},
      {"ranks", 8.5},
      {"ranks", true},
      {"ranks", 4294967304},
      {"seed", -1},
      {"max_bytes", "1G"},
      {"operations", "pair"},
      {"operations", {1}},
      {"limit_seconds", 1e300},
      {"min_busbw_gbytes_per_s", "350"}};
  for (const auto& [key, value] : wrong) {
    auto bad = asked;
    bad[key] = value;
    const auto refused = parseJob(bad.dump());
    ASSERT_FALSE(refused) << key << value;
    EXPECT_THAT(refused.error().text(), testing::HasSubstr(std::string(key) + " must be "))
        << value;
  }
  auto missing = asked;
  missing.erase("meeting"), missing["ranks"] = "many";
  EXPECT_THAT(parseJob(missing.dump()).error().text(),
              testing::HasSubstr("meeting is missing; ranks must be a whole number"));
}

TEST(Placement, groupsRunAtOnceAtMeetingPlacesOfTheirOwn) {
  const auto jobs = placeGroups(
      {{"a", {"n1", "n2"}, "10.0.0.1", 8}, {"b", {"n3", "n4", "n5"}, "10.0.0.3", 8}}, job(), 41000);
  ASSERT_TRUE(jobs) << jobs.error().str();
  ASSERT_EQ(jobs->size(), 5u);
  EXPECT_EQ((*jobs)[1].node, "n2");
  EXPECT_EQ((*jobs)[1].job.first_rank, 8);
  EXPECT_EQ((*jobs)[1].job.ranks, 16);
  EXPECT_EQ((*jobs)[1].job.meeting, "10.0.0.1:41000");
  EXPECT_EQ((*jobs)[4].job.first_rank, 16);
  EXPECT_EQ((*jobs)[4].job.ranks, 24);
  EXPECT_EQ((*jobs)[4].job.meeting, "10.0.0.3:41001");
}

TEST(Placement, aNodeIsInOneGroupOnly) {
  EXPECT_FALSE(placeGroups({{"a", {"n1", "n2"}, "10.0.0.1", 8}, {"b", {"n2", "n3"}, "10.0.0.2", 8}},
                           job(), 41000));
  EXPECT_FALSE(placeGroups({{"a", {"n1"}, "10.0.0.1", 1}}, job(), 41000))
      << "one rank alone talks to nobody";
  EXPECT_FALSE(
      placeGroups({{"a", {"n1"}, "10.0.0.1", 8}, {"b", {"n2"}, "10.0.0.2", 8}}, job(), 65535))
      << "no port is left";
}

}  // namespace
}  // namespace muster::collective
