// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_reservations.h"

#include "inventory/model/approvals.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "lifecycle/runs/run.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/fakes/memory_runs.h"
#include "tests/fakes/memory_store.h"
#include "tests/virtual_loop.h"

#include <fmt/ranges.h>

#include <gmock/gmock.h>

namespace muster::app {
namespace {

using namespace std::chrono_literals;
using lifecycle::RunState;
using lifecycle::Subject;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Names = std::set<std::string>;

WallTime at(std::string_view text) { return *parseWallTime(text); }

/// a1 and a2 in pool alpha, b1 in pool beta, k1 in a pool of Kubernetes, n1 in a pool that asks for
/// no reservations.
class RunReservationsTest : public ::testing::Test {
 protected:
  RunReservationsTest() {
    for (const std::string pool : {"alpha", "beta", "none"}) {
      cluster_.pools[pool].name = pool;
      cluster_.pools[pool].slurm = inventory::SlurmPool{"gpu", {}, 24};
      cluster_.pools[pool].maintenance = {{.days = {}, .from_minute = 22 * 60, .minutes = 240}};
    }
    cluster_.pools["none"].slurm->reserve_hours.reset();
    cluster_.pools["beta"].maintenance[0].minutes = 60;
    cluster_.pools["kube"].kubernetes.emplace();
    for (const auto& [name, pool] : std::map<std::string, std::string>{
             {"a1", "alpha"}, {"a2", "alpha"}, {"b1", "beta"}, {"k1", "kube"}, {"n1", "none"}}) {
      cluster_.profiles[pool].name = cluster_.profiles[pool].pool = pool;
      inventory::Node node;
      node.name = NodeName(name);
      node.profile = pool;
      cluster_.nodes.push_back(node);
      poolIs(name, "in");
    }
    run_.id = "r-1f2e3d4c5b";
    run_.state = RunState::Waiting;
    run_.waits_until = at("2026-11-26T22:00:00Z");
    run_.impact.emplace();
    run_.impact->at_least = 90min;
    for (const char* name : {"a1", "a2", "b1", "k1", "n1"})
      run_.impact->taken_out.emplace_back(name);
  }
  void poolIs(const std::string& node, const std::string& value) {
    lifecycle::Fact fact;
    fact.subject = Subject(NodeName(node));
    fact.facet = FacetName("pool");
    fact.value = value;
    facts_.put(fact);
  }
  std::vector<pool::Reservation> wanted() {
    auto out = wantedReservations(cluster_, {run_}, facts_, now_);
    EXPECT_TRUE(out) << out.error().str();
    return out.value_or(std::vector<pool::Reservation>());
  }

  inventory::Cluster cluster_;
  lifecycle::FactSet facts_;
  lifecycle::Run run_;
  WallTime now_ = at("2026-11-26T12:00:00Z");
};

TEST_F(RunReservationsTest, aRunThatWaitsReservesByPool) {
  const auto all = wanted();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].pool, "alpha");
  EXPECT_EQ(all[0].nodes, (Names{"a1", "a2"}));
  EXPECT_EQ(all[0].from, at("2026-11-26T22:00:00Z"));
  EXPECT_EQ(all[0].until, at("2026-11-27T02:00:00Z")) << "until the window closes";
  EXPECT_TRUE(all[0].is_ahead);
  EXPECT_EQ(all[1].nodes, Names{"b1"});
  EXPECT_EQ(all[1].until, at("2026-11-26T23:30:00Z")) << "the run lasts longer than the window";
}

TEST_F(RunReservationsTest, notSoonerThanTheInventorySays) {
  now_ = at("2026-11-25T21:59:00Z");
  EXPECT_THAT(wanted(), IsEmpty());
  now_ = at("2026-11-25T22:00:00Z");
  EXPECT_THAT(wanted(), SizeIs(2));
}

TEST_F(RunReservationsTest, ofARunThatHasBegunThoseThatAreStillInTheirPool) {
  run_.state = RunState::Running;
  now_ = at("2026-11-26T22:10:00Z");
  poolIs("a1", "drained");
  poolIs("b1", "out");
  const auto all = wanted();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].nodes, Names{"a2"});
  EXPECT_FALSE(all[0].is_ahead);
}

TEST_F(RunReservationsTest, whatIsOverOrUnreadableReservesNothing) {
  for (const auto state : {RunState::Done, RunState::Cancelled, RunState::Failed,
                           RunState::WorkLeft, RunState::Outdated}) {
    run_.state = state;
    EXPECT_THAT(wanted(), IsEmpty());
  }
  run_.state = RunState::Waiting;
  run_.unreadable = "of a newer muster";
  EXPECT_THAT(wanted(), IsEmpty());
}

