// SPDX-License-Identifier: Apache-2.0
// What the tools of a node print, nested a thousand and a hundred thousand deep, through the code
// that runs them: an error or a sign of an unhealthy state, never a signal, and never taken for
// health or for an empty disk.
#include "agent/imaging/writer.h"
#include "agent/tasks/device_firmware.h"
#include "agent/tasks/health.h"
#include "agent/tasks/nvlink_probe.h"
#include "agent/tasks/roce_probe.h"
#include "base/io/files.h"
#include "inventory/model/images.h"
#include "inventory/model/node.h"
#include "provision/images/image_import.h"
#include "tests/paths.h"
#include "tests/run_async.h"
#include "validate/checks/check_row.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

namespace muster {
namespace {

using ::testing::HasSubstr;

enum class Of { Arrays, Objects };

std::string nested(std::size_t levels, Of what) {
  if (what == Of::Arrays) return std::string(levels, '[') + std::string(levels, ']');
  std::string text;
  for (std::size_t i = 0; i < levels; ++i) text += R"({"a":)";
  return text + "1" + std::string(levels, '}');
}

/// Programs with the names of tools, first on PATH: each prints one file, whatever it is asked.
class ToolAnswers : public testing::TestWithParam<std::string> {
 protected:
  ToolAnswers() {
    EXPECT_TRUE(io::makeDirs(folder_ / "bin"));
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "answer", GetParam()));
    const auto path = std::getenv("PATH");
    EXPECT_TRUE(path);
    ::setenv("PATH", ((folder_ / "bin").string() + ":" + (path ? path : "")).c_str(), 1);
  }
  void answers(const std::string& tool) {
    const auto file = folder_ / "bin" / tool;
    ASSERT_TRUE(io::writeFileAtomic(
        file, "#!/bin/sh\nexec /bin/cat '" + (folder_ / "answer").string() + "'\n", 0755));
  }
  void put(const std::string& file, const std::string& text) {
    ASSERT_TRUE(io::makeDirs((folder_ / file).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / file, text));
  }
  template <class T>
  T run(Task<T> work) {
    auto wrapped = [](Task<T> inner) -> Async<T> { co_return co_await std::move(inner); };
    auto done = test::runAsync(wrapped(std::move(work)));
    if (!done) ADD_FAILURE() << done.error().str();
    return done ? std::move(*done) : T{};
  }
  validate::Verdict check(std::string_view id) {
    return validate::runCheck(*validate::findCheck(id), nlohmann::json::object(), host_);
  }

  test::TempFolder folder_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  Workers workers_{1};
  SystemClock clock_;
  agent::TaskTools tools_{folder_.path(), "", *processes_, workers_, clock_};
  validate::Host host_{.root = folder_.path()};
};

TEST_P(ToolAnswers, ofNvmeIsNoHealthOfADisk) {
  answers("nvme");
  put("sys/class/nvme/nvme0/serial", "S1\n");
  const auto verdict = check("disk.health");
  EXPECT_NE(verdict.status, wire::CheckStatus::Pass) << verdict.text;
  EXPECT_THAT(verdict.text, HasSubstr("S1"));
}

TEST_P(ToolAnswers, ofNvmeIsNoPendingFirmware) {
  answers("nvme");
  put("sys/class/nvme/nvme0/model", "MODEL\n");
  put("sys/class/nvme/nvme0/firmware_rev", "1.0\n");
  agent::DeviceFirmwareTasks tasks(tools_, [] { return io::makeHttpClient(); });
  const auto listed = test::runAsync(tasks.list({{"ways", {"nvme"}}}));
  ASSERT_TRUE(listed) << listed.error().str();
  EXPECT_THAT(listed->dump(), HasSubstr("nvme0"));
}

TEST_P(ToolAnswers, ofFwupdIsATrouble) {
  answers("fwupdtool");
  agent::DeviceFirmwareTasks tasks(tools_, [] { return io::makeHttpClient(); });
  const auto listed = test::runAsync(tasks.list({{"ways", {"fwupd"}}}));
  ASSERT_TRUE(listed) << listed.error().str();
  EXPECT_THAT(listed->at("troubles").dump(), HasSubstr("fwupd"));
}

TEST_P(ToolAnswers, ofFioIsNoRate) {
  answers("fio");
  put("sys/block/nvme0n1/size", "1\n");
  EXPECT_NE(check("disk.read").status, wire::CheckStatus::Pass);
}

TEST_P(ToolAnswers, ofDcgmIsNoPass) {
  answers("dcgmi");
  const auto verdict = check("gpu.dcgm");
  EXPECT_NE(verdict.status, wire::CheckStatus::Pass);
  EXPECT_THAT(verdict.text, HasSubstr("dcgmi"));
}

