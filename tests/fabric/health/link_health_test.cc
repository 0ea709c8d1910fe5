// SPDX-License-Identifier: Apache-2.0
// Both ends of every cable together.
#include "fabric/health/link_health.h"
#include "inventory/model/cluster.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/found_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::fabric::test {
namespace {

using links::Counter;
using links::Grade;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LinkHealth : public ::testing::Test {
 protected:
  FabricReading quiet(double at) const {
    FabricReading out{{}, at, at + 1};
    for (const auto& link : topology_.links)
      for (const auto& port : {link.a, link.b})
        for (const auto& row : links::counterRows()) out.ports[key(port)][row.counter] = 0;
    return out;
  }
  /// The packets of the reading itself.
  FabricReading quietLater(double at) const {
    auto out = quiet(at);
    for (auto& [port, reading] : out.ports) reading[Counter::SentWords] = 64;
    return out;
  }
  std::pair<std::string, int> key(const Port& port) const {
    return {topology_.devices.at(port.node).guid, port.number};
  }
  LinkHealthReport evaluate(Transceivers transceivers = {}) const {
    return evaluateLinks(topology_, after_, first_, second_, {}, transceivers);
  }

  inventory::Cluster cluster_ = railCluster(3);
  Topology topology_ = parseIbnetdiscover(foundText(declared(cluster_))).value();
  Topology after_ = topology_;
  FabricReading first_ = quiet(100), second_ = quietLater(400);
  const Port leaf_{"leaf-su1-r0", 9};
};

TEST_F(LinkHealth, allQuietIsGood) {
  const auto report = evaluate();
  EXPECT_EQ(report.exitCode(), LinkHealthReport::kGood) << toText(report);
  EXPECT_EQ(report.links.size(), topology_.links.size());
  EXPECT_EQ(report.window.shortest_seconds, 299);
  EXPECT_EQ(report.window.longest_seconds, 301);
}

TEST_F(LinkHealth, namesTheCableItsEndAndItsSerialNumber) {
  second_.ports[key(leaf_)][Counter::Downs] = 2;
  const auto report = evaluate({{leaf_, "NVIDIA MCA4J80-N003 MT2325VB00571"}});
  EXPECT_EQ(report.exitCode(), LinkHealthReport::kBad);
  ASSERT_EQ(report.count(Grade::Bad), 1u);
  const auto& worst = report.links.front();
  EXPECT_TRUE(worst.link.a == leaf_ || worst.link.b == leaf_);
  EXPECT_THAT(worst.texts(Grade::Warning), ElementsAre("leaf-su1-r0 port 9: 2 times down"));
  EXPECT_THAT(toText(report), HasSubstr("[NVIDIA MCA4J80-N003 MT2325VB00571]"));
  EXPECT_THAT(toText(report), HasSubstr("replace the cable"));
  EXPECT_EQ(nlohmann::json::parse(toJson(report)).at("links")[0].at("grade"), "bad");
  EXPECT_THAT(toPrometheus(report), HasSubstr("muster_fabric_links_by_grade{grade=\"bad\"} 1\n"));
}

// What ibqueryerrors really prints: data by the HCA's node GUID, errors by its port's.
TEST_F(LinkHealth, errorsOfAnHcaAreThoseOfItsPortsGuid) {
  const Port hca{"gpu002 mlx5_0", 1};
  const auto& address = topology_.devices.at(hca.node).addresses.at(1);
  ASSERT_NE(address.guid, topology_.devices.at(hca.node).guid);
  second_.ports[{address.guid, 1}][Counter::ReceiveErrors] = 4;
  const auto report = evaluate();
  ASSERT_EQ(report.count(Grade::Bad), 1u) << toText(report);
  EXPECT_THAT(report.links.front().texts(Grade::Bad),
              ElementsAre("gpu002 mlx5_0 port 1: 4 damaged packets received"));
}

TEST_F(LinkHealth, aLinkThatIsGoneIsBadWhateverItCounts) {
  unplug(after_, leaf_);
  const auto report = evaluate();
  EXPECT_EQ(report.exitCode(), LinkHealthReport::kBad);
  EXPECT_THAT(report.links.front().texts(Grade::Bad).front(), HasSubstr("has disappeared"));
}

TEST_F(LinkHealth, aPortThatWasNotReadIsNoAnswer) {
  second_.ports.erase(key(leaf_));
  const auto report = evaluate();
  EXPECT_EQ(report.exitCode(), LinkHealthReport::kNoAnswer);
  EXPECT_EQ(report.count(Grade::Unproven), 1u);
}

TEST_F(LinkHealth, oneReadingTwiceIsNoAnswer) {
  for (const auto& same : {first_, second_}) {
    const auto report = evaluateLinks(topology_, after_, same, {same.ports, 400, 401});
    EXPECT_EQ(report.exitCode(), LinkHealthReport::kNoAnswer);
    EXPECT_THAT(toText(report), HasSubstr("no counter of any port moved"));
  }
  auto one_moved = first_;
  one_moved.ports.begin()->second[Counter::SentPackets] = 1;
  EXPECT_EQ(evaluateLinks(topology_, after_, first_, {one_moved.ports, 400, 401}).exitCode(),
            LinkHealthReport::kGood)
      << "most links of an idle fabric carry nothing";
}

TEST_F(LinkHealth, noLinksAreNoAnswer) {
  EXPECT_EQ(evaluateLinks({}, {}, first_, second_).exitCode(), LinkHealthReport::kNoAnswer);
}

TEST_F(LinkHealth, manyBadCablesOfOneDeviceAreNotTheCables) {
  for (int port : {9, 10, 11, 12, 1, 2, 3})
    if (second_.ports.count(key({"leaf-su1-r0", port})))
      second_.ports[key({"leaf-su1-r0", port})][Counter::ReceiveErrors] = 5;
  EXPECT_THAT(evaluate().hints, ElementsAre(HasSubstr("inspect the device itself")));
}

TEST_F(LinkHealth, readsPerfqueryByLid) {
  auto topology = topology_;
  topology.devices.at("leaf-su1-r0").addresses[0].lid = 7;
  const auto readings = parseReadings(
      "# Port counters: Lid 7 port 9 (CapMask: 0x1300)\nSymbolErrorCounter:....3\n", topology);
  ASSERT_TRUE(readings) << readings.error().str();
  EXPECT_EQ(readings->at(key(leaf_))[Counter::SymbolErrors], 3u);
  EXPECT_TRUE(
      parseReadings("\xef\xbb\xbf# Port counters: Lid 7 port 9 (CapMask: 0x1300)\n"
                    "SymbolErrorCounter:....3\n",
                    topology))
      << "as Windows' editors save it";
  const auto unknown = parseReadings(
      "# Port counters: Lid 777 port 9 (CapMask: 0x1300)\nSymbolErrorCounter:....3\n", topology);
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().str(), HasSubstr("subnet manager restarted"));
}

TEST(TransceiverList, isACsv) {
  const auto list = parseTransceivers(
      "device,port,vendor,part,serial\nleaf1,5,NVIDIA,MCA4J80-N003,MT2325VB00571\n\"gpu001 "
      "mlx5_0\",1,,,MT1\n");
  ASSERT_TRUE(list) << list.error().str();
  EXPECT_EQ(list->at({"leaf1", 5}), "NVIDIA MCA4J80-N003 MT2325VB00571");
  EXPECT_EQ(list->at({"gpu001 mlx5_0", 1}), "MT1");
  for (const char* bad : {"", "device,port\nleaf1,5\n", "device,port,serial\nleaf1,five,S\n",
                          "device,port,serial\n,5,S\n"})
    EXPECT_FALSE(parseTransceivers(bad)) << bad;
}

}  // namespace
}  // namespace muster::fabric::test
