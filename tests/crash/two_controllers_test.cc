// SPDX-License-Identifier: Apache-2.0
// Two controllers with the real phases on one rack of machines in memory and one PostgreSQL, each
// with a state folder of its own. One is killed in the middle, wherever that is: the other
// finishes, no component is flashed twice, no disk is written twice, no job is killed, nothing
// stays locked. What one certifies or revokes, the other's plan and the monitor go by.
#include "inventory/model/cluster.h"
#include "monitor/monitor.h"
#include "tests/crash/simulated_rack.h"
#include "tests/lifecycle/postgres_server.h"
#include "tests/lifecycle/virtual_time.h"
#include "validate/validate.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::chrono::milliseconds kTestLease{
    2'000};  ///< of real time: the database's clock counts it
constexpr int kMaxRounds = 2'000;
constexpr int kMaxSteps = 50'000'000;
constexpr auto kLookAgain = 5s;

/// Rounds until nothing is left, also of what the other controller holds.
Async<lifecycle::ApplyReport> converge(Process& process, lifecycle::Store& store,
                                       const inventory::Cluster& cluster, Clock& clock) {
  lifecycle::ApplyReport last;
  int done = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    CO_TRY(facts, co_await process.engine->observe({}));
    CO_TRY(policy, lifecycle::policyOf(store, {}));
    CO_TRY(plan, lifecycle::makePlan(cluster, facts, policy, process.phases));
    CO_TRY(open, store.openIntents());
    CO_TRY(report, co_await process.engine->apply(plan));
    last = std::move(report);
    done += last.done;
    last.done = done;
    if (plan.empty() && open.empty()) co_return last;
    co_await clock.sleep(kLookAgain);
  }
  co_return fail(ErrorCode::Timeout, fmt::format("there is always something left to do: {}",
                                                 fmt::join(last.problems, "; ")));
}

/// One process: a connection of its own to the database, a loop of its own. It may die at a write.
class Controller {
 public:
  Controller(SimulatedRack& rack, const std::string& url, const std::string& holder, int crash_at)
      : durable_(std::move(*lifecycle::openStore(url))), store_(*durable_, crash_at, false) {
    rack.state = holder;
    process_.emplace(rack, rack.cluster, store_);
    process_->engine->actFor({holder, kTestLease, "test", holder, "muster apply"});
    asio::co_spawn(*io_, converge(*process_, store_, rack.cluster, rack.wall),
                   [this](std::exception_ptr thrown, Result<lifecycle::ApplyReport> report) {
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
    return workersLeftSomething(process_->workers, *io_) || ran;
  }
  bool crashed() const { return store_.crashed; }
  bool ended() const { return ended_ || !io_; }
  int writes() const { return store_.writes; }
  const std::optional<Result<lifecycle::ApplyReport>>& answer() const { return answer_; }

 private:
  /// Nothing more runs: its coroutines go with its loop, its session with its connection.
  void kill() {
    waitUntilIdle(process_->workers);  // it answers to the loop
    io_.reset();
    process_.reset();
    durable_.reset();
  }

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
    rack_ = std::make_unique<SimulatedRack>(
        std::vector<std::string>{"gpu001", "gpu002", "gpu003", "gpu004"});
  }

  /// Both until they have ended or died, in virtual time. Time stands still while either has
  /// something to do.
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
      co_await rack.clock.sleep(1s);
    }
  }

  std::string url_;
  std::unique_ptr<SimulatedRack> rack_;
};

TEST_F(TwoControllers, shareTheWorkOfARack) {
  Controller first(*rack_, url_, "ctl1", CrashStore::kNever),
      second(*rack_, url_, "ctl2", CrashStore::kNever);
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
  Controller first(*rack_, url_, "ctl1", GetParam()),
      second(*rack_, url_, "ctl2", CrashStore::kNever);
  runBoth(first, second);
  EXPECT_TRUE(first.crashed()) << "it made only " << first.writes() << " writes";
  ASSERT_TRUE(second.answer());
  ASSERT_TRUE(*second.answer()) << second.answer()->error().str();
  EXPECT_TRUE((*second.answer())->ok())
      << fmt::format("{}", fmt::join((*second.answer())->problems, "\n"));
  expectTheEnd();
}

/// From its first claim to the joins at the end.
INSTANTIATE_TEST_SUITE_P(Writes, OneDies, ::testing::Values(8, 31, 55, 79, 103, 127));

