// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/tasks.h"
#include "base/io/crypto.h"
#include "tests/agent/tasks/tasks_fixture.h"

#include <boost/asio/co_spawn.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace muster::agent {
namespace {

using namespace test;
using ::testing::HasSubstr;

class PoolTaskTest : public TasksTest {
 protected:
  void SetUp() override {
    programs.on("systemctl show -p ActiveState --value",
                [this](const io::Command& command) -> Result<io::ProcessExit> {
                  bool up = active[command.args.back()];
                  return io::ProcessExit{0, up ? "active\n" : "inactive\n", ""};
                });
    programs.on("systemctl restart", [this](const io::Command& command) -> Result<io::ProcessExit> {
      active[command.args.back()] = starts;
      return io::ProcessExit{};
    });
    programs.on("systemctl stop", [this](const io::Command& command) -> Result<io::ProcessExit> {
      active[command.args.back()] = false;
      return io::ProcessExit{};
    });
    programs.on("systemctl enable", "");
    programs.on("systemctl disable", "");
    programs.on("chown munge:munge", "");
    programs.on("slurmd -V", "slurm-wlm 22.05.8\n");
    programs.on("journalctl", "fatal: no such node\n");
  }
  std::map<std::string, bool> active;
  bool starts = true;
  std::string key = std::string(64, 'k');
  nlohmann::json params{
      {"kind", "slurm"}, {"conf", "ClusterName=demo\n"}, {"munge_key", io::toBase64(key)}};
};

TEST_F(PoolTaskTest, joinsAndLeaves) {
  auto joined = run(joinPool(tools, params, task()));
  ASSERT_TRUE(joined) << joined.error().str();
  EXPECT_EQ((*joined)["slurmd"], "slurm-wlm 22.05.8");
  EXPECT_EQ(read("etc/slurm/slurm.conf"), "ClusterName=demo\n");
  EXPECT_EQ(read("etc/munge/munge.key"), key);
  struct stat info{};
  ASSERT_EQ(::stat((root / "etc/munge/munge.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0400u);
  EXPECT_TRUE(active["munge"] && active["slurmd"]);

  programs.clear();
  ASSERT_TRUE(run(joinPool(tools, params, task())));
  EXPECT_EQ(programs.count("systemctl restart"), 0u) << "nothing is new, so nothing is restarted";

  params["conf"] = "ClusterName=other\n";
  ASSERT_TRUE(run(joinPool(tools, params, task())));
  EXPECT_EQ(programs.count("systemctl restart slurmd"), 1u);
  EXPECT_EQ(programs.count("systemctl restart munge"), 0u);

  ASSERT_TRUE(run(leavePool(tools, task())));
  EXPECT_FALSE(active["slurmd"]);
}

TEST_F(PoolTaskTest, serviceThatDoesNotComeUpIsAFailureWithItsLastWords) {
  starts = false;
  std::optional<Result<nlohmann::json>> end;
  asio::co_spawn(
      context, joinPool(tools, params, task()),
      [&](std::exception_ptr, Result<nlohmann::json> answer) { end = std::move(answer); });
  for (int i = 0; i < 1000 && !end; ++i) {
    context.restart();
    context.poll();
    clock.advanceToNext();
  }
  ASSERT_TRUE(end);
  ASSERT_FALSE(*end);
  EXPECT_EQ(end->error().code(), ErrorCode::Timeout);
  EXPECT_THAT(end->error().str(), HasSubstr("fatal: no such node"));
}

TEST_F(PoolTaskTest, badParametersTouchNothing) {
  for (nlohmann::json change :
       {nlohmann::json{{"kind", "other"}}, nlohmann::json{{"munge_key", "???"}},
        nlohmann::json{{"munge_key", "YWJj"}}, nlohmann::json{{"conf", 7}}}) {
    auto all = params;
    all.merge_patch(change);
    EXPECT_FALSE(run(joinPool(tools, all, task())));
  }
  EXPECT_TRUE(programs.commands().empty());
  EXPECT_FALSE(fs::exists(root / "etc/slurm"));
}

}  // namespace
}  // namespace muster::agent
