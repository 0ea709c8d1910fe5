// SPDX-License-Identifier: Apache-2.0
// Resetting GPUs: only what was asked for, only when nobody uses it, and believed only when all
// answer again.
#include "agent/tasks/health.h"
#include "agent/tasks/tasks.h"
#include "base/io/files.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"
#include "tests/virtual_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace muster::agent {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTwo = "0, 00000000:18:00.0\n1, 00000000:3B:00.0\n";

class GpuResetTest : public ::testing::Test {
 protected:
  GpuResetTest() {
    programs_.on("nvidia-smi --query-gpu", kTwo);
    programs_.on("nvidia-smi --query-compute-apps", "");
    programs_.on("nvidia-smi --gpu-reset", "GPU 00000000:18:00.0 was successfully reset.\n");
    programs_.on("systemctl show -p ActiveState --value nvidia-fabricmanager", "inactive\n");
  }
  Result<json> reset(std::vector<std::string> gpus) {
    auto context = std::make_shared<TaskContext>("t", std::chrono::seconds(300));
    return loop_.run(resetGpus(tools_, json{{"gpus", std::move(gpus)}}, context));
  }
  /// A program that has this file open.
  void opens(int pid, const std::string& name, const std::string& file) {
    const auto process = folder_ / "proc" / std::to_string(pid);
    ASSERT_TRUE(io::makeDirs(process / "fd"));
    ASSERT_TRUE(io::writeFileAtomic(process / "comm", name + "\n"));
    std::filesystem::create_symlink(file, process / "fd" / "7");
  }
  std::string words(const Result<json>& result) {
    return result ? result->dump() : result.error().str();
  }
  std::size_t resets() { return programs_.count("nvidia-smi --gpu-reset"); }

  muster::test::TempFolder folder_;
  muster::test::VirtualLoop loop_;
  muster::test::ScriptedPrograms programs_;
  TaskTools tools_{folder_.path(), "", programs_, loop_.workers, loop_.clock};
};

TEST_F(GpuResetTest, resetsTheOneThatWasNamed) {
  const auto done = reset({"0000:3b:00.0"});
  ASSERT_TRUE(done) << words(done);
  EXPECT_EQ(done->dump(), R"({"reset":["0000:3b:00.0"]})");
  EXPECT_EQ(programs_.count("nvidia-smi --gpu-reset -i 1"), 1u);
}

TEST_F(GpuResetTest, resetsAllTogetherWhereAFabricManagerRuns) {
  programs_.on("systemctl show -p ActiveState --value nvidia-fabricmanager", "active\n");
  const auto done = reset({"0000:3b:00.0"});
  ASSERT_TRUE(done) << words(done);
  EXPECT_EQ((*done)["reset"].size(), 2u);
  EXPECT_EQ(programs_.count("nvidia-smi --gpu-reset -i"), 0u);
  EXPECT_EQ(resets(), 1u);
}

