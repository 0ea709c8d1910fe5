// SPDX-License-Identifier: Apache-2.0
// The validate phase: fail closed, whatever the agent says.
#include "inventory/model/certificates.h"
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/mounts.h"
#include "inventory/model/profile.h"
#include "inventory/model/racks.h"
#include "lifecycle/model/facet_table.h"
#include "tests/validate/phase_fixture.h"
#include "validate/power_budget.h"
#include "validate/validation_scope.h"

#include <boost/asio/co_spawn.hpp>

namespace muster::validate {
namespace {

TEST_F(ValidatePhaseTest, goalsChangeWithTheDeclaration) {
  const Subject subject(NodeName("n1"));
  const auto before = phase_->goals(cluster_, subject, {});
  cluster_.profiles["p"].expect.gpus = 8;
  const auto after = phase_->goals(cluster_, subject, {});
  ASSERT_EQ(before.size(), 3u);
  EXPECT_NE(before[0].want, after[0].want);
}

TEST_F(ValidatePhaseTest, gatesAndCertificateWaitForEveryDeclaredMount) {
  const Subject subject(NodeName("n1"));
  const FacetRef home{subject, FacetName("storage.home")};
  const auto waits = [&] {
    std::vector<std::string> waiting;
    std::vector<lifecycle::Goal> goals;
    if (!cluster_.profiles["p"].mounts.empty()) goals.emplace_back().facet = home;
    for (auto& goal : phase_->goals(cluster_, subject, {})) goals.push_back(std::move(goal));
    std::vector<lifecycle::Goal*> all;
    for (auto& goal : goals) all.push_back(&goal);
    lifecycle::resolveStages(all);
    for (const auto& goal : goals)
      if (std::find(goal.needs.begin(), goal.needs.end(), home) != goal.needs.end())
        waiting.push_back(goal.facet.facet.str());
    return waiting;
  };
  EXPECT_TRUE(waits().empty());
  cluster_.file_systems["home"] = {.name = "home", .source = "10.0.0.9:/home", .mount = "/home"};
  cluster_.profiles["p"].mounts = {"home"};
  EXPECT_EQ(waits(), (std::vector<std::string>{"gate.burn-in", "gate.collective", "certificate"}));
  cluster_.profiles["p"].gates.clear();  // without gates the certificate rests on the node itself
  EXPECT_EQ(waits(), std::vector<std::string>{"certificate"});
}

TEST_F(ValidatePhaseTest, gatesWaitForWhatTheFabricDoesOnTheNode) {
  const Subject subject(NodeName("n1"));
  const std::vector<std::string> names{"fabric.roce", "fabric.manager", "fabric.imex",
                                       "fabric.nvlink"};
  std::vector<lifecycle::Goal> goals;
  for (const auto& name : names) goals.emplace_back().facet = {subject, FacetName(name)};
  goals.push_back(phase_->goals(cluster_, subject, {}).at(0));
  std::vector<lifecycle::Goal*> all;
  for (auto& goal : goals) all.push_back(&goal);
  lifecycle::resolveStages(all);
  std::vector<std::string> needs;
  for (const auto& need : goals.back().needs) needs.push_back(need.facet.str());
  EXPECT_EQ(needs, names) << "whatever goals fabric/ has on the node, and no others";
  EXPECT_THAT(goals.back().after, ::testing::IsSupersetOf({Stage::Firmware, Stage::InBandFirmware,
                                                           Stage::Boot, Stage::Drivers}));
}

TEST_F(ValidatePhaseTest, aCertificateIsForWhatIsMounted) {
  FactSet facts;
  facts.put(
      {Subject(NodeName("n1")), FacetName("storage.home"), "mounted:0a", clock_.now(), "", ""});
  EXPECT_EQ(boundFacts(*cluster_.certificates, NodeName("n1"), facts).at("storage.home"),
            "mounted:0a");
}

TEST_F(ValidatePhaseTest, allPassedIsAPass) {
  answerChecks("pass", "pass");
  const auto outcome = act("gate.burn-in");
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(std::holds_alternative<Done>(*outcome));
  EXPECT_EQ(verified("gate.burn-in"),
            "pass:" + validationScopeHash(cluster_, cluster_.nodes[0], {}));
}

class NotAPass : public ValidatePhaseTest, public testing::WithParamInterface<const char*> {};
TEST_P(NotAPass, failsTheGateWithAFinding) {
  answerChecks("pass", GetParam());
  EXPECT_FALSE(act("gate.burn-in"));
  ASSERT_EQ(context_.found.size(), 1u);
  EXPECT_FALSE(context_.found[0].what_to_do.empty());
  EXPECT_TRUE(verified("gate.burn-in").starts_with("fail:"));
}
INSTANTIATE_TEST_SUITE_P(Words, NotAPass,
                         testing::Values("fail", "skipped", "error", "timeout", "no data"));

struct Answers {
  std::vector<std::pair<std::string, std::string>> rows;
  std::string words;
};
class WrongAnswers : public ValidatePhaseTest, public testing::WithParamInterface<Answers> {};
TEST_P(WrongAnswers, failTheGateInTheirOwnWords) {
  agents_.answer(TaskKind::RunChecks, results(GetParam().rows));
  const auto outcome = act("gate.burn-in");
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().text().find(GetParam().words), std::string::npos)
      << outcome.error().str();
  EXPECT_FALSE(context_.found.empty());
  EXPECT_TRUE(verified("gate.burn-in").starts_with("fail:"));
}
INSTANTIATE_TEST_SUITE_P(
    Sets, WrongAnswers,
    testing::Values(Answers{{{"host.gemm", "pass"}}, "host.memory gave no answer"},
                    Answers{{{"host.gemm", "pass"}, {"host.gemm", "pass"}},
                            "host.memory gave no answer; host.gemm answered 2 times"},
                    Answers{{{"host.gemm", "pass"}, {"host.memory", "pass"}, {"host.gemm", "pass"}},
                            "host.gemm answered 2 times"},
                    Answers{{{"host.gemm", "pass"}, {"gpu.ecc", "pass"}},
                            "gpu.ecc answered, but was not requested"},
                    Answers{{{"host.gemm", "pass"}, {"host.memory", "pass"}, {"gpu.ecc", "pass"}},
                            "gpu.ecc answered, but was not requested"},
                    Answers{{}, "host.gemm gave no answer; host.memory gave no answer"}));

TEST_F(ValidatePhaseTest, anAnswerThatIsNoResultFails) {
  agents_.answer(TaskKind::RunChecks, "{}");
  EXPECT_FALSE(act("gate.burn-in"));
}

TEST_F(ValidatePhaseTest, aGateWithoutChecksProvesNothing) {
  cluster_.gates["burn-in"].groups.clear();
  EXPECT_FALSE(act("gate.burn-in"));
}

TEST_F(ValidatePhaseTest, noCertificateWithoutEveryGate) {
  const auto scope_hash = validationScopeHash(cluster_, cluster_.nodes[0], {});
  context_.known.put({Subject(NodeName("n1")), FacetName("gate.burn-in"), "pass:" + scope_hash,
                      clock_.now(), "", ""});
  auto outcome = act("certificate");
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(std::holds_alternative<Blocked>(*outcome));
  context_.known.put({Subject(NodeName("n1")), FacetName("gate.collective"), "pass:" + scope_hash,
                      clock_.now(), "", ""});
  ASSERT_TRUE(store_->putFacts(context_.known.of(Subject(NodeName("n1")))));
  outcome = act("certificate");
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(std::holds_alternative<Done>(*outcome));
  EXPECT_EQ(verified("certificate"), "valid:" + scope_hash);
}

class Expiry : public ValidatePhaseTest {
 protected:
  Expiry() {
    const auto scope_hash = validationScopeHash(cluster_, cluster_.nodes[0], {});
    keep({{kNode, FacetName("os"), "running", clock_.now(), "", ""},
          {kNode, FacetName("gate.burn-in"), "pass:" + scope_hash, clock_.now(), "", "{}"}});
    clock_.advance(kBetween);
    keep({{kNode, FacetName("gate.collective"), "pass:" + scope_hash, clock_.now(), "", "{}"}});
  }
  void keep(const std::vector<Fact>& facts) {
    ASSERT_TRUE(store_->putFacts(facts));
    context_.known = *store_->facts();
  }
  void observe() {
    const auto seen = wait(phase_->observe(kNode));
    ASSERT_TRUE(seen);
    keep(*seen);
  }
  std::vector<std::string> planned() {
    SystemRuns os;
    cluster_.nodes.resize(1);
    std::vector<std::string> ids;
    const auto plan = makePlan(cluster_, context_.known, {}, {&os, phase_.get()});
    for (const auto& action : plan.value().actions) ids.push_back(action.id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  struct SystemRuns final : Phase {
    std::string_view name() const override { return "provision"; }
    std::vector<Goal> goals(const inventory::Cluster&, const Subject& subject,
                            const FactSet&) const override {
      if (subject.isCluster()) return {};
      return {{{subject, FacetName("os")}, "running"}};
    }
    Async<std::vector<Fact>> observe(Subject) override { co_return std::vector<Fact>{}; }
    Async<Outcome> act(Action, ActContext&) override { co_return Outcome(Done{}); }
    Async<std::vector<Fact>> verify(Action) override { co_return std::vector<Fact>{}; }
  };

  static constexpr std::chrono::hours kBetween{24 * 10};
  const Subject kNode{NodeName("n1")};
};

TEST_F(Expiry, aCertificateLivesFromTheOldestPassItRestsOn) {
  const auto outcome = act("certificate");
  ASSERT_TRUE(outcome) << outcome.error().str();
  const auto certificate = *certificates_->find(NodeName("n1"));
  EXPECT_EQ(certificate->issued_at, clock_.now());
  EXPECT_EQ(certificate->expires_at, clock_.now() - kBetween + cluster_.certificates->lifetime);
}

TEST_F(Expiry, anAgedPassIsPlannedAgainAndSaysWhy) {
  ASSERT_TRUE(act("certificate"));
  observe();
  EXPECT_TRUE(planned().empty()) << planned().front();
  clock_.advance(cluster_.certificates->lifetime - kBetween);
  observe();
  EXPECT_EQ(planned(), (std::vector<std::string>{"n1/certificate", "n1/gate.burn-in"}))
      << "the younger gate still counts";
  EXPECT_NE(phase_->goals(cluster_, kNode, context_.known)[0].why.find(
                "older than the lifetime of a certificate"),
            std::string::npos);
  clock_.advance(kBetween);
  observe();
  EXPECT_EQ(planned(),
            (std::vector<std::string>{"n1/certificate", "n1/gate.burn-in", "n1/gate.collective"}));
}

TEST_F(Expiry, nothingIsSignedAgainWithoutAnotherRun) {
  ASSERT_TRUE(act("certificate"));
  clock_.advance(cluster_.certificates->lifetime);  // and the facts of an hour ago still say "pass"
  const auto outcome = act("certificate");
  ASSERT_TRUE(outcome);
  ASSERT_TRUE(std::holds_alternative<Blocked>(*outcome));
  EXPECT_NE(std::get<Blocked>(*outcome).why.find("older than the lifetime of a certificate"),
            std::string::npos);
  EXPECT_FALSE(certificates_->requireValid(NodeName("n1")));
  answerChecks("pass", "pass");
  ASSERT_TRUE(act("gate.burn-in"));
  EXPECT_TRUE(verified("gate.burn-in").starts_with("pass:"));
}

TEST_F(ValidatePhaseTest, aGateThatIsolatesNamesTheCommand) {
  bootWithRdma("n2");
  pairsFailWith("n1");
  ASSERT_FALSE(actToEnd("gate.collective"));
  EXPECT_EQ(context_.found.back().what_to_do.find("isolate"), std::string::npos);
  cluster_.gates["collective"].isolate = true, context_.id = "intent-2";
  ASSERT_FALSE(actToEnd("gate.collective"));
  EXPECT_NE(context_.found.back().what_to_do.find("muster validate isolate"), std::string::npos);
}

TEST_F(ValidatePhaseTest, aRevokedCertificateTakesThePassesBeforeItWithIt) {
  answerChecks("pass", "pass");
  ASSERT_TRUE(act("gate.burn-in"));
  const auto passed = wait(phase_->verify(action("gate.burn-in")));
  ASSERT_TRUE(passed);
  ASSERT_TRUE(store_->putFacts(*passed));
  EXPECT_TRUE(wait(phase_->observe(Subject(NodeName("n1"))))->size() ==
              1);  // only the certificate: the pass is young
  ASSERT_TRUE(certificates_->revoke(NodeName("n1"), "ann", "GPU 3 was replaced"));
  const auto seen = wait(phase_->observe(Subject(NodeName("n1"))));
  ASSERT_EQ(seen->size(), 2u);
  EXPECT_TRUE(seen->at(1).value.starts_with("expired:"));
}

/// What a fleet goes through when a crew has replaced parts: burn-in is long, collective is quick.
class ReplacedParts : public ValidatePhaseTest {
 protected:
  ReplacedParts() {
    cluster_.gates["burn-in"].level = inventory::GateLevel::Long;
    bootWithRdma("n2");
    agents_.answer(TaskKind::RunChecks,
                   [](const NodeName&, const wire::AgentTask& task) -> Result<std::string> {
                     std::vector<std::pair<std::string, std::string>> rows;
                     for (const auto& check : nlohmann::json::parse(task.params).at("checks"))
                       rows.emplace_back(check.at("id").get<std::string>(), "pass");
                     return results(rows);
                   });
    pairsFailWith("");
    see("hw.part.dimm", "A1=S1, A2=S2");
    see("hw.part.nvme", "N1, N2");
  }
  void see(const std::string& facet, const std::string& value) {
    const Fact fact{Subject(kNode), FacetName(facet), value, clock_.now(), "test", ""};
    ASSERT_TRUE(store_->putFacts({fact}));
    context_.known.put(fact);
  }
  /// As the engine does it: act, verify, keep.
  void pass(const std::string& facet) {
    context_.id = facet + toString(clock_.now());
    const auto outcome = actToEnd(facet);
    ASSERT_TRUE(outcome) << outcome.error().str();
    ASSERT_TRUE(std::holds_alternative<Done>(*outcome))
        << (std::holds_alternative<Blocked>(*outcome) ? std::get<Blocked>(*outcome).why : "waits");
    keep(wait(phase_->verify(action(facet))));
  }
  void keep(const Result<std::vector<Fact>>& facts) {
    ASSERT_TRUE(facts);
    ASSERT_TRUE(store_->putFacts(*facts));
    for (const auto& fact : *facts) context_.known.put(fact);
  }
  void passAll() {
    for (const char* facet : {"gate.burn-in", "gate.collective", "certificate"}) pass(facet);
    clock_.advance(std::chrono::seconds(60));
  }
  /// What is to be done next, of what was observed anew.
  std::vector<std::string> open() {
    keep(wait(phase_->observe(Subject(kNode))));
    std::vector<std::string> out;
    for (const auto& goal : phase_->goals(cluster_, Subject(kNode), context_.known))
      if (context_.known.value(Subject(kNode), goal.facet.facet) != goal.want)
        out.push_back(goal.facet.facet.str());
    return out;
  }

  const NodeName kNode{"n1"};
};

TEST_F(ReplacedParts, aDiskAsksForTheQuickGateOnlyAndMemoryForAll) {
  using Facets = std::vector<std::string>;
  passAll();
  EXPECT_EQ(open(), Facets{});
  see("hw.part.nvme", "N1, N9");
  EXPECT_EQ(open(), (Facets{"gate.collective", "certificate"}));
  pass("gate.collective"), pass("certificate");
  EXPECT_EQ(open(), Facets{});
  see("hw.part.dimm", "A1=S1, A2=S9");
  EXPECT_EQ(open(), (Facets{"gate.burn-in", "gate.collective", "certificate"}));
  passAll();
  EXPECT_EQ(open(), Facets{});
}

TEST_F(ReplacedParts, withoutAQuickGateEveryGateIsRunAgain) {
  cluster_.gates["collective"].level = inventory::GateLevel::Medium;
  passAll();
  see("hw.part.nvme", "N1, N9");
  EXPECT_EQ(open(), (std::vector<std::string>{"gate.burn-in", "gate.collective", "certificate"}));
}

TEST_F(ReplacedParts, noCertificateIsSignedBetweenTheChangeAndTheGates) {
  passAll();
  see("hw.part.dimm", "A1=S1");
  // The plan is older than the change: nothing has observed it yet.
  const auto outcome = act("certificate");
  ASSERT_TRUE(outcome) << outcome.error().str();
  ASSERT_TRUE(std::holds_alternative<Blocked>(*outcome));
  EXPECT_NE(std::get<Blocked>(*outcome).why.find("parts (dimm)"), std::string::npos);
}

TEST_F(ReplacedParts, aKindThatNoGateSawIsNotBound) {
  pass("gate.burn-in"), pass("gate.collective");
  see("hw.part.hca", "MT1");
  pass("certificate");
  EXPECT_FALSE((*certificates_->find(kNode))->bound.contains("hw.part.hca"))
      << "it would be signed again without a gate";
  EXPECT_TRUE((*certificates_->find(kNode))->bound.contains("hw.part.dimm"));
  see("hw.part.hca", "MT2");
  EXPECT_EQ(open(), std::vector<std::string>{});
}

TEST_F(ReplacedParts, passesFromBeforePartsWereWrittenDownHold) {
  pass("gate.burn-in"), pass("gate.collective");
  for (const char* facet : {"gate-parts.burn-in", "gate-parts.collective"}) {
    ASSERT_TRUE(store_->forgetFacts(Subject(kNode), {FacetName(facet)}));
    context_.known.forget(Subject(kNode), FacetName(facet));
  }
  pass("certificate");
  see("hw.part.dimm", "A1=S1, A2=S9");
  EXPECT_EQ(open(), std::vector<std::string>{}) << "an upgrade drains no fleet";
}

TEST_F(ValidatePhaseTest, anOverrideStandsForTheGatesUntilItIsVoid) {
  const Subject subject(NodeName("n1"));
  const auto want = phase_->goals(cluster_, subject, {}).back().want;
  FactSet facts;
  facts.put({subject, FacetName("certificate"), want, clock_.now(), "",
             R"({"override":{"by":"ann","reason":"spare"}})"});
  EXPECT_EQ(phase_->goals(cluster_, subject, facts).size(), 1u);  // the certificate itself
  facts.put({subject, FacetName("certificate"), want, clock_.now(), "", "{}"});
  EXPECT_EQ(phase_->goals(cluster_, subject, facts).size(), 3u);
  facts.put({subject, FacetName("certificate"), "void:1", clock_.now(), "",
             R"({"override":{"by":"ann","reason":"spare"}})"});
  EXPECT_EQ(phase_->goals(cluster_, subject, facts).size(), 3u);
}

TEST_F(ValidatePhaseTest, everyGateLeavesItsNumbersAndAnswersBehind) {
  wire::CheckResult gemm, memory;
  gemm.id = "host.gemm", gemm.status = wire::CheckStatus::Pass,
  gemm.values = {{"gemm_gflops", 812.5}};
  memory.id = "host.memory", memory.status = wire::CheckStatus::Fail,
  memory.values = {{"tested_gib", 4}};
  agents_.answer(TaskKind::RunChecks, wire::toJson(std::vector{gemm, memory}));
  std::vector<GateRecord> kept;
  phase_ = makeValidatePhase(cluster_, agents_, *certificates_, *store_, clock_, {},
                             [&kept](GateRecord record) { kept.push_back(std::move(record)); });
  EXPECT_FALSE(act("gate.burn-in"));
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].measured.numbers.at("host.gemm/gemm_gflops"), 812.5);
  EXPECT_EQ(kept[0].measured.origin, "gate.burn-in");
  EXPECT_EQ(kept[0].failures.size(), 1u);
  EXPECT_NE(kept[0].results.find("host.memory"), std::string::npos);
}

TEST_F(ValidatePhaseTest, devicesOfANodeAreDevicesOfOneMetric) {
  wire::CheckResult burn;
  burn.id = "gpu.burn";
  burn.values = {{"gpu3.memory_copy_gbytes_per_s", 1.0},
                 {"rank12.busbw", 2.0},
                 {"bf16.peak", 3.0},
                 {"plain", 4.0},
                 {"7.x", 5.0}};
  const std::map<std::string, double> expected{{"gpu.burn/memory_copy_gbytes_per_s@gpu3", 1},
                                               {"gpu.burn/busbw@rank12", 2},
                                               {"gpu.burn/bf16.peak", 3},
                                               {"gpu.burn/plain", 4},
                                               {"gpu.burn/7.x", 5}};
  EXPECT_EQ(numbersOf({burn}), expected);
  wire::CheckResult others;
  others.id = "x";
  others.values = {{"mlx5_2.rdma_write_gbits", 390.0},
                   {"nvme0n1.read_mbytes_per_s", 7000.0},
                   {"nvme3.used_percent", 3.0},
                   {"mlx5_.odd", 1.0}};
  const std::map<std::string, double> rails{{"x/rdma_write_gbits@mlx5_2", 390},
                                            {"x/read_mbytes_per_s@nvme0n1", 7000},
                                            {"x/used_percent@nvme3", 3},
                                            {"x/mlx5_.odd", 1}};
  EXPECT_EQ(numbersOf({others}), rails);
}

TEST_F(ValidatePhaseTest, loadWaitsForThePowerOfItsRack) {
  for (auto& node : cluster_.nodes) node.rack = "A";
  cluster_.profiles["p"].power_watts = 10'000;
  cluster_.racks["A"] = {.name = "A", .power_watts = 15'000};
  phase_ = makeValidatePhase(cluster_, agents_, *certificates_, *store_, clock_, {});
  agents_.boot(NodeName("n2"), wire::Mode::Disk);
  agents_.hold(TaskKind::RunChecks);
  asio::io_context io;
  std::optional<Result<Outcome>> first;
  asio::co_spawn(io, phase_->act(action("gate.burn-in"), context_),
                 [&](std::exception_ptr, Result<Outcome> outcome) { first = std::move(outcome); });
  io.poll();
  ASSERT_FALSE(first) << "its checks run";
  clock_.advance(PowerBudget::kStagger);
  FakeContext second;
  second.id = "intent-2";
  Action other{.id = "n2/gate.burn-in",
               .facet = {Subject(NodeName("n2")), FacetName("gate.burn-in")},
               .phase = "validate"};
  const auto waiting = wait(phase_->act(other, second));
  ASSERT_TRUE(waiting && std::holds_alternative<Again>(*waiting));
  EXPECT_NE(std::get<Again>(*waiting).waiting_for.find("power of rack A: 10.0 of 15.0 kW"),
            std::string::npos)
      << std::get<Again>(*waiting).waiting_for;
  EXPECT_EQ(agents_.submitted(NodeName("n2"), TaskKind::RunChecks).size(), 0u);
  agents_.finish("intent-1", results({{"host.gemm", "pass"}, {"host.memory", "pass"}}));
  io.poll();
  ASSERT_TRUE(first && *first);
  agents_.answer(TaskKind::RunChecks, results({{"host.gemm", "pass"}, {"host.memory", "pass"}}));
  asio::io_context again;
  asio::co_spawn(again, phase_->act(other, second), [](std::exception_ptr, Result<Outcome>) {});
  again.poll();
  EXPECT_EQ(agents_.submitted(NodeName("n2"), TaskKind::RunChecks).size(), 1u);
}

}  // namespace
}  // namespace muster::validate
