// SPDX-License-Identifier: Apache-2.0
// The first process of a group hands out what all meet by; and what is known of a job that does not
// come to its end.
#include "validate/collective/nccl_meeting.h"
#include "tests/validate/collective/free_port.h"
#include "validate/collective/tcp_streams.h"

#include <gmock/gmock.h>

#include <future>
#include <latch>
#include <set>

namespace muster::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A process of two ranks of six.
Job partOf(int port, int first_rank, std::chrono::seconds limit = std::chrono::seconds(20)) {
  Job job;
  job.group = "g", job.meeting = fmt::format("127.0.0.1:{}", port);
  job.ranks = 6, job.first_rank = first_rank, job.local_ranks = 2, job.limit = limit;
  return job;
}

struct Came {
  std::vector<std::string> addresses;
  Result<std::string> id = fail(ErrorCode::Internal, "nobody came");
};

std::future<Came> come(Job job, std::function<Result<std::string>()> make) {
  return std::async(std::launch::async, [job = std::move(job), make = std::move(make)] {
    Came came;
    came.id = meetForId(
        job, [&came](const std::string& address) { came.addresses.push_back(address); }, make);
    return came;
  });
}
Result<std::string> never() { return fail(ErrorCode::Internal, "only rank 0's process makes it"); }

TEST(Meeting, allGetWhatTheFirstHasMade) {
  const int port = freePort();
  const std::string id(128, 'x');
  auto last = come(partOf(port, 4), never), middle = come(partOf(port, 2), never);
  auto first = come(partOf(port, 0), [&id]() -> Result<std::string> { return id; });
  for (auto* each : {&first, &middle, &last}) {
    const auto came = each->get();
    ASSERT_TRUE(came.id) << came.id.error().str();
    EXPECT_EQ(*came.id, id);
    EXPECT_THAT(came.addresses, ElementsAre("127.0.0.1")) << "before NCCL chooses an interface";
  }
}

TEST(Meeting, oneProcessOfAllRanksMeetsNobody) {
  auto job = partOf(1, 0);
  job.local_ranks = job.ranks;
  const auto came = come(job, []() -> Result<std::string> { return "id"; }).get();
  EXPECT_EQ(*came.id, "id");
  EXPECT_TRUE(came.addresses.empty());
}

TEST(Meeting, whoDoesNotComeIsCounted) {
  const int port = freePort();
  auto middle = come(partOf(port, 2, std::chrono::seconds(3)), never);
  auto first =
      come(partOf(port, 0, std::chrono::seconds(2)), []() -> Result<std::string> { return "id"; });
  const auto alone = first.get();
  ASSERT_FALSE(alone.id);
  EXPECT_THAT(alone.id.error().str(), HasSubstr("2 of 4 ranks on other nodes did not come"));
  EXPECT_FALSE(middle.get().id);
}

TEST(Meeting, anotherJobsProcessIsSentAway) {
  const int port = freePort();
  auto unknown = partOf(port, 4);
  unknown.seed = 99;
  auto wrong = come(unknown, never);
  auto first = come(partOf(port, 0), []() -> Result<std::string> { return "id"; });
  EXPECT_FALSE(wrong.get().id);
  auto middle = come(partOf(port, 2), never), last = come(partOf(port, 4), never);
  EXPECT_TRUE(first.get().id);
  EXPECT_TRUE(middle.get().id);
  EXPECT_TRUE(last.get().id);
}

TEST(Meeting, theSameRanksTwiceAreAnError) {
  const int port = freePort();
  auto one = come(partOf(port, 2, std::chrono::seconds(5)), never),
       same = come(partOf(port, 2, std::chrono::seconds(5)), never);
  const auto first = come(partOf(port, 0), []() -> Result<std::string> { return "id"; }).get();
  ASSERT_FALSE(first.id);
  EXPECT_EQ(first.id.error().code(), ErrorCode::Conflict);
  EXPECT_FALSE(one.get().id);
  EXPECT_FALSE(same.get().id);
}

TEST(Meeting, theInterfaceOfTheWayIsNcclsUnlessTheSiteHasChosen) {
  ::unsetenv("NCCL_SOCKET_IFNAME");
  useInterfaceOf("203.0.113.7");
  EXPECT_EQ(std::getenv("NCCL_SOCKET_IFNAME"), nullptr) << "no interface here has it";
  useInterfaceOf("127.0.0.1");
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "=lo");
  ::setenv("NCCL_SOCKET_IFNAME", "ib0", 1);
  useInterfaceOf("127.0.0.1");
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "ib0");
  ::unsetenv("NCCL_SOCKET_IFNAME");
}

/// One rank's GPU fails, and the other waits for it for ever: what ends them from outside can say
/// who failed.
TEST(Progress, holdsTheWordsOfWhoFailedWhileOthersStandStill) {
  auto job = partOf(1, 0);
  job.ranks = job.local_ranks = 2;
  job.operations = {Operation::AllReduce};
  std::latch failed(1), looked(1);
  const Join join = [&](const Job&, int rank, int) -> Result<std::unique_ptr<Communicator>> {
    if (rank == 0) looked.wait();
    if (rank == 1) failed.count_down();
    return fail(ErrorCode::Unavailable, rank == 1 ? "cudaSetDevice: device is lost" : "was let go");
  };
  Progress progress;
  auto running = std::async(std::launch::async, [&] { return runJob(job, join, progress); });
  failed.wait();
  while (progress.soFar("g").findings.empty()) std::this_thread::yield();
  const auto known = progress.soFar("g");
  EXPECT_THAT(known.findings, ElementsAre(HasSubstr("device is lost")));
  EXPECT_FALSE(known.passed);
  looked.count_down();
  EXPECT_EQ(running.get().findings.size(), 2u);
}

}  // namespace
}  // namespace muster::collective
