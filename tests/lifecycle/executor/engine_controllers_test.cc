// SPDX-License-Identifier: Apache-2.0
// Two controllers, two processes, one PostgreSQL. One of them is killed or stopped in the middle,
// or the server is restarted: the work ends, and nothing is done twice.
#include "inventory/model/cluster.h"
#include "lifecycle/audit/audit.h"
#include "lifecycle/executor/engine.h"
#include "tests/lifecycle/postgres_server.h"
#include "tests/lifecycle/shared_world.h"

#include <gtest/gtest.h>

#include <sys/wait.h>

#include <thread>

namespace muster::lifecycle {
namespace {

using test::postgresServer;
using test::SharedPhase;
using test::SharedWorld;

constexpr std::chrono::milliseconds kTestLease{1'500};
constexpr int kNodes = 16;
constexpr int kOperations = kNodes * static_cast<int>(std::size(SharedPhase::kSteps));
constexpr int kMaxRounds = 200;
constexpr std::chrono::seconds kPatience{60};

inventory::Cluster cluster() {
  std::vector<std::string> names;
  for (int i = 1; i <= kNodes; ++i) names.push_back("gpu" + std::to_string(i));
  return test::clusterOf(names);
}

/// One round. Answers whether nothing is left.
Async<bool> goRound(Engine& engine, Store& store, const inventory::Cluster& declared,
                    Phases phases) {
  CO_TRY(facts, co_await engine.observe({}));
  CO_TRY(policy, policyOf(store, {}));
  CO_TRY(plan, makePlan(declared, facts, policy, phases));
  CO_TRY(open, store.openIntents());
  if (plan.empty() && open.empty()) co_return true;
  CO_TRY(report, co_await engine.apply(plan));
  co_return report.done < 0;
}

class ControllersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!postgresServer().whyNot().empty()) GTEST_SKIP() << postgresServer().whyNot();
    url_ = postgresServer().createDatabase();
    world_ = std::make_unique<SharedWorld>(folder_ / "world.db");
    ASSERT_TRUE(openStore(url_));
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

  /// A process that goes round until nothing is left. Exit 0: the work ended.
  pid_t start(const std::string& holder) {
    const pid_t child = ::fork();
    if (child != 0) {
      children_.push_back(child);
      return child;
    }
    const auto declared = cluster();
    SharedWorld world(folder_ / "world.db");
    SharedPhase phase(world);
    SystemClock clock;
    auto store = openStore(url_);
    if (!store) ::_exit(2);
    Engine engine(declared, {&phase}, **store, clock, nullptr);
    engine.actFor({holder, kTestLease, "test", "here", "muster apply"});
    for (int round = 0; round < kMaxRounds; ++round) {
      auto ended = test::runAsync(goRound(engine, **store, declared, {&phase}), kPatience);
      if (ended && *ended) ::_exit(0);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ::_exit(1);
  }

  bool waitForOperations(int count) {
    for (int tries = 0; tries < 2'000; ++tries) {
      if (world_->operations() >= count) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  /// Wherever it is, but not while it holds the lock of the world's file: nothing takes that from a
  /// stopped process, and it is the test's, not the store's.
  void stop(pid_t child) {
    for (int tries = 0; tries < 1'000; ++tries) {
      ::kill(child, SIGSTOP);
      int status = 0;
      ::waitpid(child, &status, WUNTRACED);
      if (!WIFSTOPPED(status)) {
        std::erase(children_, child);
        ADD_FAILURE() << "it has ended before it could be stopped";
        return;
      }
      if (world_->isFree()) return;
      ::kill(child, SIGCONT);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ADD_FAILURE() << "it never lets the world go";
  }
  /// Its exit code; -1 when it does not end.
  int exitOf(pid_t child) {
    for (int tries = 0; tries < 6'000; ++tries) {
      int status = 0;
      if (::waitpid(child, &status, WNOHANG) == child) {
        std::erase(children_, child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return -1;
  }
  void expectTheEnd() {
    EXPECT_EQ(world_->doneTwice(), "");
    EXPECT_EQ(world_->operations(), kOperations);
    auto store = openStore(url_);
    ASSERT_TRUE(store);
    EXPECT_TRUE((*store)->openIntents()->empty());
    EXPECT_EQ((*store)->facts()->all().size(), static_cast<std::size_t>(kOperations));
    auto report = verifyAudit(**store, "");
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->ok()) << report->problems.front();
  }

  test::TempFolder folder_;
  std::string url_;
  std::unique_ptr<SharedWorld> world_;
  std::vector<pid_t> children_;
};

TEST_F(ControllersTest, oneIsKilledAndTheOtherFinishes) {
  const pid_t first = start("ctl1");
  ASSERT_TRUE(waitForOperations(kOperations / 4));
  const pid_t second = start("ctl2");
  ASSERT_TRUE(waitForOperations(kOperations / 2));
  ::kill(first, SIGKILL);
  EXPECT_EQ(exitOf(first), 128 + SIGKILL);
  EXPECT_EQ(exitOf(second), 0);
  expectTheEnd();
}

TEST_F(ControllersTest, oneIsStoppedAndWhenItWakesUpItCannotAct) {
  const pid_t first = start("ctl1");
  ASSERT_TRUE(waitForOperations(kOperations / 2));
  stop(first);
  const pid_t second = start("ctl2");
  EXPECT_EQ(exitOf(second), 0);
  expectTheEnd();
  ::kill(first, SIGCONT);
  EXPECT_EQ(exitOf(first),
            0);  // it sees that it was taken over, looks again, and has nothing left to do
  expectTheEnd();
}

TEST_F(ControllersTest, theServerIsRestartedInTheMiddle) {
  const pid_t first = start("ctl1"), second = start("ctl2");
  ASSERT_TRUE(waitForOperations(kOperations / 2));
  postgresServer().restart();
  EXPECT_EQ(exitOf(first), 0);
  EXPECT_EQ(exitOf(second), 0);
  expectTheEnd();
}

}  // namespace
}  // namespace muster::lifecycle
