// SPDX-License-Identifier: Apache-2.0
// kill -9 at every boundary of the journal. The world lives on; muster starts again on the same
// store. Each outside effect must have been begun exactly once, and the work must end.
#include "inventory/model/cluster.h"
#include "lifecycle/executor/engine.h"
#include "tests/fakes/memory_store.h"
#include "tests/lifecycle/crash_store.h"
#include "tests/lifecycle/failing_disk.h"
#include "tests/lifecycle/observe_plan_apply.h"
#include "tests/lifecycle/rack.h"
#include "tests/lifecycle/virtual_time.h"
#include "tests/run_async.h"
#include "tests/sweep.h"

#include <gtest/gtest.h>

#include <random>

namespace muster::lifecycle {
namespace {

using test::CrashStore;
using test::Rack;

constexpr int kMaxEngineLives = 400;

struct Life {
  bool crashed = false;
  int writes = 0, batches = 0;
  std::size_t largest_batch = 0;
  bool ok = false;
  std::string problems;
};

/// One life of the process: observe, plan, apply, and perhaps death at the k-th write.
Life live(Rack& rack, Store& durable, int crash_at, bool lost, bool grouping = false) {
  CrashStore store(durable, crash_at, lost, grouping);
  FakeClock clock;
  Engine engine(rack.cluster, rack.phases(), store, clock, nullptr);
  engine.useOneThread();
  Life life;
  auto report =
      test::runInVirtualTime(clock, observePlanApply(engine, store, rack), &store.crashed);
  life.crashed = store.crashed;
  life.writes = store.writes;
  life.batches = store.batches;
  life.largest_batch = store.largest_batch;
  if (life.crashed || !report) return life;
  life.ok = *report && (*report)->ok();
  life.problems = !*report ? report->error().str() : "";
  if (*report)
    for (const auto& problem : (*report)->problems) life.problems += problem + "\n";
  return life;
}

void expectAllMet(Rack& rack, Store& store, int effects_each) {
  for (const auto& node : rack.cluster.nodes) {
    EXPECT_EQ(rack.world.value(node.name.str() + "/pool"), "in");
    EXPECT_EQ(rack.world.value(node.name.str() + "/image"), rack.image);
  }
  for (const auto& [facet, count] : rack.world.effect_counts)
    EXPECT_EQ(count, effects_each) << facet.str();
  EXPECT_TRUE(store.openIntents()->empty());
  EXPECT_TRUE(store.findings(nullptr)->empty());
  EXPECT_TRUE(store.wipeGrants()->empty());
  auto plan = makePlan(rack.cluster, *store.facts(), {}, rack.phases());
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->empty()) << plan->toJson();
}

TEST(Crash, atEveryWriteOfAFirstInstallationEachEffectHappensOnce) {
  const std::vector<std::string> names{"gpu001", "gpu002"};
  int writes = 0;
  {
    Rack rack(names);
    test::MemoryStore store;
    auto life = live(rack, store, CrashStore::kNever, false);
    ASSERT_TRUE(life.ok) << life.problems;
    expectAllMet(rack, store, 1);
    writes = life.writes;
  }
  ASSERT_GT(writes, 100);
  const int apart = test::pointsApart(1);
  for (int at = 0; at < writes; at += apart)
    for (const bool lost : {true, false}) {
      if (!test::suffers(at, apart, lost ? 0 : 1, 2)) continue;
      SCOPED_TRACE("write " + std::to_string(at) + (lost ? " lost" : " kept"));
      Rack rack(names);
      test::MemoryStore store;
      ASSERT_TRUE(live(rack, store, at, lost).crashed);
      auto life = live(rack, store, CrashStore::kNever, false);
      ASSERT_TRUE(life.ok) << life.problems;
      expectAllMet(rack, store, 1);
      if (HasFailure()) return;
    }
}

/// Many nodes' writes in one commit: a death before or after any of the commits.
TEST(Crash, atEveryCommitOfManyNodesWritesEachEffectHappensOnce) {
  const std::vector<std::string> names{"gpu001", "gpu002", "gpu003", "gpu004"};
  int writes = 0;
  {
    Rack rack(names);
    test::MemoryStore store;
    auto life = live(rack, store, CrashStore::kNever, false, true);
    ASSERT_TRUE(life.ok) << life.problems;
    expectAllMet(rack, store, 1);
    EXPECT_GT(life.batches, 50);
    EXPECT_GE(life.largest_batch, names.size()) << "nothing was written together";
    writes = life.writes;
  }
  const int apart = test::pointsApart(1);
  for (int at = 0; at < writes; at += apart)
    for (const bool lost : {true, false}) {
      if (!test::suffers(at, apart, lost ? 0 : 1, 2)) continue;
      SCOPED_TRACE("write " + std::to_string(at) + (lost ? " lost" : " kept"));
      Rack rack(names);
      test::MemoryStore store;
      ASSERT_TRUE(live(rack, store, at, lost, true).crashed);
      auto life = live(rack, store, CrashStore::kNever, false, true);
      ASSERT_TRUE(life.ok) << life.problems;
      expectAllMet(rack, store, 1);
      if (HasFailure()) return;
    }
}

/// A node with a system on its disk gets another image: the permission must be worth exactly one
/// wipe, whatever dies.
TEST(Crash, atEveryWriteOfAReinstallationTheDiskIsWrittenOnce) {
  auto installed = [](Rack& rack, Store& store) {
    ASSERT_TRUE(live(rack, store, CrashStore::kNever, false).ok);
    rack.world.effect_counts.clear();
    rack.image = "noble@2";
    rack.cluster.digest = "inventory-2";
    ASSERT_TRUE(store.grantWipe(NodeName("gpu001"), "new image", WallTime{}));
  };
  auto check = [](Rack& rack, Store& store) {
    EXPECT_EQ(rack.world.effects("gpu001/image"), 1);
    for (const auto& [facet, count] : rack.world.effect_counts)
      EXPECT_EQ(count, facet.facet.str() == "pool" ? 2 : 1)
          << facet.str();  // out of the pool and in again
    rack.world.effect_counts.clear();
    expectAllMet(rack, store, 0);
  };
  int writes = 0;
  {
    Rack rack({"gpu001"});
    test::MemoryStore store;
    installed(rack, store);
    auto life = live(rack, store, CrashStore::kNever, false);
    ASSERT_TRUE(life.ok) << life.problems;
    check(rack, store);
    writes = life.writes;
  }
  const int apart = test::pointsApart(1);
  for (int at = 0; at < writes; at += apart)
    for (const bool lost : {true, false}) {
      if (!test::suffers(at, apart, lost ? 0 : 1, 2)) continue;
      SCOPED_TRACE("write " + std::to_string(at) + (lost ? " lost" : " kept"));
      Rack rack({"gpu001"});
      test::MemoryStore store;
      installed(rack, store);
      ASSERT_TRUE(live(rack, store, at, lost).crashed);
      auto life = live(rack, store, CrashStore::kNever, false);
      ASSERT_TRUE(life.ok) << life.problems;
      check(rack, store);
      if (HasFailure()) return;
    }
}

TEST(Crash, manyDeathsInARowStillEndWithAllMet) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Rack rack({"gpu001", "gpu002", "gpu003"});
    test::MemoryStore store;
    Life life;
    int lives = 0;
    do {
      ASSERT_LT(++lives, kMaxEngineLives) << "no progress";
      life = live(rack, store, static_cast<int>(random() % 60) + 12, random() % 2 == 0);
    } while (life.crashed);
    ASSERT_TRUE(life.ok) << life.problems;
    expectAllMet(rack, store, 1);
    if (HasFailure()) return;
  }
}

