// SPDX-License-Identifier: Apache-2.0
// The health phase: what an agent tells becomes facts; a reboot is bounded, counted, and believed
// only by the next boot's own report.
#include "monitor/health_phase.h"
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/monitor.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/quarantine.h"
#include "monitor/agent_liveness.h"
#include "monitor/health_gate.h"
#include "monitor/health_history.h"
#include "monitor/kernel_evidence.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/monitor/pool_rig.h"
#include "tests/run_async.h"

namespace muster::monitor::test {
namespace {

using muster::test::runAsync;
using ::testing::HasSubstr;

class HealthPhaseTest : public ::testing::Test {
 protected:
  HealthPhaseTest() {
    phase_ = makeHealthPhase(
        cluster_, agents_, store_, clock_,
        [this](NodeName node, std::string why) { return hear(node.str() + ": " + why); });
  }
  Task<void> hear(std::string what) {
    EXPECT_TRUE(agents_.submitted(node_, wire::TaskKind::Reboot).empty()) << "before the order";
    heard_.push_back(std::move(what));
    co_return;
  }

  void tell(std::vector<wire::Symptom> symptoms, const std::string& boot = "boot-1",
            std::map<std::string, std::string> sources = {}) {
    auto state = agents_.boot(node_, wire::Mode::Disk);
    state.boot_id = boot;
    state.health = wire::HealthReport{std::move(symptoms), std::move(sources)};
    state.hardware.gpus = {{"H100", "GPU-1", "SN-7", "96.00", "00000000:18:00.0"}};
    agents_.setState(state);
  }
  FactSet look() {
    FactSet facts;
    auto seen = runAsync(phase_->observe(Subject(node_)));
    EXPECT_TRUE(seen) << (seen ? "" : seen.error().str());
    if (seen)
      for (auto& fact : *seen) facts.put(std::move(fact));
    return facts;
  }
  std::string value(std::string_view facet) {
    return look().value(Subject(node_), FacetName(std::string(facet))).value_or("nothing");
  }
  Goal goal(std::string_view facet) {
    const auto facts = look();
    for (auto& goal : phase_->goals(cluster_, Subject(node_), facts))
      if (goal.facet.facet.str() == facet) return goal;
    return {};
  }

