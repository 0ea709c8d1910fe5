// SPDX-License-Identifier: Apache-2.0
// muster monitor killed at every write of what it does by itself: drains, GPU resets, reboots,
// quarantine, the circuit breaker, expired certificates, the ladder of a BMC that hangs. Nothing is
// done twice for one symptom, no job is killed, the first reason stays, and every node ends where
// it belongs.
#include "inventory/model/cluster.h"
#include "inventory/model/monitor.h"
#include "lifecycle/model/quarantine.h"
#include "monitor/breakers.h"
#include "monitor/health_history.h"
#include "tests/crash/kill_points.h"
#include "tests/crash/monitored_rack.h"
#include "tests/fakes/memory_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using inventory::Rung;
using lifecycle::Quarantine;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const wire::Symptom kFallenOff{"xid.79", "0000:18:00.0", 1, "GPU has fallen off the bus"};
const wire::Symptom kUncontained{"xid.95", "0000:18:00.0", 1, "Uncontained ECC error"};
const wire::Symptom kReadOnlyDisk{"disk.read-only", "sda", 1, "mounted read-only"};

/// Nodes in their pool, a job on the first of them, and the monitor with leave to repair.
class MonitorTrial : public Trial {
 public:
  explicit MonitorTrial(std::vector<std::string> names = {"gpu001"}) : rack_(std::move(names)) {
    allow();
    const auto end = test::live(rack_, store_);
    EXPECT_TRUE(end.ok) << end.problems;
    rack_.forgetCounts();
    rack_.startJob("gpu001", 100s);
  }
  LifeEnd live(Death death) override {
    return keep(rack_, store_, death, [this] { return over(); });
  }
  std::string story() override { return storyOf(store_); }
  virtual bool over() = 0;