TEST(Crash, theSameHoldsOnSqlite) {
  test::TempFolder folder;
  Rack rack({"gpu001", "gpu002"});
  int lives = 0;
  for (Life life{.crashed = true}; life.crashed;) {
    ASSERT_LT(++lives, kMaxEngineLives);
    auto store = openSqliteStore(folder.path() / "muster.db");
    ASSERT_TRUE(store) << store.error().str();
    life = live(rack, **store, 37, lives % 2 == 0, lives % 3 == 0);
    if (!life.crashed) {
      ASSERT_TRUE(life.ok) << life.problems;
      expectAllMet(rack, **store, 1);
    }
  }
  EXPECT_GT(lives, 3);
}

/// The disk under SQLite turns read-only or fails at each of its writes, and is mended while the
/// store stays open.
TEST(Crash, aDiskThatCannotBeWrittenForAWhileLosesNothing) {
  const auto runAll = [](int at, int code) {
    test::FailingDisk disk;
    test::TempFolder folder;
    Rack rack({"gpu001"});
    auto store = openSqliteStore(folder.path() / "muster.db");
    EXPECT_TRUE(store) << store.error().str();
    if (!store) return 0;
    disk.fallSickAt(at, code);
    const auto first = live(rack, **store, CrashStore::kNever, false);
    const int writes = disk.writes;
    disk.mend();
    if (disk.refused > 0) {
      const bool says_why = first.problems.find("muster.db") != std::string::npos;
      EXPECT_TRUE(says_why || (first.ok && first.problems.empty()))
          << "it does not say why: " << first.problems;  // only its last words were refused
      const auto second = live(rack, **store, CrashStore::kNever, false);
      EXPECT_TRUE(second.ok) << second.problems;
    }
    expectAllMet(rack, **store, 1);
    return writes;
  };
  constexpr int kWell = 1'000'000;
  const int writes = runAll(kWell, SQLITE_OK);
  ASSERT_GT(writes, 100);
  int kind = 0;
  for (int at = 0; at < writes; at += 9) {
    const int code = std::array{SQLITE_READONLY, SQLITE_IOERR_WRITE,
                                SQLITE_IOERR_FSYNC}[static_cast<std::size_t>(kind++ % 3)];
    SCOPED_TRACE(fmt::format("write {} of {} answers {}", at, writes, code));
    runAll(at, code);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace muster::lifecycle
