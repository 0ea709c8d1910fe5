// SPDX-License-Identifier: Apache-2.0
// Collectives over TCP: ranks as threads on the loopback, and as the real program, a process a
// node.
#include "base/io/process.h"
#include "tests/paths.h"
#include "tests/validate/collective/free_port.h"
#include "validate/collective/collective.h"
#include "validate/collective/tcp_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>
#include <thread>

namespace muster::collective {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

Job job(int ranks, int local, int port) {
  Job job;
  job.group = "g", job.meeting = fmt::format("127.0.0.1:{}", port), job.ranks = ranks,
  job.local_ranks = local;
  job.operations = {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter,
                    Operation::AllToAll,  Operation::SendRecv,  Operation::Pair};
  job.transport = Transport::Tcp;
  job.min_bytes = 4, job.max_bytes = 50'000;  // neither is a multiple of most numbers of ranks
  job.iterations = 2, job.limit = std::chrono::seconds(60);
  return job;
}

TEST(Meetings, everybodyMeetsEverybodyOnceAndNobodyTwoAtOnce) {
  for (int players = 2; players <= 33; ++players) {
    std::vector<std::vector<int>> met;
    for (int rank = 0; rank < players; ++rank) met.push_back(meetings(players, 1, rank));
    for (std::size_t step = 0; step < met[0].size(); ++step)
      for (int rank = 0; rank < players; ++rank) {
        const int other = met[static_cast<std::size_t>(rank)][step];
        if (other >= 0) {
          ASSERT_EQ(met[static_cast<std::size_t>(other)][step], rank)
              << players << " players, step " << step;
        }
      }
    for (int rank = 0; rank < players; ++rank) {
      std::set<int> others(met[static_cast<std::size_t>(rank)].begin(),
                           met[static_cast<std::size_t>(rank)].end());
      others.erase(-1);
      ASSERT_EQ(others.size(), static_cast<std::size_t>(players) - 1) << players;
      ASSERT_FALSE(others.contains(rank));
      ASSERT_LE(met[static_cast<std::size_t>(rank)].size(),
                static_cast<std::size_t>(players) - 1 + players % 2)
          << "no more steps than it takes";
    }
  }
}

TEST(Meetings, ranksOfOneRailStayAmongThemselves) {
  for (const int other : meetings(5 * 4, 4, 6)) {  // node 1, place 2
    if (other >= 0) {
      EXPECT_EQ(other % 4, 2);
    }
  }
  EXPECT_EQ(meetings(8, 8, 3).size(), 7u) << "within a node everybody meets";
}

class Mesh : public testing::TestWithParam<int> {};
TEST_P(Mesh, everyOperationGivesWhatTheFormulaSays) {
  const int ranks = GetParam();
  const auto report = runJob(job(ranks, ranks, freePort()), joinTcp);
  EXPECT_TRUE(report.passed) << testing::PrintToString(report.findings);
  const auto sizes = 8u;  // 4, 16, … 16384, 50000
  EXPECT_EQ(report.rows.size(),
            static_cast<std::size_t>(ranks) * (5 * sizes + static_cast<std::size_t>(ranks) - 1));
}
INSTANTIATE_TEST_SUITE_P(Ranks, Mesh, testing::Values(2, 3, 4, 7));

TEST(MeshErrors, aRankThatDoesNotComeIsAFailureWithinTheLimit) {
  auto asked = job(3, 1, freePort());
  asked.limit = std::chrono::seconds(1);
  const auto report = runJob(asked, joinTcp);
  EXPECT_FALSE(report.passed);
  EXPECT_THAT(report.findings.front(), AllOf(HasSubstr("rank 0 could not begin g"),
                                             HasSubstr("rank 1, rank 2 did not connect")));
}

TEST(MeshErrors, unknownPeersAtTheMeetingPlaceAreSentAway) {
  const auto asked = job(2, 2, freePort());
  std::jthread unknown([&] {
    const auto end = StreamClock::now() + std::chrono::seconds(20);
    auto stream = connectTo("127.0.0.1", std::stoi(asked.meeting.substr(10)), end);
    const std::string words(200, 'G');  // as long as a hello, and none
    if (stream) (void)sendAll(stream->get(), words.data(), words.size(), end);
  });
  const auto report = runJob(asked, joinTcp);
  EXPECT_TRUE(report.passed) << testing::PrintToString(report.findings);
}

TEST(MeshErrors, aRankOfAnotherJobIsNoneOfOurs) {
  auto ours = job(2, 1, freePort()), theirs = ours;
  theirs.first_rank = 1, theirs.seed = 77;  // its data would not be what we expect
  ours.limit = theirs.limit = std::chrono::seconds(2);
  JobReport first, second;
  {
    std::jthread one([&] { first = runJob(ours, joinTcp); });
    std::jthread two([&] { second = runJob(theirs, joinTcp); });
  }
  EXPECT_FALSE(first.passed);
  EXPECT_FALSE(second.passed);
}

TEST(PairReports, travelAndAreEvaluatedAgainByWhoReadsThem) {
  auto asked = job(3, 3, freePort());
  asked.operations = {Operation::Pair};
  const auto report = runJob(asked, joinTcp);
  ASSERT_TRUE(report.passed);
  const auto told = toJson(report);
  const auto read = parseReport(told.dump(), asked);
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_TRUE(read->passed);
  ASSERT_EQ(read->rows.size(), 6u);
  EXPECT_NEAR(read->rows[0].algbw_gbytes_per_s, report.rows[0].algbw_gbytes_per_s, 2e-5);
  auto lacking = told;
  lacking["pairs"]["of"][1]["peers"].erase(0), lacking["pairs"]["of"][1]["gbits"].erase(0);
  EXPECT_FALSE(parseReport(lacking.dump(), asked)->passed) << "a pair without a result";
  auto wrong = told;
  wrong["pairs"]["wrong"].push_back({0, 1, 5});
  const auto evaluated = parseReport(wrong.dump(), asked);
  EXPECT_FALSE(evaluated->passed) << "wrong data";
  EXPECT_THAT(evaluated->findings.front(), HasSubstr("with rank 1: 5 wrong values"));
  auto null = told;
  null["pairs"]["of"][0]["gbits"][0] = nullptr;
  EXPECT_FALSE(parseReport(null.dump(), asked)->passed) << "NaN";
  auto foreign = told;
  foreign["pairs"]["of"][0]["rank"] = 17;
  EXPECT_FALSE(parseReport(foreign.dump(), asked)) << "a rank that is none of the job's";
  foreign = told;
  foreign["pairs"]["of"][0]["peers"][0] = 3;
  EXPECT_FALSE(parseReport(foreign.dump(), asked));
}

/// muster-collective as the agents start it.
io::ProcessExit program(std::string input, std::vector<std::string> words = {}) {
  io::Command command{(test::binFolder() / "muster-collective").string(), std::move(words)};
  command.stdin_text = std::move(input);
  auto ended = io::runBlocking(command);
  return ended ? std::move(*ended) : io::ProcessExit{-1, "", ended.error().str()};
}

TEST(CollectiveProgram, nodesMeetAndTellEveryPair) {
  constexpr int kNodes = 3, kLocal = 2;
  const auto port = freePort();
  std::vector<io::ProcessExit> ended(kNodes);
  std::vector<Job> jobs;
  for (int node = 0; node < kNodes; ++node) {
    jobs.push_back(job(kNodes * kLocal, kLocal, port));
    jobs.back().first_rank = node * kLocal;
    jobs.back().operations = {Operation::AllToAll, Operation::Pair};
  }
  {
    std::vector<std::jthread> threads;
    for (int node = 0; node < kNodes; ++node)
      threads.emplace_back([&, node] {
        ended[static_cast<std::size_t>(node)] =
            program(toJson(jobs[static_cast<std::size_t>(node)]).dump());
      });
  }
  for (int node = 0; node < kNodes; ++node) {
    const auto& each = ended[static_cast<std::size_t>(node)];
    EXPECT_EQ(each.code, 0) << each.out << each.err;
    const auto report = parseReport(each.out, jobs[static_cast<std::size_t>(node)]);
    ASSERT_TRUE(report) << report.error().str();
    EXPECT_TRUE(report->passed) << testing::PrintToString(report->findings);
    std::set<std::pair<int, int>> pairs;
    for (const auto& row : report->rows)
      if (row.operation == Operation::Pair) pairs.emplace(row.rank, row.peer);
    std::set<std::pair<int, int>> expected;
    for (int local = 0; local < kLocal; ++local)
      for (int other = 0; other < kNodes; ++other)
        if (other != node) expected.emplace(node * kLocal + local, other * kLocal + local);
    EXPECT_EQ(pairs, expected);
  }
}

TEST(CollectiveProgram, aReportThatCannotBeWrittenIsNoSuccess) {
  io::Command command{
      "sh",
      {"-c", "exec \"$0\" --probe >/dev/full", (test::binFolder() / "muster-collective").string()}};
  const auto ended = io::runBlocking(command);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 4) << ended->err;
}

