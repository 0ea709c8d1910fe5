// SPDX-License-Identifier: Apache-2.0
// muster rollout, as the program: bad input is told before anything is started, and a rollout that
// does not exist has no status.
#include "cli/exit_code.h"
#include "tests/cli/muster_folder.h"

#include "app/site/state_lock.h"
#include "lifecycle/rollout/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RolloutCliTest : public ::testing::Test {
 protected:
  std::string refused(std::vector<std::string> words) {
    words.insert(words.begin(), "rollout");
    const auto ended = folder_.muster(words);
    EXPECT_EQ(ended.code, kFailed) << ended.out;
    EXPECT_FALSE(folder_.wasLocked()) << "nothing was started";
    return ended.err;
  }
  MusterFolder folder_;
};

TEST_F(RolloutCliTest, withoutOneThereIsNothingToShowOrStop) {
  for (const auto* word : {"status", "pause", "abort", "rollback"})
    EXPECT_THAT(refused({word}), HasSubstr("there is no rollout"));
  ASSERT_EQ(folder_.muster({"wipe", "gpu002", "--reason", "returned from repair"}).code, 0);
  EXPECT_THAT(refused({"status", "--json"}),
              HasSubstr("no rollout was ever started; begin one with: muster rollout start"));
}

/// Its runner died; keep has the state folder's lock all the time, and runs no rollout.
TEST_F(RolloutCliTest, anAbortEndsARolloutThatNobodyRunsThoughKeepDoes) {
  ASSERT_EQ(folder_.muster({"wipe", "gpu002", "--reason", "returned from repair"}).code,
            0);  // makes the store
  auto store = lifecycle::openStore("sqlite:" + (folder_ / "state/muster.db").string());
  ASSERT_TRUE(store) << store.error().str();
  lifecycle::Rollout rollout;
  rollout.id = "r7";
  ASSERT_TRUE(
      lifecycle::RolloutRecord::draft(**store, rollout, {}, {{NodeName("gpu001"), {}}}).begin());
  ASSERT_TRUE((*store)->putValue("monitor.heartbeat", R"({"at":"2026-11-20T15:07:00Z"})"));
  EXPECT_THAT(folder_.muster({"status"}).out, HasSubstr("monitor: waits while rollout r7 runs"));
  {
    const auto command = app::acquireLock(folder_ / "state");
    ASSERT_TRUE(command);
    EXPECT_THAT(folder_.muster({"rollout", "pause"}).out,
                HasSubstr("rollout r7 was ordered to pause"));
  }
  EXPECT_THAT(folder_.muster({"rollout", "status", "--id", "r7"}).out, HasSubstr("r7"));
  for (const auto* word : {"status", "rollback"})
    EXPECT_THAT(folder_.muster({"rollout", word, "--id", "r9"}).err,
                HasSubstr("there is no rollout r9; those that lie over the inventory: r7"));
  const auto instance = app::acquireMonitorInstance(folder_ / "state");
  ASSERT_TRUE(instance);
  const auto keeps = app::acquireMonitorLock(folder_ / "state", *instance);
  ASSERT_TRUE(keeps);
  EXPECT_THAT(folder_.muster({"rollout", "pause"}).out, HasSubstr("rollout r7 is paused"));
  EXPECT_THAT(folder_.muster({"rollout", "abort"}).out, HasSubstr("rollout r7 is aborted"));
  EXPECT_THAT(folder_.muster({"status"}).out, testing::Not(HasSubstr("monitor: waits")));
  EXPECT_EQ(lifecycle::RolloutRecord::newest(**store)->rollout().state,
            lifecycle::RolloutState::Aborted);
}

TEST_F(RolloutCliTest, saysWhatIsMissing) {
  EXPECT_EQ(folder_.muster({"rollout"}).code, kUsage);
  EXPECT_EQ(folder_.muster({"rollout", "start", "--driver", "x"}).code, kUsage)
      << "without --nodes";
  EXPECT_EQ(folder_
                .muster({"rollout", "start", "--driver", "x", "--nodes", "gpu001", "--on-failure",
                         "hope"})
                .code,
            kUsage);
  EXPECT_THAT(refused({"start", "--nodes", "gpu001"}), HasSubstr("--change FILE or --driver NAME"));
  EXPECT_THAT(refused({"start", "--driver", "nvidia-575", "--nodes", "gpu003"}),
              HasSubstr("node gpu003 is not in the inventory"));
  EXPECT_THAT(refused({"start", "--driver", "nvidia-575", "--nodes", "gpu[001"}),
              HasSubstr("column"));
  EXPECT_THAT(refused({"start", "--driver", "nvidia-575", "--nodes", "gpu001"}),
              HasSubstr("the inventory has no driver \"nvidia-575\""));
  EXPECT_THAT(refused({"start", "--change", "nowhere.yaml", "--nodes", "gpu001"}),
              HasSubstr("nowhere.yaml"));
}

TEST_F(RolloutCliTest, aBadChangeFileIsToldWithAllItsMistakes) {
  folder_.write("bad.yaml",
                "profiles:\n  gpu-nod: {image: bookworm}\n  gpu-node: {drivers: [x]}\nrollout: "
                "{waves: [0]}\n");
  EXPECT_THAT(
      refused({"start", "--change", (folder_ / "bad.yaml").string(), "--nodes", "gpu[001-002]"}),
      AllOf(HasSubstr("bad.yaml:2:3: error: the inventory has no profile \"gpu-nod\" (did you mean "
                      "\"gpu-node\"?)"),
            HasSubstr("bad.yaml:3:24: error: \"x\" is declared under drivers neither here nor in "
                      "the inventory"),
            HasSubstr("bad.yaml:4:19: error: 0 is out of range"), HasSubstr("nothing was done")));
}

}  // namespace
}  // namespace muster::test
