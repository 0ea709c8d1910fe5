// SPDX-License-Identifier: Apache-2.0
// keep: what the long-running controller may do by itself is declared completely or refused.
#include "inventory/model/monitor.h"
#include "inventory/model/cluster.h"
#include "inventory/model/limits.h"
#include "tests/inventory/inventory_fixture.h"

namespace muster::inventory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class MonitorTest : public InventoryTest {
 protected:
  std::vector<std::string> declaring(const std::string& monitor) {
    return complaints("cluster: {name: small}", "cluster: {name: small}\nmonitor: " + monitor);
  }
};

TEST_F(MonitorTest, withoutASectionItDisturbsNothing) {
  auto loaded = loadYaml(std::string(kSmall));
  ASSERT_TRUE(loaded.cluster);
  const auto& monitor = *loaded.cluster->monitor;
  EXPECT_EQ(monitor.interval_seconds, 20);
  EXPECT_EQ(monitor.breaker.percent, 10);
  EXPECT_EQ(monitor.breaker.nodes, 1);
  EXPECT_EQ(monitor.on_config_change, OnConfigChange::Drain);
  EXPECT_THAT(monitor.repairs, IsEmpty());
  EXPECT_THAT(monitor.recovery, IsEmpty());
  EXPECT_FALSE(monitor.rejoin_minutes) << "a person sees to it";
}

class LimitsTest : public InventoryTest {
 protected:
  std::string limiting(const std::string& limits) {
    return with("cluster: {name: small}", "cluster: {name: small}\nlimits: " + limits);
  }
};

TEST_F(LimitsTest, areCeilingsThatAreDeclaredOrNot) {
  auto plain = loadYaml(std::string(kSmall));
  ASSERT_TRUE(plain.cluster);
  EXPECT_EQ(plain.cluster->limits, Limits());
  auto loaded = loadYaml(limiting("{bmc_requests: 200, uploads: 8, imagings: 32, restarts: 20}"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const auto& limits = *loaded.cluster->limits;
  EXPECT_EQ(limits.bmc_requests, 200);
  EXPECT_EQ(limits.uploads, 8);
  EXPECT_EQ(limits.imagings, 32);
  EXPECT_EQ(limits.restarts, 20);
  EXPECT_NE(loaded.cluster->digest, plain.cluster->digest);
}

TEST_F(LimitsTest, refuseWhatIsNoNumberOfThings) {
  for (const char* bad : {"{restarts: 0}", "{restarts: -1}", "{imagings: 100000}", "{reboots: 3}"})
    EXPECT_FALSE(loadYaml(limiting(bad)).cluster) << bad;
}

TEST_F(MonitorTest, readsEveryKey) {
  auto loaded =
      loadYaml(with("cluster: {name: small}",
                    "cluster: {name: small}\n"
                    "monitor: {interval_seconds: 10, on_config_change: ignore, breaker: {percent: "
                    "5, nodes: 2}, repairs: [reset, reboot], reboots: 3, rejoin_minutes: 30, "
                    "symptoms: {xid.13: {action: quarantine, min_count: 3, advice: ask us}, "
                    "'disk.*': {action: drain, per_hour: 4}}, "
                    "recovery: [retry, bmc-reset, quarantine]}"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const auto& monitor = *loaded.cluster->monitor;
  EXPECT_EQ(monitor.on_config_change, OnConfigChange::Ignore);
  EXPECT_EQ(monitor.breaker.nodes, 2);
  EXPECT_THAT(monitor.repairs, ElementsAre(Repair::Reset, Repair::Reboot));
  EXPECT_THAT(monitor.recovery, ElementsAre(Rung::Retry, Rung::BmcReset, Rung::Quarantine));
  ASSERT_EQ(monitor.symptoms.size(), 2u);
  EXPECT_EQ(monitor.symptoms[0].name, "disk.*");
  EXPECT_EQ(monitor.symptoms[0].per_hour, 4);
  EXPECT_EQ(monitor.symptoms[1].name, "xid.13");
  EXPECT_EQ(monitor.symptoms[1].action, HealthAction::Quarantine);
  EXPECT_EQ(monitor.symptoms[1].min_count, 3);
  EXPECT_EQ(monitor.rejoin_minutes, 30);
}

TEST_F(MonitorTest, refusesWhatWouldMeanSomethingElse) {
  EXPECT_THAT(declaring("{interval_seconds: 600}"), ElementsAre(HasSubstr("2 to 50")))
      << "a node must be drained within a minute";
  EXPECT_THAT(declaring("{breaker: {percent: 101}}"), ElementsAre(HasSubstr("0 to 100")));
  EXPECT_THAT(declaring("{recovery: [power-cycle, retry]}"),
              ElementsAre(HasSubstr("stands after a stronger step")));
  EXPECT_THAT(declaring("{recovery: [retry, retry]}"), ElementsAre(HasSubstr("or twice")));
  EXPECT_THAT(declaring("{repairs: [reboot, reboot]}"), ElementsAre(HasSubstr("listed twice")));
  EXPECT_THAT(declaring("{repairs: [image]}"), ElementsAre(HasSubstr("image")));
  EXPECT_THAT(declaring("{symptoms: {xid.13: {min_count: 3}}}"), ElementsAre(HasSubstr("action")));
  EXPECT_THAT(declaring("{symptoms: {'*': {action: drain}}}"), ElementsAre(HasSubstr("symptom")));
}

}  // namespace
}  // namespace muster::inventory