TEST(CollectiveProgram, saysWhatItCannotDo) {
  const auto probe = program("", {"--probe"});
  ASSERT_EQ(probe.code, 0) << probe.err;
  const auto said = json::parse(probe.out);
  EXPECT_EQ(said.at("transports").at(0), "tcp");
  auto asked = job(2, 1, freePort());
  asked.limit = std::chrono::seconds(1);
  EXPECT_EQ(program("nonsense").code, 2);
  EXPECT_EQ(program(toJson(asked).dump(), {"--verbose"}).code, 2);
  const auto late = program(toJson(asked).dump());
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.out, HasSubstr("rank 1 did not connect"));
  // A mistyped floor would be none, and one of nothing, too.
  auto mistyped = toJson(asked);
  mistyped["min_busbw_gbyte_per_s"] = 1e6;
  const auto refused = program(mistyped.dump());
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("it has no min_busbw_gbyte_per_s"));
  auto of_nothing = toJson(asked);
  of_nothing["operations"] = {"pair"}, of_nothing["min_busbw_gbytes_per_s"] = 100;
  EXPECT_THAT(program(of_nothing.dump()).err, HasSubstr("is a floor of collectives, and none"));
  EXPECT_THAT(program("{}").err, HasSubstr("this is not a job"));
  if (said.at("transports").size() > 1)
    GTEST_SKIP() << "NCCL can be used here: tools/gpu-test runs it";
  EXPECT_FALSE(said.at("no_nccl").get<std::string>().empty());
  asked.transport = Transport::Nccl;
  const auto without = program(toJson(asked).dump());
  EXPECT_EQ(without.code, 1);
  const auto report = json::parse(without.out);
  EXPECT_FALSE(report.at("passed"));
  EXPECT_EQ(report.at("findings").at(0), said.at("no_nccl"));
}

}  // namespace
}  // namespace muster::collective