/// A host that has never done anything here but join the store.
class OtherHost : public TwoControllers {
 protected:
  void SetUp() override {
    TwoControllers::SetUp();
    if (IsSkipped()) return;
    first_ = std::move(*lifecycle::openStore(url_));
    rack_->state = "ctl1";
    const auto arrived = live(*rack_, *first_);
    ASSERT_TRUE(arrived.ok) << arrived.problems;
    rack_->forgetCounts();
    rack_->state = "ctl2";
    second_ = std::move(*lifecycle::openStore(url_));
    used_.emplace(*second_, CrashStore::kNever, false);
    process_.emplace(*rack_, rack_->cluster, *used_);
  }
  lifecycle::Plan planOfSecond() {
    auto facts = runInVirtualTime(rack_->clock, whileMachinesRun(process_->engine->observe({})),
                                  nullptr, &process_->workers)
                     .value();
    return lifecycle::makePlan(rack_->cluster, facts.value(),
                               lifecycle::policyOf(*used_, {}).value(), process_->phases)
        .value();
  }
  /// The second host's keep until `ends`, or for ten minutes.
  void keepUntil(std::function<bool()> ends) {
    lifecycle::Phases light;
    for (auto* phase : process_->phases)
      if (phase->name() == "validate" || phase->name() == "pool") light.push_back(phase);
    monitor::Monitor monitor({rack_->cluster,
                              process_->phases,
                              light,
                              *used_,
                              rack_->wall,
                              [](const lifecycle::Event&) {},
                              {"ctl2", kTestLease, "test", "ctl2", "muster monitor"}});
    runInVirtualTime(rack_->clock, whileMachinesRun(monitorBeside(monitor, std::move(ends))),
                     nullptr, &process_->workers);
  }
  Task<bool> monitorBeside(monitor::Monitor& monitor, std::function<bool()> ends) {
    using namespace asio::experimental::awaitable_operators;
    auto watch = [](Clock& clock, std::function<bool()> ends) -> Task<void> {
      for (int second = 0; second < 600 && !ends(); ++second) {
        co_await clock.sleep(1s);
      }
    };
    auto work = monitor.run();
    auto life = watch(rack_->clock, std::move(ends));
    (void)co_await (std::move(work) || std::move(life));
    co_return true;
  }
  template <class T>
  Task<T> whileMachinesRun(Task<T> work) {
    const auto stop = std::make_shared<bool>(false);
    auto running = [](SimulatedRack& rack, std::shared_ptr<bool> stop) -> Task<void> {
      co_await machines(rack, *stop);
    };
    asio::co_spawn(co_await asio::this_coro::executor, running(*rack_, stop), asio::detached);
    auto answer = co_await std::move(work);
    *stop = true;
    co_return std::move(answer);
  }
  Machine& machine(const std::string& node) { return rack_->machines.at(NodeName(node)); }

  std::unique_ptr<lifecycle::Store> first_, second_;
  std::optional<CrashStore>
      used_;  ///< the second, without batches: their thread would outlive a monitor that is cut off
  std::optional<Process> process_;
};

TEST_F(OtherHost, findsWhatTheFirstHasCertified) {
  EXPECT_FALSE(std::filesystem::exists(rack_->folder / "ctl2" / "certificates"));
  const auto plan = planOfSecond();
  EXPECT_TRUE(plan.empty()) << plan.actions.size() << " actions";
  keepUntil([] { return false; });
  for (const auto& [node, machine] : rack_->machines) {
    EXPECT_FALSE(machine.drained) << node.str() << ": " << machine.drain_reason;
    EXPECT_TRUE(rack_->inPool(node.str()));
  }
}

TEST_F(OtherHost, drainsWhatIsRevokedBesideTheFirst) {
  const auto beside = validate::makeCertificateStore(
      rack_->cluster, *first_, rack_->wall, rack_->key, rack_->folder / "ctl1" / "certificates");
  ASSERT_TRUE(beside->revoke(NodeName("gpu002"), "ann@ctl1", "GPU 3 was replaced"));
  keepUntil([this] { return machine("gpu002").drained; });
  EXPECT_TRUE(machine("gpu002").drained);
  EXPECT_THAT(machine("gpu002").drain_reason, HasSubstr("revoked"));
  for (const auto* other : {"gpu001", "gpu003", "gpu004"})
    EXPECT_FALSE(machine(other).drained) << other;
  const auto plan = planOfSecond();
  EXPECT_FALSE(plan.empty());
  for (const auto& action : plan.actions)
    EXPECT_EQ(action.facet.subject.str(), "gpu002") << action.id;
}

}  // namespace
}  // namespace muster::test