 protected:
  void allow() {
    auto& policy = *rack_.cluster.monitor;
    policy.repairs = {inventory::Repair::Reset, inventory::Repair::Reboot};
    policy.rejoin_minutes = 1;
    policy.recovery = {Rung::Retry, Rung::NewSession, Rung::BmcReset, Rung::PowerCycle,
                       Rung::Quarantine};
  }
  Machine& machine(const std::string& node = "gpu001") { return rack_.machines.at(NodeName(node)); }
  bool nothingIsOpen() { return store_.openIntents()->empty(); }
  void expectNothingLeft() {
    EXPECT_THAT(rack_.violations, IsEmpty());
    EXPECT_THAT(*store_.openIntents(), IsEmpty());
    // A claim whose process has died ends with its lease, or when the next one of this host signs
    // on.
    ASSERT_TRUE(store_.signOn(lifecycle::Origin{}.holder, 1min));
    EXPECT_THAT(*store_.claims(), IsEmpty());
  }
  int said(std::string_view text) {
    const auto events = *store_.lastEvents(100'000, nullptr);
    return static_cast<int>(std::count_if(events.begin(), events.end(), [&](const auto& event) {
      return event.text.find(text) != std::string::npos;
    }));
  }
  std::vector<lifecycle::Finding> findings() { return *store_.findings(nullptr); }

  SimulatedRack rack_;
  MemoryStore store_;
};

class RebootHeals final : public MonitorTrial {
 public:
  RebootHeals() {
    machine().reboot_heals = true;
    rack_.injectSymptom("gpu001", kFallenOff);
  }
  bool over() override {
    return machine().reboots > 0 && rack_.inPool("gpu001") && nothingIsOpen();
  }
  void expectTheEnd() override {
    expectNothingLeft();
    EXPECT_EQ(machine().reboots, 1);
    EXPECT_EQ(machine().gpu_resets, 0);
    EXPECT_GE(machine().drains, 1);
    EXPECT_TRUE(rack_.inPool("gpu001"));
    EXPECT_EQ(monitor::HealthHistory::read(store_, NodeName("gpu001"), rack_.wall.now())->reboots(),
              1);
    EXPECT_THAT(findings(), IsEmpty());
  }
};

class ResetHeals final : public MonitorTrial {
 public:
  ResetHeals() {
    machine().reset_heals = true;
    rack_.injectSymptom("gpu001", kUncontained);
  }
  bool over() override {
    return machine().gpu_resets + machine().reboots > 0 && rack_.inPool("gpu001") &&
           nothingIsOpen();
  }
  void expectTheEnd() override {
    expectNothingLeft();
    EXPECT_EQ(machine().gpu_resets, 1);
    EXPECT_EQ(machine().reboots, 0);
    EXPECT_TRUE(rack_.inPool("gpu001"));
    EXPECT_THAT(findings(), IsEmpty());
  }
};

class RebootInVain final : public MonitorTrial {
 public:
  RebootInVain() { rack_.injectSymptom("gpu001", kFallenOff); }
  bool over() override {
    return Quarantine(store_).entries()->contains(NodeName("gpu001")) && machine().drained &&
           nothingIsOpen();
  }
  void expectTheEnd() override {
    expectNothingLeft();
    EXPECT_EQ(machine().reboots, 1) << "what comes back after a reboot is for the vendor";
    EXPECT_FALSE(rack_.inPool("gpu001"));
    EXPECT_THAT(machine().drain_reason,
                StartsWith("muster: admission (health.gpu): xid.79@0000:18:00.0 (reboot)"));
    const auto entry = Quarantine(store_).entries()->at(NodeName("gpu001"));
    EXPECT_THAT(entry.reason, HasSubstr("xid.79@0000:18:00.0 (rma)"));
    EXPECT_EQ(said("quarantined by muster monitor"), 1);
    const auto open = findings();
    EXPECT_EQ(std::count_if(
                  open.begin(), open.end(),
                  [](const auto& finding) { return finding.text.starts_with("in quarantine"); }),
              1);
  }
};

class DrainsOnly final : public MonitorTrial {
 public:
  DrainsOnly() {
    rack_.injectSymptom("gpu001", kReadOnlyDisk);
    worse_at_ = rack_.clock.steady() + 60s;
    rack_.on_tick = [this] {
      if (!worse_at_ || rack_.clock.steady() < *worse_at_) return;
      worse_at_.reset();
      rack_.injectSymptom("gpu001", {"system.mce", "cpu0", 1, "machine check"});
    };
  }
  bool over() override {
    return !worse_at_ && machine().drained && rack_.clock.steady() > *machine().job_ends_at &&
           nothingIsOpen();
  }
  void expectTheEnd() override {
    expectNothingLeft();
    EXPECT_FALSE(rack_.inPool("gpu001"));
    EXPECT_THAT(machine().drain_reason,
                StartsWith("muster: admission (health.disk): disk.read-only@sda"))
        << "the first reason stays";
    EXPECT_EQ(machine().reboots + machine().gpu_resets, 0);
    EXPECT_EQ(rack_.bmcs.fake("gpu001").power_cycles, 0);
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> worse_at_;
};

class CertificateExpires final : public MonitorTrial {
 public:
  CertificateExpires() { rack_.wall.offset += std::chrono::hours(24 * 400); }
  bool over() override {
    return machine().drained && rack_.clock.steady() > *machine().job_ends_at && nothingIsOpen();
  }
  void expectTheEnd() override {
    expectNothingLeft();
    EXPECT_THAT(machine().drain_reason, HasSubstr("its certificate is void: expired"));
    EXPECT_EQ(machine().reboots + machine().gpu_resets, 0);
    EXPECT_FALSE(rack_.inPool("gpu001"));
  }
};

const std::vector<std::string> kFour{"gpu001", "gpu002", "gpu003", "gpu004"};

class BreakerTrips : public MonitorTrial {
 public:
  BreakerTrips() : MonitorTrial(kFour) {
    for (const char* node : {"gpu001", "gpu002", "gpu003"})
      rack_.injectSymptom(node, kReadOnlyDisk);
  }
  bool over() override { return isOpen() && nothingIsOpen(); }
  void expectTheEnd() override {
    expectNothingLeft();
    EXPECT_TRUE(isOpen());
    EXPECT_EQ(monitor::Breakers(store_).read()->at("batch").nodes.size(), 3u);
    for (const auto& node : kFour) EXPECT_TRUE(rack_.inPool(node)) << node;
    EXPECT_EQ(said("CIRCUIT BREAKER"), 1);
    EXPECT_EQ(breakerFindings(), 1);
  }

