// SPDX-License-Identifier: Apache-2.0
// The host side of ranks that talk by NCCL, over a CUDA runtime and an NCCL of the tests: no GPU is
// needed, and none is proven by it.
#include "tests/fakes/cuda/fake_cuda.h"
#include "tests/fakes/nccl/fake_nccl.h"
#include "tests/validate/collective/group_of_ranks.h"
#include "validate/collective/transports.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <set>

extern "C" void muster_collective_open_nccl(muster::Result<muster::collective::NcclFound>& found);

namespace muster::collective {
namespace {

using test::fakeCuda;
using test::fakeNccl;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;

class Nccl : public testing::Test {
 protected:
  Nccl() {
    fakeCuda() = {};
    fakeCuda().gpus = kMostRanks;
    fakeNccl().reset();
  }

  static constexpr int kMostRanks = 16;
  static Result<NcclFound> open() {
    Result<NcclFound> found = fail(ErrorCode::Internal, "not opened");
    muster_collective_open_nccl(found);
    return found;
  }
  static JobReport run(int ranks, std::chrono::seconds limit = std::chrono::seconds(300)) {
    return runEveryOperation(open(), ranks, limit);
  }
  static void expectAllIsGivenBack() {
    EXPECT_EQ(fakeCuda().taken, 0u);
    EXPECT_EQ(fakeCuda().handles, 0);
    EXPECT_EQ(fakeNccl().communicators, 0);
  }
};

class NcclRanks : public Nccl, public testing::WithParamInterface<int> {};
TEST_P(NcclRanks, everyOperationGivesWhatTheFormulaSays) {
  const auto report = run(GetParam());
  EXPECT_TRUE(report.passed) << testing::PrintToString(report.findings);
  std::set<Operation> seen;
  std::set<std::string> devices;
  for (const auto& row : report.rows) seen.insert(row.operation), devices.insert(row.device);
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_EQ(devices.size(), static_cast<std::size_t>(GetParam())) << "a GPU a rank";
  EXPECT_EQ(fakeNccl().aborted, 0) << "what a proxy has still to send would be lost";
  EXPECT_EQ(fakeNccl().destroyed, GetParam());
  expectAllIsGivenBack();
}
INSTANTIATE_TEST_SUITE_P(Counts, NcclRanks, testing::Values(2, 3, 4, 8, 16));

TEST_F(Nccl, oneWrongValueOfOneRankFailsWhoeverReceivesIt) {
  fakeNccl().corrupt = 2;
  const auto report = run(4);
  EXPECT_FALSE(report.passed);
  std::map<Operation, std::set<int>> wrong;
  for (const auto& row : report.rows)
    if (row.wrong) wrong[row.operation].insert(row.rank);
  EXPECT_EQ(wrong[Operation::SendRecv], std::set<int>{3}) << "its neighbour alone";
  EXPECT_EQ(wrong[Operation::AllReduce].size(), 4u);
  for (const auto& row : report.rows)
    if (row.operation == Operation::Pair) {
      EXPECT_EQ(row.wrong > 0, row.peer == 2) << "rank " << row.rank << " with " << row.peer;
    }
}

TEST_F(Nccl, outputsThatNobodyWroteAreWrong) {
  fakeNccl().silent = true;
  const auto report = run(2);
  EXPECT_FALSE(report.passed);
  EXPECT_FALSE(report.rows.empty());
  for (const auto& row : report.rows) EXPECT_GT(row.wrong, 0u) << toString(row.operation);
}

TEST_F(Nccl, anErrorOfNcclIsToldWithItsCallAndEverythingGivenBack) {
  for (const char* call : {"ncclCommInitRank", "ncclAllReduce", "ncclSend"}) {
    fakeNccl().failing = call;
    const auto report = run(2);
    EXPECT_FALSE(report.passed);
    EXPECT_THAT(fmt::format("{}", fmt::join(report.findings, "; ")),
                AllOf(HasSubstr(call), HasSubstr("the cable was pulled")));
    EXPECT_EQ(fakeNccl().destroyed, 0) << "it would wait for ever";
    expectAllIsGivenBack();
  }
}

// A peer whose cable is pulled returns no error from any call: the kernels only wait.
TEST_F(Nccl, anErrorBehindACallIsReadWhileTheStreamWaits) {
  fakeNccl().remote_error = true, fakeCuda().stalled = true;
  const auto report = run(2);
  EXPECT_FALSE(report.passed);
  for (const int rank : {0, 1})
    EXPECT_THAT(report.findings,
                Contains(AllOf(HasSubstr(fmt::format("rank {}", rank)), HasSubstr("all-reduce"),
                               HasSubstr("NCCL met an error"), HasSubstr("the cable was pulled"))));
  EXPECT_EQ(fakeNccl().aborted, 2) << "only an abort releases the stream";
  EXPECT_EQ(fakeNccl().destroyed, 0);
  expectAllIsGivenBack();
}

TEST_F(Nccl, aStreamThatIsNotReadyYetIsNoError) {
  fakeCuda().busy_queries = 2;
  const auto report = run(2);
  EXPECT_TRUE(report.passed) << testing::PrintToString(report.findings);
}

TEST_F(Nccl, aStreamThatStandsStillEndsAtTheLimitWithItsRankAndOperation) {
  fakeCuda().stalled = true;
  const auto report = run(2, std::chrono::seconds(1));
  EXPECT_FALSE(report.passed);
  EXPECT_THAT(fmt::format("{}", fmt::join(report.findings, "; ")),
              AllOf(HasSubstr("rank 1"), HasSubstr("all-reduce stands still")));
  EXPECT_EQ(fakeNccl().aborted, 2);
  expectAllIsGivenBack();
}

TEST_F(Nccl, aLostContextEndsTheRank) {
  fakeCuda().lost = true;
  const auto report = run(2);
  EXPECT_FALSE(report.passed);
  EXPECT_THAT(report.findings, Each(HasSubstr("cudaStreamQuery")));
  expectAllIsGivenBack();
}

TEST_F(Nccl, withoutAnIdOrWithAnothersNobodyJoins) {
  fakeNccl().failing = "ncclGetUniqueId";
  EXPECT_THAT(run(2).findings, Each(HasSubstr("ncclGetUniqueId")));
  fakeNccl().failing.clear();
  const auto joined = open()->join_by("too short")(Job{}, 0, 0);
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().text(), HasSubstr("two versions of NCCL"));
  expectAllIsGivenBack();
}

TEST_F(Nccl, anyGpuAndItsVersionAreTold) {
  EXPECT_EQ(open()->version, "2.28.3");
  EXPECT_EQ(open()->gpus, kMostRanks);
  fakeCuda().gpus = 0;
  EXPECT_THAT(open().error().text(), HasSubstr("CUDA sees no GPU"));
}

}  // namespace
}  // namespace muster::collective