  inventory::Cluster cluster_ = clusterOf(2);
  NodeName node_{"gpu001"};
  muster::test::FakeAgentGateway agents_;
  muster::test::MemoryStore store_;
  FakeClock clock_;
  std::unique_ptr<Phase> phase_;
  std::vector<std::string> heard_;  ///< by the consoles
};

TEST_F(HealthPhaseTest, saysNothingOfANodeWhoseAgentHasToldNothing) {
  EXPECT_EQ(value("health.gpu"), "nothing");
  agents_.boot(node_, wire::Mode::Disk);
  EXPECT_EQ(value("health.gpu"), "nothing");
  EXPECT_EQ(value("quarantine"), "none");
}

TEST_F(HealthPhaseTest, aWellNodeIsOkInEveryGroup) {
  tell({{"xid.13", "0000:18:00.0", 40, "Graphics SM Warp Exception"}});
  for (const char* group : {"health.gpu", "health.disk", "health.network", "health.system"})
    EXPECT_EQ(value(group), "ok") << group;
  EXPECT_THAT(look().find(Subject(node_), FacetName("health.gpu"))->evidence,
              HasSubstr("look at the job"))
      << "what is watched is told";
}

/// A node that takes jobs, well when it was last heard.
class SilentAgent : public HealthPhaseTest {
 protected:
  SilentAgent() {
    place(kPoolIn);
    tell({{"system.unit-failed", "cron.service", 1, "failed"}});
    keep();
    agents_.silence(node_);
  }
  void place(std::string_view pool) {
    ASSERT_TRUE(store_.putFacts({factOf(node_.str(), kPoolFacet, std::string(pool),
                                        nlohmann::json::object(), clock_.now())}));
  }
  void keep() {
    std::vector<Fact> facts;
    for (const auto& [facet, fact] : look().all()) facts.push_back(fact);
    ASSERT_TRUE(store_.putFacts(facts));
  }
  void anotherShift() { phase_ = makeHealthPhase(cluster_, agents_, store_, clock_); }
  void silentFor(std::chrono::seconds time) {
    value("health.system");
    clock_.advance(time);
  }
  std::string evidence() {
    const auto facts = look();
    const auto* fact = facts.find(Subject(node_), FacetName("health.system"));
    return fact ? fact->evidence : "nothing";
  }
};

TEST_F(SilentAgent, isWatchedAfterMinutesAndWhatWasKnownStays) {
  silentFor(kAgentSilentAfter - std::chrono::seconds(1));
  EXPECT_EQ(value("health.system"), "nothing");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(value("health.system"), "ok");
  const auto first = evidence();
  EXPECT_THAT(first, HasSubstr("system.agent-silent"));
  EXPECT_THAT(first, HasSubstr("cron.service"));
  EXPECT_THAT(silenceText(*look().find(Subject(node_), FacetName("health.system"))),
              HasSubstr("no report since"));
  keep();
  clock_.advance(std::chrono::hours(1));
  anotherShift();  // agents have time to dial in
  EXPECT_EQ(value("health.system"), "nothing");
  clock_.advance(kAgentStartupGrace - std::chrono::seconds(1));
  EXPECT_EQ(value("health.system"), "nothing");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(evidence(), first) << "equal every time, so that it is stored and told once";
  tell({});
  EXPECT_EQ(evidence(), "");
}

TEST_F(SilentAgent, itsSilenceCountsFromItsLastReportOverShiftsOfKeep) {
  const auto last_report = muster::toString(clock_.now());
  silentFor(std::chrono::minutes(2));
  anotherShift();
  silentFor(kAgentStartupGrace);
  EXPECT_EQ(value("health.system"), "nothing") << "four minutes in all";
  clock_.advance(std::chrono::minutes(1));
  EXPECT_EQ(value("health.system"), "ok");
  EXPECT_THAT(evidence(), HasSubstr("no report since " + last_report));
}

TEST_F(SilentAgent, whomThisProcessHasHeardIsSilentAfterMinutesOfItsOwn) {
  clock_.advance(std::chrono::hours(1));
  anotherShift();
  tell({});
  value("health.system");  // heard, and not stored
  agents_.silence(node_);
  silentFor(kAgentSilentAfter - std::chrono::seconds(1));
  EXPECT_EQ(value("health.system"), "nothing");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(value("health.system"), "ok");
}

TEST_F(SilentAgent, whoseReportsNobodyKnowsIsSilentFromWhenItWasMissed) {
  ASSERT_TRUE(
      store_.forgetFacts(Subject(node_), {FacetName("health.system"), FacetName("health.gpu"),
                                          FacetName("health.disk"), FacetName("health.network")}));
  anotherShift();
  silentFor(kAgentSilentAfter - std::chrono::seconds(1));
  EXPECT_EQ(value("health.system"), "nothing");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(value("health.system"), "ok");
}

TEST_F(SilentAgent, isAReasonToDrainWhereTheInventorySaysSo) {
  cluster_.monitor->symptoms.push_back(
      {"system.agent-silent", HealthAction::Drain, 1, std::nullopt, "look at it"});
  silentFor(kAgentSilentAfter);
  EXPECT_EQ(value("health.system"), "drain:system.agent-silent");
}

TEST_F(SilentAgent, isNoNewsOfANodeThatTakesNoJobsOrIsSickAnyway) {
  silentFor(kAgentSilentAfter);
  place(kPoolDrained);
  EXPECT_EQ(value("health.system"), "nothing");
  place(kPoolSilent);
  EXPECT_EQ(value("health.system"), "ok");
  ASSERT_TRUE(store_.putFacts({factOf(node_.str(), "health.system", "drain:system.mce",
                                      nlohmann::json::object(), clock_.now())}));
  EXPECT_EQ(value("health.system"), "nothing") << "silence makes nobody healthier";
}

TEST_F(HealthPhaseTest, namesTheStrongestActionTheDevicesAndTheSerials) {
  tell({{"xid.74", "0000:18:00.0", 1, ""},
        {"xid.79", "0000:18:00.0", 1, "GPU has fallen off the bus"},
        {"disk.read-only", "sda", 1, ""}});
  EXPECT_EQ(value("health.gpu"), "reboot:xid.79@0000:18:00.0,xid.74@0000:18:00.0");
  EXPECT_EQ(value("health.disk"), "drain:disk.read-only@sda");
  EXPECT_THAT(look().find(Subject(node_), FacetName("health.gpu"))->evidence, HasSubstr("SN-7"));
  EXPECT_EQ(goal("health.gpu").disruption, Disruption::Reset);
  EXPECT_TRUE(goal("health.gpu").blocked.empty());
  EXPECT_THAT(goal("health.disk").blocked, HasSubstr("no action of muster repairs that"));
}

TEST_F(HealthPhaseTest, theSameXidInTheNextBootIsWorse) {
  tell({{"xid.79", "0000:18:00.0", 1, ""}});
  EXPECT_EQ(value("health.gpu"), "reboot:xid.79@0000:18:00.0");
  EXPECT_EQ(value("health.gpu"), "reboot:xid.79@0000:18:00.0")
      << "the same boot again is no repeat";
  tell({{"xid.79", "0000:3b:00.0", 1, ""}}, "boot-2");
  EXPECT_EQ(value("health.gpu"), "reboot:xid.79@0000:3b:00.0") << "another GPU";
  tell({{"xid.79", "0000:18:00.0", 1, ""}}, "boot-3");
  EXPECT_EQ(value("health.gpu"), "rma:xid.79@0000:18:00.0");
  clock_.advance(kRemembered);
  EXPECT_EQ(value("health.gpu"), "reboot:xid.79@0000:18:00.0")
      << "what was a month ago says nothing about a repair";
}

TEST_F(HealthPhaseTest, gpusThatCannotBeWatchedAreNotWell) {
  tell({}, "boot-1",
       {{"gpu", "cannot load libnvidia-ml.so.1"},
        {"disk", "smartctl is not there"},
        {"network", "absent"}});
  EXPECT_EQ(value("health.system"), "ok") << "a node without declared GPUs needs none";
  cluster_.profiles["gpu-node"].expect.gpus = 8;
  EXPECT_EQ(value("health.system"), "drain:system.blind.gpu@gpu");
  tell({}, "boot-1", {{"gpu", "absent"}});
  EXPECT_EQ(value("health.system"), "drain:system.blind.gpu@gpu");
}

/// Before its driver is installed every GPU is out of sight; that is no reason to keep the node out
/// of its pool.
TEST_F(HealthPhaseTest, aPlanAsksNothingOfWhatIsOnlyOutOfSight) {
  cluster_.profiles["gpu-node"].expect.gpus = 8;
  tell({}, "boot-1", {{"gpu", "cannot load libnvidia-ml.so.1"}});
  EXPECT_EQ(value("health.system"), "drain:system.blind.gpu@gpu") << "keep is told";
  EXPECT_TRUE(goal("health.system").facet.facet.empty()) << "the plan is not";
  tell({{"system.fabric-manager", "nvidia-fabricmanager", 1, "failed"}}, "boot-1",
       {{"gpu", "cannot load libnvidia-ml.so.1"}});
  EXPECT_FALSE(goal("health.system").facet.facet.empty()) << value("health.system");
}

TEST_F(HealthPhaseTest, rebootsOnceAndBelievesOnlyTheNextBootsReport) {
  tell({{"xid.79", "0000:18:00.0", 1, ""}});
  agents_.answer(wire::TaskKind::Reboot, "{}");
  const auto pass =
      factOf(node_.str(), "gate.burn-in", "pass:1", nlohmann::json::object(), clock_.now());
  ASSERT_TRUE(store_.putFacts({pass}));
  muster::test::FakeActContext context;
  context.fact_set.put(pass);
  Action action;
  action.disruption = Disruption::Reset;
  action.facet = facetOf(node_.str(), "health.gpu");
  EXPECT_TRUE(std::holds_alternative<Again>(*runAsync(phase_->act(action, context))));
  EXPECT_TRUE(std::holds_alternative<Again>(*runAsync(phase_->act(action, context))));
  EXPECT_EQ(agents_.submitted(node_, wire::TaskKind::Reboot).size(), 1u);
  EXPECT_EQ(heard_, std::vector<std::string>{"gpu001: reboot for its health"});
  EXPECT_FALSE(store_.facts()->find(Subject(node_), FacetName("gate.burn-in")))
      << "a pass from before the repair proves nothing";
  auto state = agents_.boot(node_, wire::Mode::Disk);
  state.boot_id = "boot-2";
  state.health.reset();
  agents_.setState(state);
  EXPECT_TRUE(std::holds_alternative<Again>(*runAsync(phase_->act(action, context))))
      << "it has not told of its health yet";
  tell({}, "boot-2");
  EXPECT_TRUE(std::holds_alternative<Done>(*runAsync(phase_->act(action, context))));
  EXPECT_EQ(value("health.gpu"), "ok");
  EXPECT_EQ(value("health.reboots"), "1");
}

class GpuResetTest : public HealthPhaseTest {
 protected:
  GpuResetTest() {
    tell({{"xid.95", "0000:18:00.0", 1, "Uncontained ECC error"}});
    action_.disruption = Disruption::Reset;
    action_.facet = facetOf(node_.str(), "health.gpu");
    const auto seen = look();
    context_.fact_set = seen;
    context_.fact_set.put(
        factOf(node_.str(), "gate.burn-in", "pass:1", nlohmann::json::object(), clock_.now()));
    EXPECT_TRUE(store_.putFacts(
        {factOf(node_.str(), "gate.burn-in", "pass:1", nlohmann::json::object(), clock_.now())}));
    agents_.answer(wire::TaskKind::Reboot, "{}");
  }
  Result<Outcome> act() { return runAsync(phase_->act(action_, context_)); }
  std::size_t tasks(wire::TaskKind kind) { return agents_.submitted(node_, kind).size(); }
  Action action_;
  muster::test::FakeActContext context_;
};

TEST_F(GpuResetTest, aGpuThatAResetHealsIsResetAndTheNodeStaysUp) {
  agents_.answer(wire::TaskKind::ResetGpu,
                 [this](const NodeName&, const wire::AgentTask& task) -> Result<std::string> {
                   EXPECT_EQ(task.params, R"({"gpus":["0000:18:00.0"]})");
                   tell({});  // it tells of its health with the end of the task
                   return R"({"reset":["0000:18:00.0"]})";
                 });
  EXPECT_TRUE(std::holds_alternative<Done>(*act()));
  EXPECT_EQ(tasks(wire::TaskKind::Reboot), 0u);
  EXPECT_EQ(value("health.gpu"), "ok");
  EXPECT_EQ(value("health.reboots"), "0");
  EXPECT_FALSE(store_.facts()->find(Subject(node_), FacetName("gate.burn-in")))
      << "a pass from before the repair proves nothing";
  EXPECT_TRUE(std::holds_alternative<Done>(*act())) << "called anew after a crash";
  EXPECT_EQ(tasks(wire::TaskKind::ResetGpu), 1u);
}

TEST_F(GpuResetTest, aGpuThatIsStillInUseIsLeftToAReboot) {
  agents_.answer(wire::TaskKind::ResetGpu,
                 [](const NodeName&, const wire::AgentTask&) -> Result<std::string> {
                   return fail(ErrorCode::Conflict, "still in use, by 4711 (dcgm)");
                 });
  EXPECT_TRUE(std::holds_alternative<Again>(*act()));
  EXPECT_EQ(tasks(wire::TaskKind::Reboot), 1u);
  EXPECT_EQ(context_.recorded, "boot-1");
  tell({}, "boot-2");
  EXPECT_TRUE(std::holds_alternative<Done>(*act()));
  EXPECT_EQ(value("health.reboots"), "1");
}

TEST_F(GpuResetTest, whatComesBackAfterAResetIsForTheVendor) {
  agents_.answer(wire::TaskKind::ResetGpu, R"({"reset":["0000:18:00.0"]})");
  EXPECT_TRUE(std::holds_alternative<Done>(*act()));
  EXPECT_EQ(value("health.gpu"), "rma:xid.95@0000:18:00.0")
      << "the same boot, but another life of the GPU";
}

TEST_F(GpuResetTest, whatNeedsARebootIsNotReset) {
  tell({{"xid.95", "0000:18:00.0", 1, ""},
        {"xid.79", "0000:3b:00.0", 1, "GPU has fallen off the bus"}});
  context_.fact_set = look();
  EXPECT_TRUE(std::holds_alternative<Again>(*act()));
  EXPECT_EQ(tasks(wire::TaskKind::ResetGpu), 0u);
  EXPECT_EQ(tasks(wire::TaskKind::Reboot), 1u);
}

/// After the repair nobody can ask any more: the ring of the next boot knows nothing of it.
TEST_F(HealthPhaseTest, theKernelLogOfASickNodeIsKeptOnceForEachSickness) {
  agents_.answer(
      wire::TaskKind::KernelLog,
      R"({"lines":["[    12.000000] NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus."]})");
  tell({});
  (void)look();
  EXPECT_TRUE(agents_.submitted().empty()) << "a well node is not asked";
  tell({{"xid.79", "0000:18:00.0", 1, ""}});
  for (int looks = 0; looks < 4; ++looks) (void)look();
  EXPECT_EQ(agents_.submitted(node_, wire::TaskKind::KernelLog).size(), 1u);
  const auto kept = storedKernelLog(store_, node_);
  ASSERT_TRUE(kept);
  EXPECT_THAT(*kept, HasSubstr("boot boot-1, kept at "));
  EXPECT_THAT(*kept, HasSubstr("because of reboot:xid.79@0000:18:00.0\n[    12.000000] NVRM: Xid"));
  tell({}, "boot-2");
  (void)look();
  EXPECT_EQ(*storedKernelLog(store_, node_), *kept) << "the last unhealthy state's log stays";
  EXPECT_THAT(*storedKernelLog(store_, NodeName("gpu002")), HasSubstr("no kernel log is stored"));
}

TEST_F(HealthPhaseTest, afterTwoRebootsItAsksForAPerson) {
  auto history = *HealthHistory::read(store_, node_, clock_.now());
  EXPECT_TRUE(history.rebooted("intent-a", clock_.now()));
  EXPECT_FALSE(history.rebooted("intent-a", clock_.now()));
  EXPECT_TRUE(history.rebooted("intent-b", clock_.now()));
  ASSERT_TRUE(history.write(store_, node_));
  tell({{"xid.151", "0000:18:00.0", 1, ""}});
  EXPECT_THAT(goal("health.gpu").blocked, HasSubstr("2 reboots within 30 days did not help"));
  muster::test::FakeActContext context;
  Action action;
  action.disruption = Disruption::Reset;
  action.facet = facetOf(node_.str(), "health.gpu");
  EXPECT_TRUE(std::holds_alternative<Blocked>(*runAsync(phase_->act(action, context))));
  EXPECT_TRUE(agents_.submitted(node_, wire::TaskKind::Reboot).empty());
}

TEST_F(HealthPhaseTest, quarantineIsAFactThatBlocksAndAGateThatNoCertificateOpens) {
  struct Open final : CertificateGate {
    Result<void> requireValid(const NodeName&) const override { return {}; }
  } certificates;
  QuarantineGate gate(certificates, store_);
  EXPECT_TRUE(gate.requireValid(node_));
  EXPECT_TRUE(*Quarantine(store_).add(node_, {clock_.now(), "alice", "burns", ""}));
  EXPECT_FALSE(*Quarantine(store_).add(node_, {clock_.now(), "bob", "other words", ""}))
      << "the first reason stays";
  EXPECT_EQ(value("quarantine"), "held");
  EXPECT_THAT(goal("quarantine").blocked, HasSubstr("muster quarantine remove gpu001"));
  EXPECT_THAT(gate.requireValid(node_).error().str(), HasSubstr("burns"));
  ASSERT_TRUE(store_.putValue("quarantine", "rubbish"));
  EXPECT_FALSE(gate.requireValid(node_)) << "an unreadable list lets nobody in";
}

TEST_F(HealthPhaseTest, aSickNodeIsNotLetInOnItsCertificate) {
  struct Open final : CertificateGate {
    Result<void> requireValid(const NodeName&) const override { return {}; }
  } certificates;
  HealthGate gate(certificates, store_);
  ASSERT_TRUE(store_.putFacts({factOf(node_.str(), "health.gpu", "ok", {}, clock_.now()),
                               factOf(node_.str(), "health.reboots", "2", {}, clock_.now())}));
  EXPECT_TRUE(gate.requireValid(node_));
  ASSERT_TRUE(store_.putFacts(
      {factOf(node_.str(), "health.gpu", "reboot:xid.79@0000:18:00.0", {}, clock_.now())}));
  EXPECT_EQ(gate.requireValid(node_).error().code(), ErrorCode::Denied);
  EXPECT_THAT(gate.requireValid(node_).error().str(), HasSubstr("xid.79@0000:18:00.0 (reboot)"));
}

}  // namespace
}  // namespace muster::monitor::test