TEST_F(RunReservationsTest, aNodeThatIsNoLongerInTheInventoryIsLeftOut) {
  run_.impact->taken_out = {NodeName("a1"), NodeName("gone")};
  ASSERT_THAT(wanted(), SizeIs(1));
  EXPECT_EQ(wanted()[0].nodes, Names{"a1"});
}

/// The loop over rows, facts and a scontrol that is written down. What slurmctld does with the
/// orders is tested with the real one (tests/pool/reservations_system_test.cc).
class KeptReservations : public RunReservationsTest {
 protected:
  KeptReservations() {
    cluster_.name = "hall-2";
    run_.waits_until = loop_.clock.now() + 10h;
    cluster_.pools["alpha"].maintenance.clear();
    run_.asked_by = {"anna", "local", "ctl1"};
    run_.impact->taken_out = {NodeName("a1")};
    EXPECT_TRUE(runs_.add(run_, ""));
    processes_.answer = [this](const io::Command& command) -> Result<io::ProcessExit> {
      if (away_) return io::ProcessExit{1, "", "Unable to contact slurm controller"};
      if (command.args[0] != "show") return io::ProcessExit{};
      return io::ProcessExit{0, command.args[1] == "node" ? "NodeName=a1 Arch=x\n" : shown_, ""};
    };
    loop_.spawn(keepReservations({cluster_, runs_, store_, loop_.clock, reservations_}));
  }
  void wait(std::chrono::seconds time) {
    const auto end = loop_.clock.steady() + time;
    loop_.run([](Clock& clock, auto until) -> Task<bool> {
      while (clock.steady() < until) co_await clock.sleep(std::chrono::seconds(1));
      co_return true;
    }(loop_.clock, end));
  }
  /// All but looks.
  std::vector<std::string> orders() {
    std::vector<std::string> out;
    for (const auto& command : processes_.commands)
      if (command.args[0] != "show") out.push_back(fmt::format("{}", fmt::join(command.args, " ")));
    processes_.commands.clear();
    return out;
  }
  void runIs(RunState state) {
    auto row = *runs_.read(run_.id);
    row->state = state;
    ASSERT_TRUE(runs_.exchange(*row, ""));
  }

  /// As slurmctld shows what was ordered.
  std::string made() const {
    const auto time = [](WallTime at) { return muster::toString(at).substr(0, 19); };
    return fmt::format(
        "ReservationName=muster-hall-2-r-1f2e3d4c5b-alpha StartTime={} EndTime={} Nodes=a1 "
        "State=INACTIVE\n",
        time(run_.waits_until), time(run_.waits_until + 90min));
  }

  test::VirtualLoop loop_;
  test::MemoryStore store_;
  test::MemoryRuns runs_{store_};
  test::FakeProcessRunner processes_;
  pool::Reservations reservations_{cluster_, processes_, loop_.clock, {.slurm_conf = "/s.conf"}};
  bool away_ = false;
  std::string shown_ = "No reservations in the system\n";
};

TEST_F(KeptReservations, followTheRow) {
  wait(5s);
  const auto first = orders();
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_THAT(first[0], ::testing::HasSubstr("ReservationName=muster-hall-2-r-1f2e3d4c5b-alpha"));
  shown_ = made();
  wait(60s);
  EXPECT_THAT(orders(), IsEmpty());
  runIs(RunState::Cancelled);
  wait(15s);
  const auto last = orders();
  ASSERT_THAT(last, SizeIs(::testing::Ge(1)));
  EXPECT_THAT(last[0],
              ::testing::HasSubstr("delete ReservationName=muster-hall-2-r-1f2e3d4c5b-alpha"));
}

TEST_F(KeptReservations, aRefusalOfAMinuteIsAFindingUntilItIsOver) {
  shown_ = made();
  away_ = true;
  wait(30s);
  EXPECT_THAT(*store_.findings(nullptr), IsEmpty()) << "slurmctld is restarted now and then";
  wait(60s);
  ASSERT_THAT(*store_.findings(nullptr), SizeIs(1));
  EXPECT_EQ(store_.findings(nullptr)->front().facet.facet.str(), "reservations");
  EXPECT_THAT(store_.findings(nullptr)->front().text, ::testing::HasSubstr("Unable to contact"));
  away_ = false;
  wait(15s);
  EXPECT_THAT(*store_.findings(nullptr), IsEmpty());
}

}  // namespace
}  // namespace muster::app