 protected:
  bool isOpen() {
    const auto states = *monitor::Breakers(store_).read();
    return states.contains("batch") && states.at("batch").open;
  }
  int breakerFindings() {
    const auto cluster = lifecycle::Subject::cluster();
    return static_cast<int>(store_.findings(&cluster)->size());
  }
};

/// A person has looked: the three are drained, and the fourth still asks again.
class BreakerAcknowledged final : public BreakerTrips {
 public:
  BreakerAcknowledged() {
    EXPECT_TRUE(BreakerTrips::live({}).ok);
    acknowledged_ = true;
    EXPECT_TRUE(
        monitor::Breakers(store_).acknowledge("alice@ops", "a power feed", rack_.wall.now()));
  }
  bool over() override {
    if (!acknowledged_) return BreakerTrips::over();
    if (fourth_) return isOpen() && breakerFindings() == 1 && nothingIsOpen();
    return machine("gpu001").drained && machine("gpu002").drained && machine("gpu003").drained &&
           rack_.clock.steady() > *machine().job_ends_at && nothingIsOpen();
  }
  void expectTheEnd() override {
    expectNothingLeft();
    for (const char* node : {"gpu001", "gpu002", "gpu003"})
      EXPECT_THAT(machine(node).drain_reason, HasSubstr("disk.read-only@sda")) << node;
    EXPECT_EQ(breakerFindings(), 0);
    fourth_ = true;
    rack_.injectSymptom("gpu004", kReadOnlyDisk);
    rack_.cluster.monitor->breaker = {0, 0};
    EXPECT_TRUE(live({}).ok);
    EXPECT_TRUE(rack_.inPool("gpu004")) << "the breaker counts anew";
  }

 private:
  bool acknowledged_ = false, fourth_ = false;
};

/// A BIOS that the BMC takes only after a reset of its own, or after a power cycle.
class BmcHangs : public MonitorTrial {
 public:
  BmcHangs() {
    rack_.declare("1.5.0", "44.0");
    bmc_.failNext("startUpdate", Error(ErrorCode::Unavailable, "503").retryable(false), 100'000);
    EXPECT_FALSE(test::live(rack_, store_).ok);
    rack_.forgetCounts();
    allow();
    rack_.on_tick = [this] {
      if (helps_ && (bmc_.bmc_resets > 0 || bmc_.count("power ForceRestart") > 0))
        bmc_.clearFailures("startUpdate");
    };
  }
  bool over() override { return bmc_.components["BIOS"].version == "1.5.0" && nothingIsOpen(); }
  void expectTheEnd() override {
    expectNothingLeft();
    EXPECT_LE(bmc_.bmc_resets, 1);
    EXPECT_LE(bmc_.count("power ForceRestart"), 1);
    EXPECT_EQ(rack_.uploads("gpu001", "BIOS"), helps_ ? 1 : 0);
    EXPECT_TRUE(machine().drained);
    EXPECT_EQ(Quarantine(store_).entries()->size(), helps_ ? 0u : 1u);
  }

 protected:
  FakeBmc& bmc_ = rack_.bmcs.fake("gpu001");
  bool helps_ = true;
};

class NothingHelps final : public BmcHangs {
 public:
  NothingHelps() { helps_ = false; }
  bool over() override { return !Quarantine(store_).entries()->empty() && nothingIsOpen(); }
};

template <class T>
class MonitorCrash : public ::testing::Test {};
using Ladders =
    ::testing::Types<RebootHeals, ResetHeals, RebootInVain, DrainsOnly, CertificateExpires,
                     BreakerTrips, BreakerAcknowledged, BmcHangs, NothingHelps>;
TYPED_TEST_SUITE(MonitorCrash, Ladders);

TYPED_TEST(MonitorCrash, atEveryWrite) { killAtEveryWrite(trials<TypeParam>(), 10, {.every = 2}); }
TYPED_TEST(MonitorCrash, twiceAtPairsOfWrites) { killTwice(trials<TypeParam>(), {.pairs = 12}); }
TYPED_TEST(MonitorCrash, aStoreThatIsReadOnlyForMinutesDelaysItOnly) {
  troubleAtEveryWrite(trials<TypeParam>(), kReadOnlyForMinutes, {.every = 6});
}

}  // namespace
}  // namespace muster::test
