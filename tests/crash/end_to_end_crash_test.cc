// SPDX-License-Identifier: Apache-2.0
// kill -9 at every write of the journal, with the real phases: firmware, provision, validate and
// pool on machines in memory. Whatever dies: every node reaches the end, no component is flashed
// twice, no disk written twice, no job is killed, no power is cut under a write, nothing stays
// locked.
#include "lifecycle/rollout/regression.h"
#include "tests/crash/simulated_rack.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/fakes/memory_store.h"
#include "tests/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

constexpr int kMaxLives = 200;

struct Expected {
  int bmc_uploads = 1, bios_uploads = 1, image_writes = 1, driver_installs = 1;
};

void expectTheEnd(SimulatedRack& rack, lifecycle::Store& store, const LifeEnd& end,
                  Expected expected) {
  ASSERT_FALSE(end.crashed);
  EXPECT_TRUE(end.ok) << end.problems;
  EXPECT_THAT(rack.violations, IsEmpty());
  for (const auto& [node, machine] : rack.machines) {
    SCOPED_TRACE(node.str());
    EXPECT_EQ(rack.uploads(node.str(), "BMC"), expected.bmc_uploads);
    EXPECT_EQ(rack.uploads(node.str(), "BIOS"), expected.bios_uploads);
    EXPECT_EQ(machine.image_writes, expected.image_writes);
    auto installs = machine.driver_installs.find("rdma");
    EXPECT_EQ(installs == machine.driver_installs.end() ? 0 : installs->second,
              expected.driver_installs);
    EXPECT_TRUE(rack.inPool(node.str()));
  }
  EXPECT_THAT(*store.openIntents(), IsEmpty());
  EXPECT_THAT(*store.claims(), IsEmpty());
  EXPECT_THAT(*store.wipeGrants(), IsEmpty());
}

/// Lets the first life go wrong at every write (CI: of a sample) in each of `ways`, in a world made
/// anew by `prepare`; the second must reach the end.
template <class Prepare>
void sufferAtEveryWrite(Prepare prepare, Expected expected, int at_least,
                        std::vector<std::function<Death(int)>> ways) {
  int writes = 0;
  {
    auto [rack, store] = prepare();
    const auto end = live(*rack, *store);
    writes = end.writes;
    expectTheEnd(*rack, *store, end, expected);
  }
  if (::testing::Test::HasFailure()) return;
  ASSERT_GE(writes, at_least);
  const int apart = pointsApart(1);
  for (int at = 0; at < writes; at += apart)
    for (std::size_t direction = 0; direction < ways.size(); ++direction) {
      if (!suffers(at, apart, static_cast<int>(direction), static_cast<int>(ways.size()))) continue;
      SCOPED_TRACE(fmt::format("write {} of {}, way {}", at, writes, direction));
      auto [rack, store] = prepare();
      const auto death = ways[direction](at);
      EXPECT_EQ(live(*rack, *store, death).crashed, death.crash_at != CrashStore::kNever);
      expectTheEnd(*rack, *store, live(*rack, *store), expected);
      if (::testing::Test::HasFailure()) return;
    }
}

template <class Prepare>
void dieAtEveryWrite(Prepare prepare, Expected expected, int at_least) {
  sufferAtEveryWrite(prepare, expected, at_least,
                     {[](int at) { return Death{.crash_at = at, .lost = true}; },
                      [](int at) { return Death{.crash_at = at, .lost = false}; }});
}

using World = std::pair<std::unique_ptr<SimulatedRack>, std::unique_ptr<MemoryStore>>;

World fresh(std::vector<std::string> names) {
  return {std::make_unique<SimulatedRack>(std::move(names)), std::make_unique<MemoryStore>()};
}

/// In the pool, with a job that runs, and a new declaration.
World busy(const std::string& bios, const std::string& driver) {
  auto world = fresh({"gpu001"});
  EXPECT_TRUE(live(*world.first, *world.second).ok);
  world.first->forgetCounts();
  world.first->declare(bios, driver);
  world.first->startJob("gpu001", 300s);
  return world;
}

TEST(EndToEndCrash, atEveryWriteFromPowerOffToThePool) {
  dieAtEveryWrite([] { return fresh({"gpu001"}); }, {}, 60);
}

TEST(EndToEndCrash, atEveryWriteOfAFirmwareRolloutOnABusyNode) {
  dieAtEveryWrite([] { return busy("1.5.0", "44.0"); }, {0, 1, 0, 0}, 25);
}

TEST(EndToEndCrash, atEveryWriteOfADriverRolloutOnABusyNode) {
  dieAtEveryWrite([] { return busy("1.4.2", "45.0"); }, {0, 0, 0, 1}, 20);
}

/// The permission is worth one wipe, whatever dies; and no job is killed for it.
TEST(EndToEndCrash, atEveryWriteOfAReinstallationOfABusyNode) {
  const auto reinstall = [] {
    auto world = busy("1.4.2", "44.0");
    world.first->images->add("bookworm", "d2d2");
    EXPECT_TRUE(world.second->grantWipe(NodeName("gpu001"), "new image", WallTime{}));
    return world;
  };
  dieAtEveryWrite(reinstall, {0, 0, 1, 1}, 25);
}

/// The disk is full from some write on: what cannot be journaled is not done, and what was begun
/// goes on when there is room again.
TEST(EndToEndCrash, storeThatFillsUpLosesNothing) {
  const auto full = [](int at) { return Death{.full_from = at}; };
  sufferAtEveryWrite([] { return fresh({"gpu001"}); }, {}, 60, {full});
  sufferAtEveryWrite([] { return busy("1.5.0", "45.0"); }, {0, 1, 0, 1}, 25, {full});
}

/// Somebody sets the wall clock in the middle: deadlines count real time, so nothing fails and
/// nothing is done again.
TEST(EndToEndCrash, wallClockThatJumpsChangesNothing) {
  for (const std::chrono::hours jump : {std::chrono::hours(3), std::chrono::hours(-3)})
    for (int at = 0; at < 60; at += 5) {
      SCOPED_TRACE(fmt::format("write {}, {} h", at, jump.count()));
      auto [rack, store] = fresh({"gpu001"});
      const auto end = live(*rack, *store, {.clock_jumps_at = at, .jump = jump});
      expectTheEnd(*rack, *store, end, {});
      if (HasFailure()) return;
    }
}

/// What validate keeps of a gate is what rollouts compare: the two folders know each other only by
/// this shape.
TEST(EndToEnd, gatesKeepTheNumbersThatRolloutsCompare) {
  auto [rack, store] = fresh({"gpu001"});
  ASSERT_TRUE(live(*rack, *store).ok);
  const auto measures =
      lifecycle::measuresOf(*store->factsOf(lifecycle::Subject(NodeName("gpu001"))));
  ASSERT_TRUE(measures.contains("gemm_gflops"));
  EXPECT_EQ(measures.at("gemm_gflops"), 50);
}

TEST(EndToEndCrash, manyDeathsInARow) {
  for (unsigned seed = 0; seed < (takesEveryPoint() ? 300 : 10); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    auto [rack, store] = fresh({"gpu001", "gpu002", "gpu003"});
    LifeEnd end{.crashed = true};
    for (int lives = 0; end.crashed; ++lives) {
      ASSERT_LT(lives, kMaxLives) << "no progress";
      end = live(*rack, *store, {static_cast<int>(random() % 60) + 15, random() % 2 == 0});
    }
    expectTheEnd(*rack, *store, end, {});
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace muster::test
