// SPDX-License-Identifier: Apache-2.0
// approvals and maintenance windows are declared completely or refused.
#include "inventory/model/approvals.h"
#include "inventory/model/cluster.h"
#include "inventory/model/limits.h"
#include "inventory/model/pools.h"
#include "tests/inventory/inventory_fixture.h"

#include <fmt/format.h>

namespace muster::inventory {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ApprovalsTest : public InventoryTest {
 protected:
  static std::string declaring(const std::string& text) {
    return with("cluster: {name: small}", "cluster: {name: small}\n" + text);
  }
  std::vector<std::string> complaintsOf(const std::string& text) {
    return lines(loadYaml(declaring(text)));
  }
  static std::string withPool(const std::string& maintenance, const std::string& text) {
    return with(
        "batch: {slurm: {partition: gpu}}",
        "batch: {slurm: {partition: gpu}}\n  spare: {slurm: {partition: gpu}, maintenance: [" +
            maintenance + "]}",
        text);
  }
  std::vector<std::string> complaintsOfWindow(const std::string& window) {
    return lines(loadYaml(withPool(window, std::string(kSmall))));
  }
};

TEST_F(ApprovalsTest, withoutThemNobodyIsAskedAndNothingWaits) {
  const auto loaded = loadYaml(std::string(kSmall));
  ASSERT_TRUE(loaded.cluster);
  EXPECT_THAT(loaded.cluster->approvals, IsEmpty());
  EXPECT_FALSE(loaded.cluster->limits->per_run);
}

TEST_F(ApprovalsTest, areReadWithTheirDefaults) {
  const auto loaded = loadYaml(withPool(
      R"({days: [sat, sun], from: "22:05", minutes: 240, time_zone: Europe/Berlin}, {from: "00:00", minutes: 1})",
      declaring(R"(limits: {per_run: 12}
approvals:
  - {disruption: wipe}
  - {disruption: any, min_nodes: 8, pools: [spare], approvals: 3}
)")));
  ASSERT_TRUE(loaded.cluster) << loaded.diagnostics.all().front().str();
  const auto& cluster = *loaded.cluster;
  ASSERT_EQ(cluster.approvals.size(), 2u);
  EXPECT_EQ(cluster.approvals[0].disruption, Disturbance::Wipe);
  EXPECT_EQ(cluster.approvals[0].min_nodes, 1);
  EXPECT_EQ(cluster.approvals[0].approvals, 1);
  EXPECT_THAT(cluster.approvals[0].pools, IsEmpty());
  EXPECT_EQ(cluster.approvals[1].disruption, Disturbance::Any);
  EXPECT_EQ(cluster.approvals[1].min_nodes, 8);
  EXPECT_THAT(cluster.approvals[1].pools, ElementsAre("spare"));
  EXPECT_EQ(cluster.approvals[1].approvals, 3);
  const auto& windows = cluster.pools.at("spare").maintenance;
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_THAT(windows[0].days, ElementsAre(Weekday::Sat, Weekday::Sun));
  EXPECT_EQ(windows[0].from_minute, 22 * 60 + 5);
  EXPECT_EQ(windows[0].minutes, 240);
  EXPECT_EQ(windows[0].time_zone, "Europe/Berlin");
  EXPECT_THAT(windows[1].days, IsEmpty());
  EXPECT_EQ(windows[1].from_minute, 0);
  EXPECT_EQ(windows[1].time_zone, "UTC");
  EXPECT_EQ(cluster.limits->per_run, 12);
}

TEST_F(ApprovalsTest, changeTheDigestSoThatAPlanOfBeforeIsOutdated) {
  const auto before = loadYaml(std::string(kSmall));
  const auto after = loadYaml(declaring("approvals: [{disruption: drain}]"));
  ASSERT_TRUE(before.cluster && after.cluster);
  EXPECT_NE(before.cluster->digest, after.cluster->digest);
}

TEST_F(ApprovalsTest, refuseWhatIsWrongByName) {
  EXPECT_THAT(complaintsOf("approvals: [{disruption: drain, pools: [nowhere]}]"),
              Contains(HasSubstr("\"nowhere\" is not declared under pools")));
  EXPECT_THAT(complaintsOf("approvals: [{disruption: reboot}]"), Contains(HasSubstr("reboot")));
  EXPECT_THAT(complaintsOf("approvals: [{min_nodes: 3}]"), Contains(HasSubstr("disruption")));
  EXPECT_THAT(complaintsOf("approvals: [{disruption: drain, approvals: 0}]"),
              Contains(HasSubstr("error")));
  EXPECT_THAT(complaintsOf("approvals: [{disruption: drain, approvals: 11}]"),
              Contains(HasSubstr("error")));
  EXPECT_THAT(complaintsOf("approvals: []"), Contains(HasSubstr("error")));
  EXPECT_THAT(complaintsOf("limits: {per_run: 0}"), Contains(HasSubstr("error")));
}

TEST_F(ApprovalsTest, refuseWindowsThatCannotBe) {
  EXPECT_THAT(complaintsOfWindow(R"({from: "22:00", minutes: 60, time_zone: Europe/Nowhere})"),
              Contains(HasSubstr("no such time zone")));
  EXPECT_THAT(complaintsOfWindow(R"({from: "22:00", minutes: 60, time_zone: ../../etc/passwd})"),
              Contains(HasSubstr("error")));
  for (const auto* zone : {"localtime", "posixrules", "right/Europe/Berlin", "Europe//Berlin"})
    EXPECT_THAT(
        complaintsOfWindow(fmt::format(R"({{from: "22:00", minutes: 60, time_zone: {}}})", zone)),
        Contains(HasSubstr("time zone")))
        << zone;
  for (const auto* from : {"24:00", "22:60", "22", "10 pm", "-1:00"})
    EXPECT_THAT(complaintsOfWindow(std::string("{minutes: 60, from: \"") + from + "\"}"),
                Contains(HasSubstr("HH:MM")))
        << from;
  EXPECT_THAT(complaintsOfWindow(R"({from: "22:00"})"), Contains(HasSubstr("minutes")));
  EXPECT_THAT(complaintsOfWindow(R"({from: "22:00", minutes: 0})"), Contains(HasSubstr("error")));
  EXPECT_THAT(complaintsOfWindow(R"({from: "22:00", minutes: 10081})"),
              Contains(HasSubstr("error")));
  EXPECT_THAT(complaintsOfWindow(R"({from: "22:00", minutes: 9, days: [funday]})"),
              Contains(HasSubstr("funday")));
  EXPECT_THAT(complaintsOfWindow(R"({from: "22:00", minutes: 9, days: []})"),
              Contains(HasSubstr("error")));
}

}  // namespace
}  // namespace muster::inventory