TEST_F(GpuResetTest, refusesWhileSomebodyComputesThere) {
  programs_.on("nvidia-smi --query-compute-apps", "00000000:3B:00.0, 4711, python\n");
  EXPECT_TRUE(reset({"0000:18:00.0"})) << "that is the other one";
  const auto refused = reset({"0000:3b:00.0"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(words(refused), HasSubstr("still in use, by 4711 (python); nothing was reset"));
  EXPECT_EQ(resets(), 1u);
}

TEST_F(GpuResetTest, refusesWhileSomebodyHoldsTheDeviceAndIsNoServiceOfTheDriver) {
  opens(7, "nvidia-persiste", "/dev/nvidia0");
  EXPECT_TRUE(reset({"0000:18:00.0"}));
  opens(8, "dcgm", "/dev/nvidia0");
  EXPECT_THAT(words(reset({"0000:18:00.0"})), HasSubstr("8 (dcgm)"));
  EXPECT_TRUE(reset({"0000:3b:00.0"})) << "that is the other one";
  EXPECT_EQ(resets(), 2u);
}

TEST_F(GpuResetTest, refusesWhatDoesNotAnswerOrIsNotSaid) {
  EXPECT_THAT(words(reset({"0000:99:00.0"})),
              HasSubstr("what has fallen off the bus cannot be reset"));
  EXPECT_FALSE(reset({}));
  programs_.on("nvidia-smi --query-compute-apps", "No devices were found\n");
  EXPECT_FALSE(reset({"0000:18:00.0"})) << "who computes is not known: fails closed";
  EXPECT_EQ(resets(), 0u);
}

TEST_F(GpuResetTest, aGpuThatDoesNotComeBackIsAFailure) {
  programs_.on("nvidia-smi --gpu-reset", [this](const io::Command&) -> Result<io::ProcessExit> {
    programs_.on("nvidia-smi --query-gpu", "0, 00000000:18:00.0\n");
    return io::ProcessExit{0, "", ""};
  });
  EXPECT_THAT(words(reset({"0000:3b:00.0"})),
              HasSubstr("1 GPUs answer after the reset, 2 did before"));
  programs_.fails("nvidia-smi --gpu-reset", 1, "GPU reset is not supported\n");
  EXPECT_THAT(words(reset({"0000:18:00.0"})), HasSubstr("not supported"));
}

// ---- what was said of a GPU before

class AfterReset : public GpuResetTest {
 protected:
  AfterReset() {
    put("proc/sys/kernel/random/boot_id", "boot-1\n");
    put("dev/kmsg",
        "6,10,100,-;NVRM: Xid (PCI:0000:18:00): 95, Uncontained\n6,11,101,-;NVRM: Xid "
        "(PCI:0000:3b:00): 95, Uncontained\n");
    programs_.on("/proc/self/exe tool gpu-health",
                 R"({"symptoms": [], "sources": {"gpu": "ok", "gpus": "2"}})");
    programs_.on("systemctl show", "LoadState=not-found\n");
    programs_.on("systemctl list-units", "");
  }
  void put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(io::makeDirs((folder_ / path).parent_path()));
    ASSERT_TRUE(io::writeFileAtomic(folder_ / path, text));
  }
  std::vector<std::string> xids(HealthSense& sense) {
    std::vector<std::string> out;
    const auto report = loop_.run(sense.look());
    for (const auto& symptom : report.symptoms)
      if (symptom.id.starts_with("xid.")) out.push_back(symptom.device);
    return out;
  }
};

TEST_F(AfterReset, itsOldMessagesAreOverAlsoForTheNextAgentOfTheBoot) {
  HealthSense first(tools_, folder_ / "state");
  ASSERT_TRUE(io::makeDirs(folder_ / "state"));
  EXPECT_THAT(xids(first), ElementsAre("0000:18:00.0", "0000:3b:00.0"));
  first.gpusWereReset({"0000:18:00.0"});
  EXPECT_THAT(xids(first), ElementsAre("0000:3b:00.0"));
  HealthSense second(tools_, folder_ / "state");
  EXPECT_THAT(xids(second), ElementsAre("0000:3b:00.0")) << "the agent was restarted";
  put("dev/kmsg", "6,12,102,-;NVRM: Xid (PCI:0000:18:00): 95, Uncontained\n");
  EXPECT_THAT(xids(second), ElementsAre("0000:18:00.0", "0000:3b:00.0")) << "it came back";
  put("proc/sys/kernel/random/boot_id", "boot-2\n");
  put("dev/kmsg", "6,1,100,-;NVRM: Xid (PCI:0000:18:00): 95, Uncontained\n");
  HealthSense third(tools_, folder_ / "state");
  EXPECT_THAT(xids(third), ElementsAre("0000:18:00.0"))
      << "the numbers of another boot say nothing";
}

TEST_F(AfterReset, theKernelLogIsToldAsItsEndWithTimes) {
  const auto lines = kernelLinesOf(folder_ / "dev/kmsg", 1u << 20);
  ASSERT_TRUE(lines);
  EXPECT_THAT(*lines, ElementsAre("[    0.000100] NVRM: Xid (PCI:0000:18:00): 95, Uncontained",
                                  HasSubstr("0000:3b:00")));
  EXPECT_THAT(*kernelLinesOf(folder_ / "dev/kmsg", 80), ElementsAre(HasSubstr("0000:3b:00")))
      << "the end counts";
  EXPECT_FALSE(kernelLinesOf(folder_ / "nowhere", 80));
}

TEST(RateWindow, countsWhatIsOfTheLastHour) {
  using std::chrono::minutes;
  RateWindow window;
  EXPECT_EQ(window.lastHour(4, minutes(10)), 4u) << "since boot, which is less than an hour ago";
  EXPECT_EQ(window.lastHour(9, minutes(40)), 9u);
  EXPECT_EQ(window.lastHour(9, minutes(75)), 5u) << "four of them are older than an hour";
  EXPECT_EQ(window.lastHour(9, minutes(140)), 0u);
  EXPECT_EQ(window.lastHour(12, minutes(200)), 3u);
  EXPECT_EQ(window.lastHour(2, minutes(201)), 2u) << "the driver began to count anew";
}

TEST(RateWindow, anAgentThatStartsLateKnowsNothingOfTheTotal) {
  RateWindow window;
  EXPECT_EQ(window.lastHour(1'000'000, std::chrono::hours(500)), 0u);
  EXPECT_EQ(window.lastHour(1'000'007, std::chrono::hours(500) + std::chrono::minutes(5)), 7u);
}

}  // namespace
}  // namespace muster::agent
