// SPDX-License-Identifier: Apache-2.0
// What BMCs tell by themselves becomes facts and findings: beside everybody's look, believed when
// it is read twice, said once.
#include "bmc/health_watch.h"

#include "bmc/machine_power.h"
#include "bmc/redfish/event_stream.h"
#include "bmc/sel_cursor.h"
#include "inventory/model/cluster.h"
#include "tests/fakes/memory_store.h"
#include "tests/run_async.h"
#include "tests/virtual_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using lifecycle::Subject;
using testing::HasSubstr;

/// Sensors and a log that a test writes.
class Talking final : public Bmc {
 public:
  std::string address() const override { return "https://10.20.250.1"; }
  Async<SystemInfo> system() override { co_return SystemInfo{}; }
  Async<void> power(PowerAction) override { co_return Result<void>(); }
  Async<void> bootOnce(BootTarget) override { co_return Result<void>(); }
  Async<std::vector<FirmwareItem>> firmware() override { co_return std::vector<FirmwareItem>(); }
  Async<std::string> startUpdate(FirmwareUpdate) override { co_return std::string(); }
  Async<TaskStatus> task(std::string) override { co_return TaskStatus{}; }
  Async<TaskList> tasks() override { co_return TaskList{}; }
  Async<void> resetBmc() override { co_return Result<void>(); }
  Async<std::vector<SensorReading>> sensors() override {
    ++reads;
    if (silent) co_return fail(ErrorCode::Unavailable, "no answer");
    co_return readings;
  }
  Async<EventLog> eventLog(std::size_t) override { co_return EventLog{log, {""}}; }

  std::vector<SensorReading> readings = {{"Inlet", "Temperature", "Cel", 24, "OK", 45}};
  std::vector<LogEntry> log = {{"1", "2020-01-01T00:00:00Z", "Critical", "a fan failed years ago"}};
  bool silent = false;
  int reads = 0;
};

class OneFleet final : public BmcFleet {
 public:
  Bmc& at(const NodeName&) override { return bmc; }
  Async<void> close() override { co_return Result<void>(); }
  Talking bmc;
};

class BmcHealth : public testing::Test {
 protected:
  BmcHealth() {
    inventory::Node node;
    node.name = NodeName("gpu001");
    node.bmc.url = "https://10.20.250.1";
    cluster.nodes.push_back(node);
    begin();
  }
  void begin() {
    all.push_back(makeHealthWatch(cluster, fleet, store, loop.clock, [](const BmcSymptom& symptom) {
      if (symptom.id == "bmc.leak") return SymptomResponse{4, "quarantine", "shut the valves"};
      if (symptom.id == "bmc.sensor-critical")
        return SymptomResponse{1, "drain", "look at the cooling"};
      return SymptomResponse{0, "watch", "read it"};
    }));
    watch = all.back().get();
    loop.spawn(watch->run());
  }
  void pass(std::chrono::milliseconds time) {
    auto nap = [](Clock& clock, std::chrono::milliseconds how_long) -> Task<int> {
      co_await clock.sleep(how_long);
      co_return 0;
    };
    loop.run(nap(loop.clock, time));
  }
  std::string fact() {
    auto seen = loop.run(watch->observe(Subject(NodeName("gpu001"))));
    return seen->empty() ? "" : seen->front().value;
  }

  test::VirtualLoop loop;
  inventory::Cluster cluster;
  OneFleet fleet;
  Talking& bmc = fleet.bmc;
  test::MemoryStore store{std::make_shared<test::MemoryStore::Data>()};
  std::vector<std::unique_ptr<HealthWatch>> all;
  HealthWatch* watch = nullptr;
};

TEST_F(BmcHealth, aWellMachineIsWellAndItsOldLogIsHistory) {
  pass(1min);
  EXPECT_EQ(fact(), "ok");
  EXPECT_TRUE(store.findings(nullptr)->empty());
  pass(20min);
  EXPECT_LE(bmc.reads, 6);
}

