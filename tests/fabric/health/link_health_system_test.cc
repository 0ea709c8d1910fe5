// SPDX-License-Identifier: Apache-2.0
// Counters of a real ibsim read by real ibqueryerrors under a real subnet manager's traffic.
#include "fabric/discovery/tools.h"
#include "fabric/health/link_health.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/simulated_fabric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using links::Counter;
using links::Grade;
using muster::test::runAsync;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LinkHealthSystem : public ::testing::Test {
 protected:
  /// Counters are read by LID, and LIDs are given by a subnet manager; it need not stay.
  void SetUp() override {
    auto options = fabric_.options();
    Tools tools(fabric_.processes(), options);
    std::filesystem::create_directories(options.run_folder);
    auto sm = tools.command("opensm", {"-o", "-f", (options.run_folder / "opensm.log").string()});
    sm.env["OSM_CACHE_DIR"] = sm.env["OSM_TMP_DIR"] = options.run_folder.string();
    ASSERT_TRUE(runAsync(fabric_.processes().run(std::move(sm)), std::chrono::seconds(30)));
  }
  FabricReading read(double at) {
    auto options = fabric_.options();
    Tools tools(fabric_.processes(), options);
    auto ports = runAsync(tools.counters());
    EXPECT_TRUE(ports) << ports.error().str();
    return {ports.value_or(links::ReadingsByGuid{}), at, at + 0.5};
  }
  Topology discover() {
    auto options = fabric_.options();
    Tools tools(fabric_.processes(), options);
    return runAsync(tools.discover()).value();
  }
  void set(const Port& port, std::string_view counter, int value) {
    fabric_.say(fmt::format("PerformanceSet \"{}\"[{}] PortCounters.{}={}", ibsimNodeId(port.node),
                            port.number, counter, value));
  }

  inventory::Cluster cluster_ = railCluster(3);
  Topology declared_ = declared(cluster_);
  SimulatedFabric fabric_{declared_};
  const Port uplink_{"leaf-su1-r1", 9}, host_{"gpu002 mlx5_0", 1};
};

// The tools' own packets are the load: every reading crosses every cable.
TEST_F(LinkHealthSystem, everyCableIsReadAtBothEndsAndCountsItsLoad) {
  const auto topology = discover();
  const auto first = read(0), second = read(60);
  const auto report = evaluateLinks(topology, discover(), first, second);
  EXPECT_EQ(report.exitCode(), LinkHealthReport::kGood) << toText(report, true);
  EXPECT_EQ(report.links.size(), declared_.links.size());
  for (const auto& one : report.links)
    for (const auto& end : one.ends)
      EXPECT_TRUE(end.verdict.load && *end.verdict.load > 0) << toString(end.port);
}

TEST_F(LinkHealthSystem, onlyWhatGrowsInTheWindowCounts) {
  set(uplink_, "LinkDownedCounter", 3);  // of last week
  set(host_, "SymbolErrorCounter", 500);
  const auto topology = discover();
  const auto first = read(0);
  set(host_, "SymbolErrorCounter", 700);
  set(host_, "PortRcvErrors", 4);
  const auto report = evaluateLinks(topology, discover(), first, read(10));
  ASSERT_EQ(report.count(Grade::Bad), 1u) << toText(report, true);
  const auto& worst = report.links.front();
  EXPECT_TRUE(worst.link.a == host_ || worst.link.b == host_);
  EXPECT_THAT(worst.texts(Grade::Bad),
              ElementsAre("gpu002 mlx5_0 port 1: 4 damaged packets received",
                          HasSubstr("gpu002 mlx5_0 port 1: 200 symbol errors in 10.5 s")));
}

TEST_F(LinkHealthSystem, clearedCountersAreNoticed) {
  set(uplink_, "SymbolErrorCounter", 9);
  const auto topology = discover();
  const auto first = read(0);
  set(uplink_, "SymbolErrorCounter", 2);
  const auto report = evaluateLinks(topology, discover(), first, read(60));
  EXPECT_EQ(report.exitCode(), LinkHealthReport::kNoAnswer) << toText(report, true);
  EXPECT_THAT(report.links.front().texts(Grade::Unproven),
              ElementsAre(HasSubstr("cleared within the window")));
}

TEST_F(LinkHealthSystem, measuresForAWhile) {
  SystemClock clock;
  const auto report = runAsync(linkHealth(fabric_.processes(), clock, fabric_.options(),
                                          std::chrono::milliseconds(300), {}, {}));
  ASSERT_TRUE(report);
  ASSERT_EQ(report->error, "");
  EXPECT_GE(report->window.shortest_seconds, 0.3);
  EXPECT_GT(report->window.longest_seconds, report->window.shortest_seconds);
  EXPECT_EQ(report->count(Grade::Unproven), declared_.links.size())
      << "0.3 s prove nothing at HDR: " << toText(*report);
}

TEST_F(LinkHealthSystem, lostPacketsAreNoAnswer) {
  fabric_.dropMads("leaf-su1-r0", 100);
  SystemClock clock;
  const auto report = runAsync(linkHealth(fabric_.processes(), clock, fabric_.options(),
                                          std::chrono::milliseconds(1), {}, {}),
                               std::chrono::seconds(60));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->exitCode(), LinkHealthReport::kNoAnswer);
  EXPECT_NE(report->error, "") << toText(*report);
}

// What iblinkinfo prints of the same fabric, once it has LIDs, leads to the same topology.
TEST_F(LinkHealthSystem, iblinkinfoAgreesWithIbnetdiscover) {
  auto options = fabric_.options();
  Tools tools(fabric_.processes(), options);
  const auto discovered = discover();
  for (const auto& args : {std::vector<std::string>{}, std::vector<std::string>{"-l"}}) {
    auto answer = runAsync(fabric_.processes().run(tools.command("iblinkinfo", args)),
                           std::chrono::seconds(30));
    ASSERT_TRUE(answer);
    const auto found = parseFound(answer->out);
    ASSERT_TRUE(found) << found.error().str() << answer->out;
    EXPECT_EQ(found->links, discovered.links);
  }
}

}  // namespace
}  // namespace muster::fabric::test
