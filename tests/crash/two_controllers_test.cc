// Two controllers with the real phases on one rack of machines in memory and one PostgreSQL. One is killed in the middle, wherever that
// is: the other finishes, no component is flashed twice, no disk is written twice, no job is killed, nothing stays locked.
#include "tests/crash/simulated_rack.h"
#include "tests/lifecycle/postgres_server.h"

#include <boost/asio/co_spawn.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

constexpr std::chrono::milliseconds kTestLease{2'000};  ///< of real time: the database's clock counts it
constexpr int kMaxRounds = 2'000;
constexpr int kMaxSteps = 50'000'000;
constexpr auto kLookAgain = 5s;

/// Rounds until nothing is left, also of what the other controller holds.
Async<lifecycle::ApplyReport> converge(Process& process, lifecycle::Store& store, const inventory::Cluster& cluster, Clock& clock) {
  lifecycle::ApplyReport last;
  int done = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    auto observe = process.engine->observe({});
    CO_TRY(facts, co_await std::move(observe));
    CO_TRY(policy, lifecycle::policyOf(store, {}));
    CO_TRY(plan, lifecycle::makePlan(cluster, facts, policy, process.phases));
    CO_TRY(open, store.openIntents());
    auto apply = process.engine->apply(plan);
    CO_TRY(report, co_await std::move(apply));
    last = std::move(report);
    done += last.done;
    last.done = done;
    if (plan.empty() && open.empty()) co_return last;
    auto pause = clock.sleep(kLookAgain);
    co_await std::move(pause);
  }
  co_return fail(ErrorCode::Timeout, fmt::format("there is always something left to do: {}", fmt::join(last.problems, "; ")));
}

/// One process: a connection of its own to the database, a loop of its own. It may die at a write.
class Controller {
 public:
  Controller(SimulatedRack& rack, const std::string& url, const std::string& holder, int crash_at)
      : rack_(rack), durable_(std::move(*lifecycle::openStore(url))), store_(*durable_, crash_at, false), process_(std::in_place, rack, rack.cluster, store_) {
    process_->engine->actFor({holder, kTestLease, "test", holder, "muster apply"});
    asio::co_spawn(*io_, converge(*process_, store_, rack.cluster, rack.wall), [this](std::exception_ptr thrown, Result<lifecycle::ApplyReport> report) {
      if (!thrown) answer_ = std::move(report);
      ended_ = true;
    });
  }

  /// Whether anything was done.
  bool poll() {
    if (!io_) return false;
    bool ran = io_->poll_one() > 0;
    if (store_.crashed) {
      kill();
      return true;
    }
    std::promise<void> idle;
    asio::post(process_->workers.pool(), [&idle] { idle.set_value(); });
    idle.get_future().wait();
    return ran || io_->poll_one() > 0;
  }
  bool crashed() const { return store_.crashed; }
  bool ended() const { return ended_ || !io_; }
  int writes() const { return store_.writes; }
  const std::optional<Result<lifecycle::ApplyReport>>& answer() const { return answer_; }

 private:
  /// Nothing more runs: its coroutines go with its loop, its session with its connection.
  void kill() {
    io_.reset();
    process_.reset();
    durable_.reset();
  }

  SimulatedRack& rack_;
  std::unique_ptr<lifecycle::Store> durable_;
  CrashStore store_;
  std::optional<Process> process_;
  std::optional<Result<lifecycle::ApplyReport>> answer_;
  bool ended_ = false;
  std::optional<asio::io_context> io_{std::in_place};
};

class TwoControllers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!postgresServer().whyNot().empty()) GTEST_SKIP() << postgresServer().whyNot();
    url_ = postgresServer().createDatabase();
    rack_ = std::make_unique<SimulatedRack>(std::vector<std::string>{"gpu001", "gpu002", "gpu003", "gpu004"});
  }

  /// Both until they have ended or died, in virtual time. Time stands still while either has something to do.
  void runBoth(Controller& first, Controller& second) {
    asio::io_context world;
    bool stop = false;
    asio::co_spawn(world, machines(*rack_, stop), [](std::exception_ptr) {});
    for (int step = 0; step < kMaxSteps && !(first.ended() && second.ended()); ++step) {
      const bool a = first.poll(), b = second.poll(), w = world.poll_one() > 0;
      if (a || b || w) continue;
      ASSERT_TRUE(rack_->clock.advanceToNext()) << "everything waits and nobody sleeps";
    }
    stop = true;
  }
  void expectTheEnd() {
    EXPECT_THAT(rack_->violations, IsEmpty());
    for (const auto& [node, machine] : rack_->machines) {
      SCOPED_TRACE(node.str());
      EXPECT_EQ(rack_->uploads(node.str(), "BMC"), 1);
      EXPECT_EQ(rack_->uploads(node.str(), "BIOS"), 1);
      EXPECT_EQ(machine.image_writes, 1);
      EXPECT_EQ(machine.driver_installs.at("rdma"), 1);
      EXPECT_TRUE(rack_->inPool(node.str()));
    }
    auto store = lifecycle::openStore(url_);
    ASSERT_TRUE(store);
    EXPECT_THAT(*(*store)->openIntents(), IsEmpty());
    EXPECT_THAT(*(*store)->claims(), IsEmpty());
  }
  static Task<void> machines(SimulatedRack& rack, const bool& stop) {
    while (!stop) {
      rack.tick();
      auto sleep = rack.clock.sleep(1s);
      co_await std::move(sleep);
    }
  }

  std::string url_;
  std::unique_ptr<SimulatedRack> rack_;
};

TEST_F(TwoControllers, shareTheRoadOfARack) {
  Controller first(*rack_, url_, "ctl1", CrashStore::kNever), second(*rack_, url_, "ctl2", CrashStore::kNever);
  runBoth(first, second);
  for (const auto* each : {&first, &second}) {
    ASSERT_TRUE(each->answer());
    ASSERT_TRUE(*each->answer()) << each->answer()->error().str();
  }
  EXPECT_GT((*first.answer())->done + (*second.answer())->done, 4 * 8);
  expectTheEnd();
}

class OneDies : public TwoControllers, public ::testing::WithParamInterface<int> {};

TEST_P(OneDies, andTheOtherFinishes) {
  Controller first(*rack_, url_, "ctl1", GetParam()), second(*rack_, url_, "ctl2", CrashStore::kNever);
  runBoth(first, second);
  EXPECT_TRUE(first.crashed()) << "it made only " << first.writes() << " writes";
  ASSERT_TRUE(second.answer());
  ASSERT_TRUE(*second.answer()) << second.answer()->error().str();
  EXPECT_TRUE((*second.answer())->ok()) << fmt::format("{}", fmt::join((*second.answer())->problems, "\n"));
  expectTheEnd();
}

/// From its first claim to the joins at the end.
INSTANTIATE_TEST_SUITE_P(Writes, OneDies, ::testing::Values(8, 31, 55, 79, 103, 127));

}  // namespace
}  // namespace muster::test
