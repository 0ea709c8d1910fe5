// SPDX-License-Identifier: Apache-2.0
// Probes, checks, and which handlers a mode has.
#include "agent/tasks/tasks.h"
#include "tests/agent/tasks/tasks_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using namespace test;

TEST_F(TasksTest, probesTellWhatRunsAndLeaveOutWhatDoesNot) {
  put("proc/sys/kernel/osrelease", "6.1.0-test\n");
  fs::create_directories(root / "sys/module/rdma_rxe");
  fs::create_directories(root / "sys/class/infiniband/rxe0");
  programs.on("dpkg-query -W -f=${db:Status-Status} ${Version} rdma-core", "installed 44.0-2");
  programs.on("dpkg-query -W -f=${db:Status-Status} ${Version} removed", "config-files 1.0");
  programs.fails("dpkg-query -W -f=${db:Status-Status} ${Version} absent", 1, "no packages found");
  programs.on("muster-agent tool nvml-driver", "570.124.06\n");
  auto values =
      run(runProbe(tools, {{"probes",
                            {"kernel", "module.rdma-rxe", "module.other", "package.rdma-core",
                             "package.removed", "package.absent", "nvml.driver", "rdma.devices",
                             "module.../../etc", "package.--help", "nonsense"}}}));
  ASSERT_TRUE(values) << values.error().str();
  EXPECT_EQ(*values, (nlohmann::json{{"kernel", "6.1.0-test"},
                                     {"module.rdma-rxe", "loaded"},
                                     {"package.rdma-core", "44.0-2"},
                                     {"nvml.driver", "570.124.06"},
                                     {"rdma.devices", "rxe0"}}));
  EXPECT_EQ(programs.count("dpkg-query -W -f=${db:Status-Status} ${Version} --help"), 0u);
}

TEST_F(TasksTest, checksRunApartAndFailClosed) {
  std::vector<wire::CheckResult> results(1);
  results[0] = {"host.gemm", wire::CheckStatus::Pass, "fine", {}, "", 1};
  programs.on("muster-agent tool checks", toJson(results));
  nlohmann::json params{{"checks", {{{"id", "host.gemm"}, {"params", nlohmann::json::object()}}}}};
  auto ran = run(runChecksApart(tools, params, task()));
  ASSERT_TRUE(ran) << ran.error().str();
  EXPECT_EQ(wire::parseCheckResults(ran->dump())->at(0).status, wire::CheckStatus::Pass);
  EXPECT_EQ(programs.commands().back().stdin_text, params.dump());

  params["checks"].push_back({{"id", "host.memory"}});
  EXPECT_FALSE(run(runChecksApart(tools, params, task()))) << "a check without a result";
  programs.fails("muster-agent tool checks", 139, "");
  EXPECT_FALSE(run(runChecksApart(tools, params, task()))) << "a crash";
  programs.on("muster-agent tool checks", "nonsense");
  EXPECT_FALSE(run(runChecksApart(tools, params, task())));
}

TEST_F(TasksTest, modesHaveTheirOwnSets) {
  auto ram = makeHandlers(wire::Mode::Ram, tools);
  auto disk = makeHandlers(wire::Mode::Disk, tools);
  EXPECT_FALSE(ram.contains(wire::TaskKind::InstallDriver));
  EXPECT_FALSE(ram.contains(wire::TaskKind::JoinPool));
  EXPECT_FALSE(disk.contains(wire::TaskKind::WriteImage));
  for (auto kind : {wire::TaskKind::Inspect, wire::TaskKind::Probe, wire::TaskKind::Reboot,
                    wire::TaskKind::RunChecks}) {
    EXPECT_TRUE(ram.contains(kind) && disk.contains(kind));
  }
}

}  // namespace
}  // namespace muster::agent