TEST_F(BmcHealth, aReadingBeyondItsLimitIsBelievedTheSecondTime) {
  pass(1min);
  bmc.readings[0].value = 52;
  watch->notify(NodeName("gpu001"));
  pass(10s);
  EXPECT_EQ(fact(), "ok");
  pass(kHealthConfirm + 10s);
  EXPECT_EQ(fact(), "drain:bmc.sensor-critical@Inlet");
  lifecycle::FactSet facts;
  const auto seen = loop.run(watch->observe(Subject(NodeName("gpu001"))));
  for (const auto& each : *seen) facts.put(each);
  const auto goals = watch->goals(cluster, Subject(NodeName("gpu001")), facts);
  ASSERT_EQ(goals.size(), 1u);
  EXPECT_THAT(goals[0].blocked, HasSubstr("bmc.sensor-critical@Inlet"));
  EXPECT_THAT(
      facts.find(Subject(NodeName("gpu001")), FacetName("health.bmc"))->evidence,
      testing::AllOf(HasSubstr("52 Cel, critical from 45"), HasSubstr("look at the cooling")));
  bmc.readings[0].value = 24;
  pass(kHealthEvery + 10s);
  EXPECT_EQ(fact(), "ok");
}

TEST_F(BmcHealth, oneOddReadingIsNobodysReason) {
  pass(1min);
  bmc.readings[0].value = 255;
  watch->notify(NodeName("gpu001"));
  pass(10s);
  bmc.readings[0].value = 24;
  pass(10min);
  EXPECT_EQ(fact(), "ok");
}

TEST_F(BmcHealth, aLeakOutweighsTheRest) {
  bmc.readings.push_back({"Tray", "LeakDetector", "", 1, "Critical", std::nullopt});
  bmc.readings[0].value = 52;
  pass(10min);
  EXPECT_EQ(fact(), "quarantine:bmc.leak@Tray,bmc.sensor-critical@Inlet");
}

TEST_F(BmcHealth, newEntriesOfWeightAreOneFindingThatNoRestartRepeats) {
  pass(1min);
  bmc.log.push_back({"2", "2026-11-22T01:00:00Z", "OK", "power on"});
  bmc.log.push_back({"3", "2026-11-22T01:00:01Z", "Critical", "Uncorrectable ECC at DIMM A3"});
  bmc.log.push_back({"4", "2026-11-22T01:00:02Z", "Warning", "PSU 2 redundancy lost"});
  pass(6min);
  auto findings = *store.findings(nullptr);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::Error);
  EXPECT_THAT(findings[0].text, HasSubstr("2 entries of weight; the newest: PSU 2"));
  EXPECT_THAT(findings[0].evidence,
              testing::AllOf(HasSubstr("DIMM A3"), testing::Not(HasSubstr("years ago"))));
  begin();  // a new process on the same store; the old one's coroutine reads on beside it, as a
            // second keep would
  pass(12min);
  EXPECT_EQ(store.findings(nullptr)->size(), 1u);
  bmc.log = {{"1", "2026-11-22T02:00:00Z", "Critical",
              "thermal trip"}};  // somebody has cleared it, ids begin anew
  pass(6min);
  findings = *store.findings(nullptr);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].text, HasSubstr("3 entries of weight; the newest: thermal trip"));
  pass(kLogFindingFor + 1h);
  EXPECT_TRUE(store.findings(nullptr)->empty());
}

TEST_F(BmcHealth, aSilentBmcChangesNothing) {
  bmc.readings[0].value = 52;
  pass(10min);
  EXPECT_EQ(fact(), "drain:bmc.sensor-critical@Inlet");
  bmc.silent = true;
  pass(30min);
  EXPECT_EQ(fact(), "drain:bmc.sensor-critical@Inlet");
}