/// As a gate does it: the check in a process of its own, its results as JSON.
TEST_P(ToolAnswers, ofDcgmIsAResultOfTheAgentsOwnProcess) {
  answers("dcgmi");
  io::Command command{.program = (test::binFolder() / "muster-agent").string(),
                      .args = {"tool", "checks"}};
  command.stdin_text =
      R"({"checks":[{"id":"gpu.dcgm","params":{"level":1},"deadline_seconds":60}]})";
  const auto done = io::runBlocking(command);
  ASSERT_TRUE(done) << done.error().str();
  ASSERT_EQ(done->code, 0) << done->err;
  const auto results = wire::parseCheckResults(done->out);
  ASSERT_TRUE(results) << results.error().str();
  ASSERT_EQ(results->size(), 1u);
  EXPECT_NE(results->front().status, wire::CheckStatus::Pass);
  EXPECT_THAT(results->front().text, HasSubstr("dcgmi"));
}

TEST_P(ToolAnswers, ofSmartctlIsNoHealth) {
  answers("smartctl");
  answers("systemctl");
  put("sys/block/sda/size", "1\n");
  put("proc/self/mounts", "/dev/sda2 / ext4 rw 0 0\n");
  put("dev/kmsg", "6,1,1,-;Linux\n");
  tools_.self = "/bin/true";
  agent::HealthSense sense(tools_);
  const auto report = test::runAsync([](agent::HealthSense& from) -> Async<wire::HealthReport> {
    co_return co_await from.look();
  }(sense));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_THAT(report->sources.at("disk"), HasSubstr("smartctl"));
}

TEST_P(ToolAnswers, ofDcbAndLldpAreNoMarking) {
  for (const char* tool : {"dcb", "lldpctl", "ip", "ping"}) answers(tool);
  put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n");
  put("sys/class/infiniband/mlx5_0/device/net/eth9/mtu", "9000\n");
  put("sys/class/net/eth9/mtu", "9000\n");
  const auto told = run(agent::roceProbe(tools_));
  EXPECT_TRUE(nlohmann::json::accept(told)) << told.substr(0, 200);
  EXPECT_LT(told.size(), 4096u);
}

TEST_P(ToolAnswers, ofImexIsNoDomain) {
  answers("nvidia-imex-ctl");
  EXPECT_THAT(run(agent::imexProbe(tools_)), HasSubstr("no answer"));
}

TEST_P(ToolAnswers, ofWipefsIsNoEmptyDisk) {
  answers("wipefs");
  put("disk", std::string(1 << 20, '\0'));
  const auto content = agent::describeDiskContent(folder_ / "disk");
  EXPECT_FALSE(content) << content->text;
}

/// What names another file of this machine must be refused, so what cannot be read is refused too.
TEST_P(ToolAnswers, ofQemuImgIsNoImageWithoutABase) {
  answers("qemu-img");
  put("disk.qcow2", std::string("QFI\xfb\0\0\0\3", 8) + std::string(4096, '\0'));
  ASSERT_TRUE(io::makeDirs(folder_ / "work"));
  const auto file = folder_ / "disk.qcow2";
  const auto done = provision::importImage({file, io::sha256File(file).value_or("")},
                                           inventory::ImageKind::RootFs, folder_ / "work",
                                           folder_ / "fs", [](std::string_view) {});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().str(), HasSubstr("qemu-img"));
}

/// Numbers in the place of words ended the agent.
TEST(ImexAnswer, ofAnotherShapeIsNotReady) {
  for (const char* nodes :
       {R"({"0":{"status":1,"host":2}})",
        R"({"0":{"status":"READY","host":7,"connections":{"1":{"status":null,"host":[]}}}})",
        R"({"0":{"status":"READY","connections":{"1":5}}})", R"({"0":null})"}) {
    const auto state = agent::imexState(fmt::format(R"({{"status":"UP","nodes":{}}})", nodes));
    ASSERT_TRUE(state) << nodes;
    EXPECT_THAT(*state, HasSubstr("NOT READY")) << nodes;
  }
}

/// What cannot be read must not pass for an empty disk.
TEST_P(ToolAnswers, ofWipefsWithoutAListIsNoEmptyDisk) {
  for (const char* answer :
       {"{}", R"({"signatures":null})", R"({"signatures":{}})", "[]", "null"}) {
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "answer", answer));
    answers("wipefs");
    const auto content = agent::describeDiskContent(folder_ / "disk");
    EXPECT_FALSE(content) << answer << ": " << content->text;
  }
}

INSTANTIATE_TEST_SUITE_P(Deep, ToolAnswers,
                         testing::Values(nested(1'000, Of::Arrays), nested(1'000, Of::Objects),
                                         nested(100'000, Of::Arrays), nested(100'000, Of::Objects)),
                         [](const auto& row) {
                           return std::string(row.param.front() == '[' ? "Arrays" : "Objects") +
                                  std::to_string(row.index);
                         });

}  // namespace
}  // namespace muster
