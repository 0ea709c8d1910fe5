// kill -9 at every write of the journal, with the real phases: firmware, provision, validate and pool on machines in memory.
// Whatever dies: every node reaches the end, no component is flashed twice, no disk written twice, no job is killed, no power is
// cut under a write, nothing stays locked.
#include "tests/crash/simulated_rack.h"
#include "tests/fakes/memory_store.h"

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

void expectTheEnd(SimulatedRack& rack, lifecycle::Store& store, const LifeEnd& end, Expected expected) {
  ASSERT_FALSE(end.crashed);
  EXPECT_TRUE(end.ok) << end.problems;
  EXPECT_THAT(rack.violations, IsEmpty());
  for (const auto& [node, machine] : rack.machines) {
    SCOPED_TRACE(node.str());
    EXPECT_EQ(rack.uploads(node.str(), "BMC"), expected.bmc_uploads);
    EXPECT_EQ(rack.uploads(node.str(), "BIOS"), expected.bios_uploads);
    EXPECT_EQ(machine.image_writes, expected.image_writes);
    auto installs = machine.driver_installs.find("rdma");
    EXPECT_EQ(installs == machine.driver_installs.end() ? 0 : installs->second, expected.driver_installs);
    EXPECT_TRUE(rack.inPool(node.str()));
  }
  EXPECT_THAT(*store.openIntents(), IsEmpty());
  EXPECT_THAT(*store.claims(), IsEmpty());
  EXPECT_THAT(*store.wipesAllowed(), IsEmpty());
}

/// Dies once at every write of `work`, each time in a world made anew by `prepare`.
template <class Prepare>
void dieAtEveryWrite(Prepare prepare, Expected expected, int at_least) {
  int writes = 0;
  {
    auto [rack, store] = prepare();
    const auto end = live(*rack, *store);
    writes = end.writes;
    expectTheEnd(*rack, *store, end, expected);
  }
  if (::testing::Test::HasFailure()) return;
  ASSERT_GE(writes, at_least);
  for (int at = 0; at < writes; ++at)
    for (const bool lost : {true, false}) {
      SCOPED_TRACE(fmt::format("write {} of {} {}", at, writes, lost ? "lost" : "kept"));
      auto [rack, store] = prepare();
      ASSERT_TRUE(live(*rack, *store, {at, lost}).crashed);
      expectTheEnd(*rack, *store, live(*rack, *store), expected);
      if (::testing::Test::HasFailure()) return;
    }
}

using World = std::pair<std::unique_ptr<SimulatedRack>, std::unique_ptr<MemoryStore>>;

World fresh(std::vector<std::string> names) { return {std::make_unique<SimulatedRack>(std::move(names)), std::make_unique<MemoryStore>()}; }

/// In the pool, with a job that runs, and a new declaration.
World busy(const std::string& bios, const std::string& driver) {
  auto world = fresh({"gpu001"});
  EXPECT_TRUE(live(*world.first, *world.second).ok);
  world.first->forgetCounts();
  world.first->declare(bios, driver);
  world.first->startJob("gpu001", 300s);
  return world;
}

TEST(WholeRoadCrash, atEveryWriteFromPowerOffToThePool) {
  dieAtEveryWrite([] { return fresh({"gpu001"}); }, {}, 60);
}

TEST(WholeRoadCrash, atEveryWriteOfAFirmwareRolloutOnABusyNode) {
  dieAtEveryWrite([] { return busy("1.5.0", "44.0"); }, {0, 1, 0, 0}, 25);
}

TEST(WholeRoadCrash, atEveryWriteOfADriverRolloutOnABusyNode) {
  dieAtEveryWrite([] { return busy("1.4.2", "45.0"); }, {0, 0, 0, 1}, 20);
}

TEST(WholeRoadCrash, manyDeathsInARow) {
  for (unsigned seed = 0; seed < 30; ++seed) {
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