/// Streams that cannot be opened; when somebody tried is written down.
class Streams final : public BmcFleet, public EventSource {
 public:
  explicit Streams(Clock& clock) : clock_(clock) {}
  Bmc& at(const NodeName&) override { return bmc; }
  EventSource* eventsOf(const NodeName&) override { return this; }
  Async<void> close() override { co_return Result<void>(); }
  Async<EventStreamPosition> listen(EventStreamPosition, std::function<void()>,
                                    std::function<void(std::vector<LogEntry>)>) override {
    opened.push_back(clock_.steady());
    co_return fail(ErrorCode::Unavailable, "connection refused");
  }
  Talking bmc;
  std::vector<std::chrono::steady_clock::time_point> opened;

 private:
  Clock& clock_;
};

TEST(BmcEventStreams, ofAThousandBmcsAreNotOpenedAtOnceNeitherFirstNorAgain) {
  constexpr int kNodes = 1'000, kMostPerSecond = 60;
  test::VirtualLoop loop;
  inventory::Cluster cluster;
  for (int i = 0; i < kNodes; ++i) {
    inventory::Node node;
    node.name = NodeName(fmt::format("gpu{:04}", i));
    node.bmc.url = "https://10.20.250.1";
    cluster.nodes.push_back(node);
  }
  Streams fleet(loop.clock);
  test::MemoryStore store{std::make_shared<test::MemoryStore::Data>()};
  auto watch = makeHealthWatch(cluster, fleet, store, loop.clock,
                               [](const BmcSymptom&) { return SymptomResponse{}; });
  loop.spawn(watch->run());
  auto nap = [](Clock& clock) -> Task<int> {
    co_await clock.sleep(50s);
    co_return 0;
  };
  loop.run(nap(loop.clock));
  EXPECT_GT(fleet.opened.size(), static_cast<std::size_t>(kNodes));  // some came back
  const auto begun = fleet.opened.front();
  std::map<long, int> by_second;
  for (const auto at : fleet.opened)
    ++by_second[std::chrono::duration_cast<std::chrono::seconds>(at - begun).count()];
  for (const auto& [second, many] : by_second) EXPECT_LE(many, kMostPerSecond) << second;
}

TEST(BmcSymptoms, healthAndLimitsAndLeaks) {
  const auto found = symptomsOf({{"A", "Temperature", "Cel", 50, "OK", 45},
                                 {"B", "Rotational", "RPM", 0, "Warning", std::nullopt},
                                 {"C", "LeakDetector", "", 0, "OK", std::nullopt},
                                 {"D", "Power", "W", 700, "", 0},
                                 {"E", "Voltage", "V", 12, "Critical", std::nullopt}});
  std::vector<std::string> names;
  for (const auto& symptom : found) names.push_back(symptom.id + "@" + symptom.device);
  EXPECT_THAT(names, testing::ElementsAre("bmc.sensor-critical@A", "bmc.sensor-warning@B",
                                          "bmc.sensor-critical@E"));
}

TEST_F(BmcHealth, whatTheMachineDrawsIsInTheEvidenceAlsoOfAWellOne) {
  bmc.readings.push_back({"PSU1", "PowerSupply", "W", 3'100.5, "OK"});
  pass(1min);
  auto seen = loop.run(watch->observe(Subject(NodeName("gpu001"))));
  ASSERT_EQ(seen->size(), 1u);
  EXPECT_EQ(seen->front().value, "ok");
  const auto power = machinePowerIn(seen->front().evidence);
  ASSERT_TRUE(power) << seen->front().evidence;
  EXPECT_EQ(power->watts, 3'100.5);
  bmc.silent = true;
  pass(20min);
  seen = loop.run(watch->observe(Subject(NodeName("gpu001"))));
  EXPECT_LT(seen->front().observed_at, loop.clock.now() - 15min)
      << "and its age says how old it is";
}

}  // namespace
}  // namespace muster::bmc
