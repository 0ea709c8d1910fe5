// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/stream.h"

#include "tests/validate/fake_host.h"

#include <gmock/gmock.h>

namespace muster::validate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using wire::CheckStatus;

class Stream : public FakeHost {
 protected:
  /// /proc/cpuinfo as the kernel prints it: a block for each processor.
  void processors(const std::string& model, int sockets, int each, const std::string& flags) {
    std::string text;
    for (int i = 0; i < sockets * each; ++i)
      text += fmt::format(
          "processor\t: {}\nvendor_id\t: GenuineIntel\nmodel name\t: {}\nphysical id\t: {}\n"
          "flags\t\t: fpu vme {}\n\n",
          i, model, i / each, flags);
    write("proc/cpuinfo", text);
  }
  static StreamRun run(std::map<int, NodeStream> nodes) {
    return {.nodes = std::move(nodes), .wrong_elements = 0, .rounds = 5};
  }
  Verdict evaluated(const StreamRun& seen, nlohmann::json params = nlohmann::json::object()) {
    return evaluateStream(seen, params, host_);
  }
};

TEST_F(Stream, listsOfProcessorsAreRead) {
  EXPECT_THAT(*processorsIn("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*processorsIn(""), ElementsAre());
  EXPECT_THAT(*processorsIn("7"), ElementsAre(7));
  for (const char* bad : {"0-", "-3", "3-1", "a", "0,b", "0-99999999999", "1-2-3", "0 1"})
    EXPECT_FALSE(processorsIn(bad)) << bad;
}

TEST_F(Stream, peaksFollowFromTheModel) {
  EXPECT_EQ(memoryPeakGbytes("Intel(R) Xeon(R) Platinum 8480C"), 307.2);
  EXPECT_EQ(memoryPeakGbytes("INTEL(R) XEON(R) PLATINUM 8570"), std::nullopt) << "not as printed";
  EXPECT_EQ(memoryPeakGbytes("Intel(R) Xeon(R) Platinum 8570"), 358.4);
  EXPECT_EQ(memoryPeakGbytes("Intel(R) Xeon(R) 6776P"), 409.6);
  EXPECT_EQ(memoryPeakGbytes("AMD EPYC 9654 96-Core Processor"), 460.8);
  EXPECT_EQ(memoryPeakGbytes("AMD EPYC 7742 64-Core Processor"), 204.8);
  EXPECT_EQ(memoryPeakGbytes("QEMU Virtual CPU version 2.5+"), std::nullopt);
  EXPECT_EQ(memoryPeakGbytes(""), std::nullopt);
}

TEST_F(Stream, aMachineBelowTheShareOfItsPeakFails) {
  processors("Intel(R) Xeon(R) Platinum 8480C", 2, 4, "sse2");
  EXPECT_EQ(evaluated(run({{0, {4, 240}}, {1, {4, 244}}})).status, CheckStatus::Pass);
  const auto half = evaluated(run({{0, {4, 122}}, {1, {4, 120}}}));
  EXPECT_EQ(half.status, CheckStatus::Fail) << "every second channel is empty";
  EXPECT_THAT(half.text, HasSubstr("242.0 GB/s, expected at least 368.6 (0.6 of 2 × 307.2 GB/s"));
  EXPECT_EQ(half.values.at("numa1.stream_gbytes_per_s"), 120);
}

TEST_F(Stream, oneNodeBelowTheOthersFails) {
  processors("Intel(R) Xeon(R) Platinum 8480C", 2, 4, "sse2");
  const auto seen = evaluated(run({{0, {4, 160}}, {1, {4, 250}}}));
  EXPECT_EQ(seen.status, CheckStatus::Fail);
  EXPECT_THAT(seen.text, HasSubstr("memory node 0 gives 160.0 GB/s, another one 250.0"));
  EXPECT_EQ(evaluated(run({{0, {6, 250}}, {1, {2, 160}}})).status, CheckStatus::Pass)
      << "nodes of different size are not compared";
}

TEST_F(Stream, whereNobodyKnowsAFloorItSaysSo) {
  processors("Some new processor", 1, 4, "sse2");
  EXPECT_THAT(evaluated(run({{0, {4, 1}}})).text,
              HasSubstr("no table knows the memory of Some new"));
  processors("Intel(R) Xeon(R) Platinum 8480C", 1, 4, "sse2 hypervisor");
  const auto virtual_machine = evaluated(run({{0, {4, 11}}}));
  EXPECT_EQ(virtual_machine.status, CheckStatus::Pass);
  EXPECT_THAT(virtual_machine.text, HasSubstr("no floor: a virtual machine"));
  processors("Intel(R) Xeon(R) Platinum 8480C", 1, 8, "sse2");
  EXPECT_THAT(evaluated(run({{0, {4, 11}}})).text, HasSubstr("on some processors only"));
  EXPECT_EQ(evaluated(run({{0, {4, 11}}}), {{"min_gbytes_per_s", 12}}).status, CheckStatus::Fail)
      << "a declared one counts everywhere";
}

TEST_F(Stream, whatWasNotMeasuredIsNoPass) {
  EXPECT_EQ(evaluated(run({})).status, CheckStatus::NoData);
  EXPECT_EQ(evaluated(run({{0, {4, 200}}, {1, {4, 0}}})).status, CheckStatus::NoData);
  EXPECT_EQ(evaluated(run({{0, {4, std::nan("")}}})).status, CheckStatus::NoData);
  auto wrong = run({{0, {4, 200}}});
  wrong.wrong_elements = 1;
  EXPECT_EQ(evaluated(wrong).status, CheckStatus::Fail);
}

TEST_F(Stream, memoryNodesAreTheirOwnProcessors) {
  const auto all = memoryNodes(Host{});
  ASSERT_TRUE(all) << all.error().str();
  const int own = all->begin()->second.front();
  write("sys/devices/system/node/node0/cpulist", "");  // memory without processors
  write("sys/devices/system/node/node3/cpulist", fmt::format("{}", own));
  write("sys/devices/system/node/possible", "0-3");
  const auto nodes = memoryNodes(host_);
  ASSERT_TRUE(nodes) << nodes.error().str();
  EXPECT_EQ(*nodes, (std::map<int, std::vector<int>>{{3, {own}}}));
  write("sys/devices/system/node/node3/cpulist", "garbage");
  EXPECT_FALSE(memoryNodes(host_));
}

/// On this machine: the triad runs, its results are right, and its rate is one that memory has.
TEST_F(Stream, theTriadRunsHere) {
  const auto nodes = memoryNodes(Host{});
  ASSERT_TRUE(nodes) << nodes.error().str();
  const auto seen = runStream(*nodes, 24u << 20, std::chrono::milliseconds(1));
  ASSERT_TRUE(seen) << seen.error().str();
  EXPECT_EQ(seen->wrong_elements, 0u);
  EXPECT_GE(seen->rounds, 2);
  for (const auto& [node, each] : seen->nodes) {
    EXPECT_GT(each.gbytes_per_s, 0.01);
    EXPECT_LT(each.gbytes_per_s, 5'000);
  }
  EXPECT_FALSE(runStream({{0, {8'000}}}, 24u << 20, std::chrono::milliseconds(1)))
      << "a processor that is not there";
}

}  // namespace
}  // namespace muster::validate
