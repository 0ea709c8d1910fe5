// SPDX-License-Identifier: Apache-2.0
#include "bmc/raid_tool.h"

#include "tests/fakes/fake_bmc.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kShown = R"({"controllers": [{"id": "c0", "levels": ["RAID1"],
  "drives": [{"id": "252:0", "serial": "A", "size_bytes": 480103981056},
             {"id": "252:1", "serial": "B", "size_bytes": 480103981056, "unusable": "rebuilding"}],
  "volumes": [{"id": "239", "name": "system", "level": "RAID1", "drives": ["252:0", "252:1"]}]}]})";

TEST(RaidTool, whatShowPrintsIsRead) {
  const auto all = raidControllersIn(kShown);
  ASSERT_TRUE(all) << all.error().str();
  ASSERT_EQ(all->size(), 1u);
  const auto& card = all->front();
  EXPECT_EQ(card.id, "c0");
  EXPECT_THAT(card.levels, ElementsAre("RAID1"));
  EXPECT_EQ(card.drives[0].uri, "c0/252:0");
  EXPECT_EQ(card.drives[0].size_bytes, 480103981056u);
  EXPECT_EQ(card.drives[1].unusable, "rebuilding");
  EXPECT_EQ(card.volumes[0].uri, "c0/239");
  EXPECT_THAT(card.volumes[0].drives, ElementsAre("c0/252:0", "c0/252:1"));
}

TEST(RaidTool, whatIsNoSuchObjectIsNotAnEmptyList) {
  for (const char* printed :
       {"", "none", "[]", "{}", R"({"controllers": null})", R"({"controllers": [{"id": "c0"}]})",
        R"({"controllers": [{"id": "c0", "drives": [{}], "volumes": []}]})",
        R"({"controllers": [{"id": "c0", "drives": [], "volumes": [{"id": "1"}]}]})"}) {
    const auto read = raidControllersIn(printed);
    ASSERT_FALSE(read) << printed;
    EXPECT_EQ(read.error().code(), ErrorCode::Unavailable);
  }
  EXPECT_TRUE(raidControllersIn(R"({"controllers": []})"));
}

TEST(RaidTool, ordersAreTheDeclaredWordsAndNoShellsWork) {
  test::FakeProcessRunner processes;
  auto bmc = withRaidTool(std::make_unique<test::FakeBmc>(),
                          {{"raid", "show"},
                           {"raid", "create", "{controller}", "-r{level}", "{drives}", "{name}"},
                           {"raid", "rm", "{controller}/{volume}"}},
                          processes);
  ASSERT_TRUE(
      test::runAsync(bmc->createVolume({"c0", "{volume}; rm", "RAID1", {"c0/252:0", "c0/252:1"}})));
  EXPECT_THAT(processes.commands.back().args,
              ElementsAre("create", "c0", "-rRAID1", "252:0,252:1", "{volume}; rm"));
  ASSERT_TRUE(test::runAsync(bmc->deleteVolume("c0/239")));
  EXPECT_THAT(processes.commands.back().args, ElementsAre("rm", "c0/239"));
  processes.answer = [](const io::Command&) -> Result<io::ProcessExit> {
    io::ProcessExit ended;
    ended.code = 3;
    ended.err = "drive 252:0 is busy\n";
    return ended;
  };
  const auto failed = test::runAsync(bmc->raidControllers());
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().str(), HasSubstr("ended with 3: drive 252:0 is busy"));
}

}  // namespace
}  // namespace muster::bmc
