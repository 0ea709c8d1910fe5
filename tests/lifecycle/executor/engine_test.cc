// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/cluster.h"
#include "inventory/model/limits.h"
#include "lifecycle/model/consoles.h"
#include "tests/lifecycle/engine_fixture.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace muster::lifecycle {
namespace {

using test::factOf;
using test::goalOf;
using test::Rack;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

TEST_F(EngineTest, takesTwoNodesFromPowerOffToThePool) {
  build({"gpu001", "gpu002"});
  auto report = apply();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.done, 23);
  for (const std::string node : {"gpu001", "gpu002"}) {
    EXPECT_EQ(world().value(node + "/pool"), "in");
    EXPECT_EQ(world().value(node + "/gate.burn-in"),
              "pass:serial-of-" + node + "+noble@1+570+2.1.0");
  }
  for (const auto& [facet, count] : world().effect_counts) EXPECT_EQ(count, 1) << facet.str();
  EXPECT_THAT(*store_.openIntents(), IsEmpty());
  EXPECT_TRUE(plan().empty());
}

TEST_F(EngineTest, aValueThatIsOnlyLearnedDuringTheRunIsWhatTheActionGoesFor) {
  build({"gpu001"});
  auto made = plan();
  for (const auto& action : made.actions)
    if (action.id == "gpu001/gate.burn-in") {
      EXPECT_EQ(action.to, "pass:unknown+noble@1+570+2.1.0");
    }
  EXPECT_TRUE(apply(made).ok());
  EXPECT_EQ(store_.facts()->value(Subject(NodeName("gpu001")), FacetName("gate.burn-in")),
            "pass:serial-of-gpu001+noble@1+570+2.1.0");
  for (const auto& intent : history("gpu001")) {
    if (intent.action.id == "gpu001/gate.burn-in") {
      EXPECT_THAT(intent.action.to, HasSubstr("serial-of-gpu001"));
    }
  }
  EXPECT_THAT(shown(EventKind::Note),
              Contains(HasSubstr("gpu001/gate.burn-in target is 'pass:serial-of-gpu001")));
}

TEST_F(EngineTest, aPlanOfAnotherInventoryIsRefused) {
  build({"gpu001"});
  auto made = plan();
  rack_->cluster.digest = "inventory-2";
  auto e = engine();
  auto report = test::runInVirtualTime(clock_, e.apply(made));
  ASSERT_TRUE(report);
  ASSERT_FALSE(*report);
  EXPECT_EQ(report->error().code(), ErrorCode::Conflict);
  EXPECT_THAT(world().log, IsEmpty());
}

TEST_F(EngineTest, aDriverChangeDoesJustThat) {
  arrive({"gpu001", "gpu002"});
  rack_->driver = "575";
  EXPECT_TRUE(apply().ok());
  std::vector<std::string> first;
  for (const auto& line : world().log)
    if (line.starts_with("gpu001"))
      first.push_back(line.substr(0, line.find(" →")) + line.substr(line.find(" → ") + 4, 8));
  EXPECT_THAT(first, ElementsAre("gpu001/pool drained", "gpu001/driver.nvidia 575",
                                 "gpu001/gate.burn-in pass:se", "gpu001/certificate valid:s",
                                 "gpu001/pool in"));
  EXPECT_TRUE(plan().empty());
}

TEST_F(EngineTest, anErrorThatCanBeRetriedIsRetriedWithGrowingPauses) {
  build({"gpu001"});
  world().behave("gpu001/enrolled").fail_first = kMaxActionRetries;
  const auto before = clock_.steady();
  EXPECT_TRUE(apply().ok());
  EXPECT_GE(clock_.steady() - before, 2s + 4s + 8s);
  EXPECT_EQ(shown(EventKind::ActionWaiting).size() >= 3, true);
  EXPECT_THAT(findings("gpu001"), IsEmpty());
}

TEST_F(EngineTest, retriesAreBounded) {
  build({"gpu001", "gpu002"});
  world().behave("gpu001/enrolled").fail_first = kMaxActionRetries + 1;
  auto report = apply();
  EXPECT_EQ(report.failed, 1);
  EXPECT_THAT(findings("gpu001"), ElementsAre("enrolled: the other side does not answer"));
  EXPECT_EQ(world().value("gpu001/image"), "");
  EXPECT_EQ(world().value("gpu002/pool"), "in") << "one node's failure stopped another";
  EXPECT_EQ(report.skipped, 10);
  EXPECT_THAT(report.problems,
              Contains("gpu001/image: not started, because gpu001/enrolled failed"));
}

TEST_F(EngineTest, anErrorThatARetryCannotHelpFailsAtOnce) {
  build({"gpu001"});
  auto& behaviour = world().behave("gpu001/firmware.BMC");
  behaviour.fail_first = 1;
  behaviour.error = Error(ErrorCode::Corrupt, "the file's SHA-256 is not the declared one");
  EXPECT_EQ(apply().failed, 1);
  EXPECT_THAT(shown(EventKind::ActionFailed), ElementsAre(HasSubstr("SHA-256")));
  EXPECT_THAT(findings("gpu001"), ElementsAre(HasSubstr("SHA-256")));
}

TEST_F(EngineTest, aFindingIsOverWhenTheFacetIsMet) {
  build({"gpu001"});
  auto& behaviour = world().behave("gpu001/enrolled");
  behaviour.fail_first = 1;
  behaviour.error = Error(ErrorCode::Denied, "wrong password");
  EXPECT_EQ(apply().failed, 1);
  behaviour.fail_first = 1;
  EXPECT_EQ(apply().failed, 1);
  EXPECT_EQ(findings("gpu001").size(), 1u) << "the second attempt's finding replaces the first's";
  EXPECT_TRUE(apply().ok());
  EXPECT_THAT(findings("gpu001"), IsEmpty());
}

TEST_F(EngineTest, aFindingIsOverWhenTheFacetIsSeenToBeMet) {
  build({"gpu001"});
  world().behave("gpu001/enrolled").blocked = "somebody must plug it in";
  EXPECT_EQ(apply().blocked, 1);
  EXPECT_EQ(findings("gpu001").size(), 1u);
  clock_.advance(1min);
  world().set("gpu001/enrolled", "yes");
  observe();
  EXPECT_THAT(findings("gpu001"), IsEmpty());
}

TEST_F(EngineTest, pastItsDeadlineAnActionHasFailedWithExpectedObservedAndLastWord) {
  build({"gpu001"});
  world().set("gpu001/firmware.BMC", "1.0.0");
  world().behave("gpu001/firmware.BMC").polls = 1'000'000;
  const auto before = clock_.steady();
  auto report = apply();
  EXPECT_EQ(report.failed, 1);
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(clock_.steady() - before), 600s);
  const Subject subject{NodeName("gpu001")};
  const auto finding = store_.findings(&subject)->front();
  EXPECT_THAT(
      finding.text,
      HasSubstr(
          "did not become '2.1.0' within 600 s; the last evidence was 'the operation to finish'"));
  const auto evidence = nlohmann::json::parse(finding.evidence);
  EXPECT_EQ(evidence["expected"], "2.1.0");
  EXPECT_EQ(evidence["observed"], "1.0.0");
  EXPECT_EQ(evidence["last_evidence"], "the operation to finish");
  EXPECT_THAT(evidence["operation"].get<std::string>(), HasSubstr("/tasks/"));
  EXPECT_THAT(finding.what_to_do, HasSubstr("muster apply"));
}

TEST_F(EngineTest, whatTheConsoleSaidLastIsInTheFindingOfAnActionThatFailed) {
  build({"gpu001"});
  console_ = [](const Subject& subject) {
    return std::vector<std::string>{subject.str() + " login:", "Kernel panic - not syncing"};
  };
  world().set("gpu001/firmware.BMC", "1.0.0");
  world().behave("gpu001/firmware.BMC").polls = 1'000'000;
  EXPECT_EQ(apply().failed, 1);
  const Subject subject{NodeName("gpu001")};
  const auto evidence = nlohmann::json::parse(store_.findings(&subject)->front().evidence);
  EXPECT_EQ(evidence[std::string(kConsoleEvidence)],
            (nlohmann::json{"gpu001 login:", "Kernel panic - not syncing"}));
}

TEST_F(EngineTest, linesOfABootBeforeTheActionAreMarkedInItsFinding) {
  const auto consoleAfter = [this](const std::vector<std::string>& said) {
    console_ = [said](const Subject&) { return said; };
    world().set("gpu001/firmware.BMC", "1.0.0");
    world().behave("gpu001/firmware.BMC").polls = 1'000'000;
    EXPECT_EQ(apply().failed, 1);
    const Subject subject{NodeName("gpu001")};
    return nlohmann::json::parse(
               store_.findings(&subject)->front().evidence)[std::string(kConsoleEvidence)]
        .get<std::vector<std::string>>();
  };
  build({"gpu001"});
  const auto old = consoleBootLine(7, clock_.now() - 24h, "power on");
  const auto marked = consoleAfter({old, "gpu001 login:"});
  ASSERT_EQ(marked.size(), 3u);
  EXPECT_EQ(marked[0], old);
  EXPECT_THAT(marked[1], HasSubstr("that was before this action"));
  EXPECT_EQ(marked[2], "gpu001 login:");
  const std::vector<std::string> own = {consoleBootLine(8, clock_.now() + 1s, "restart"),
                                        "Kernel panic"};
  EXPECT_EQ(consoleAfter(own), own);
}

TEST_F(EngineTest, aPhaseThatNeverAnswersIsCutOffAtTheDeadline) {
  build({"gpu001"});
  world().behave("gpu001/firmware.BMC").hangs = true;
  auto report = apply();
  EXPECT_EQ(report.failed, 1);
  EXPECT_THAT(report.problems.front(), HasSubstr("within 600 s"));
}

TEST_F(EngineTest, aPhaseThatThrowsFailsItsActionOnly) {
  build({"gpu001", "gpu002"});
  world().behave("gpu001/enrolled").throws = true;
  auto report = apply();
  EXPECT_EQ(report.failed, 1);
  EXPECT_THAT(report.problems.front(), HasSubstr("defect in muster"));
  EXPECT_EQ(world().value("gpu002/pool"), "in");
}

TEST_F(EngineTest, doneIsNotBelievedWhenTheFactSaysOtherwise) {
  build({"gpu001"});
  world().behave("gpu001/firmware.BIOS").becomes = "1.4.1";
  EXPECT_EQ(apply().failed, 1);
  EXPECT_THAT(
      findings("gpu001"),
      ElementsAre(HasSubstr("firmware.BIOS was set to '1.4.2', but is '1.4.1' when read again")));
  EXPECT_EQ(world().value("gpu001/image"), "");
}

TEST_F(EngineTest, doneIsNotBelievedWhenNothingCanBeRead) {
  build({"gpu001"});
  world().behave("gpu001/firmware.BIOS").unreadable = true;
  EXPECT_EQ(apply().failed, 1);
  EXPECT_THAT(findings("gpu001"),
              ElementsAre(HasSubstr("reading it again gave no value, which counts as failed")));
}

TEST_F(EngineTest, verificationIsTriedAgainWhenItCannotReadNow) {
  build({"gpu001"});
  world().behave("gpu001/firmware.BIOS").verify_errors = 2;
  EXPECT_TRUE(apply().ok());
}

TEST_F(EngineTest, aBlockedActionStopsWhatNeedsItAndSaysWhy) {
  build({"gpu001"});
  world().behave("gpu001/fabric.ports").blocked = "the cable of mlx5_0 is miswired";
  auto report = apply();
  EXPECT_EQ(report.blocked, 1);
  EXPECT_EQ(report.skipped, 3);
  EXPECT_EQ(world().value("gpu001/pool"), "out");
  EXPECT_THAT(findings("gpu001"), ElementsAre("fabric.ports: the cable of mlx5_0 is miswired"));
  EXPECT_THAT(*store_.openIntents(), IsEmpty());
}

TEST_F(EngineTest, aNodeWaitsForTheClusterAndNotTheOtherWayRound) {
  build({"gpu001", "gpu002"});
  rack_->world.behave("@cluster/fabric.sm").polls = 500;
  EXPECT_TRUE(apply().ok());
  EXPECT_THAT(shown(EventKind::ActionWaiting),
              Contains("gpu001/fabric.ports waits for @cluster/fabric.sm"));
}

TEST_F(EngineTest, aFailureOfTheClusterKeepsNodesOutOfThePool) {
  build({"gpu001", "gpu002"});
  auto& behaviour = world().behave("@cluster/fabric.sm");
  behaviour.fail_first = 1;
  behaviour.error = Error(ErrorCode::Internal, "opensm died");
  auto report = apply();
  EXPECT_EQ(report.failed, 1);
  EXPECT_THAT(report.problems,
              Contains("gpu002/fabric.ports: not started, because @cluster/fabric.sm is not done"));
  EXPECT_EQ(world().value("gpu001/driver.nvidia"), "570") << "what does not need it goes on";
  EXPECT_EQ(world().value("gpu001/pool"), "out");
}

TEST_F(EngineTest, noMoreSubjectsThanAllowedWorkAtOnceAndAllArrive) {
  subjects_at_once_ = 64;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < subjects_at_once_ + 20; ++i) names.push_back("n" + std::to_string(i));
  build(names);
  rack_->world.behave("@cluster/fabric.sm").polls =
      100;  // everybody waits for it and gives the place back
  for (const auto& name : names) world().behave(name + "/enrolled").polls = 3;
  EXPECT_TRUE(apply().ok());
  std::set<std::string> busy;
  std::size_t most = 0;
  for (const auto& event : shown_) {
    if (!event.action_id.ends_with("/enrolled")) continue;
    if (event.kind == EventKind::ActionStarted) busy.insert(event.action_id);
    if (event.kind == EventKind::ActionDone) busy.erase(event.action_id);
    most = std::max(most, busy.size());
  }
  EXPECT_LE(most, subjects_at_once_);
  EXPECT_GT(most, subjects_at_once_ / 2);
}

Task<std::vector<std::string>> beside(Engine& engine, Plan one, Plan other) {
  using boost::asio::experimental::awaitable_operators::operator&&;
  const auto [first, second] =
      co_await (engine.apply(std::move(one)) && engine.apply(std::move(other)));
  std::vector<std::string> problems;
  for (const auto* report : {&first, &second}) {
    if (!*report) problems.push_back(report->error().str());
    if (*report)
      problems.insert(problems.end(), (*report)->problems.begin(), (*report)->problems.end());
  }
  co_return problems;
}

TEST_F(EngineTest, noMoreMachinesRestartOrAreWrittenAtOnceThanTheInventoryAllows) {
  std::vector<std::string> names;
  for (int i = 1; i <= 12; ++i) names.push_back(fmt::format("gpu{:03}", i));
  build(names);
  rack_->cluster.limits->restarts = 3;
  rack_->cluster.limits->imagings = 2;
  for (const auto& name : names)
    for (const auto& goal : rack_->provision.goals(rack_->cluster, Subject(NodeName(name)), {}))
      world().behaviours[goal.facet].polls = 4;
  const auto made = plan();
  std::map<std::string, Disruption> disruption;
  for (const auto& action : made.actions) disruption[action.id] = action.disruption;
  // A rollout's nodes have a run each, of their own subject only.
  auto first = made, second = made;
  for (auto* half : {&first, &second}) {
    std::erase_if(half->actions, [&](const Action& action) {
      return action.facet.subject.isCluster() ||
             (action.facet.subject.str() <= "gpu006") != (half == &first);
    });
    for (auto& action : half->actions) {
      half->policy.only.insert(action.facet.subject);
      std::erase_if(action.needs, [half](const std::string& need) {
        return std::none_of(half->actions.begin(), half->actions.end(),
                            [&need](const Action& other) { return other.id == need; });
      });
    }
  }
  auto e = engine();
  const auto ends = test::runInVirtualTime(clock_, beside(e, std::move(first), std::move(second)));
  ASSERT_TRUE(ends);
  EXPECT_THAT(*ends, IsEmpty());
  std::map<Disruption, int> now, most;
  for (const auto& event : shown_) {
    const auto kind =
        disruption.contains(event.action_id) ? disruption[event.action_id] : Disruption::None;
    if (event.kind == EventKind::ActionStarted) most[kind] = std::max(most[kind], ++now[kind]);
    if (event.kind == EventKind::ActionDone) --now[kind];
  }
  EXPECT_EQ(most[Disruption::Reset], 3);
  EXPECT_EQ(most[Disruption::Wipe], 2);
}

TEST_F(EngineTest, aPlanThatPromisedAPermissionWhichIsGoneIsBlockedAtTheDisk) {
  arrive({"gpu001"});
  rack_->image = "noble@2";
  auto made = makePlan(rack_->cluster, observe(), {{}, {NodeName("gpu001")}}, rack_->phases());
  ASSERT_TRUE(made);
  auto report = apply(*made);
  EXPECT_EQ(report.blocked, 1);
  EXPECT_THAT(
      report.problems,
      Contains(HasSubstr(
          "gpu001/image: gpu001 would be wiped, but its disk holds 'image'; if that is meant")));
  EXPECT_EQ(world().effects("gpu001/image"), 0);
}

TEST_F(EngineTest, aDiskThatIsFoundToHoldASystemDuringTheRunIsNotWiped) {
  build({"gpu001"});
  world().behave("gpu001/inspected").also["disk.system"] = "Debian 11";
  auto report = apply();
  EXPECT_EQ(report.blocked, 1);
  EXPECT_THAT(report.problems, Contains(HasSubstr("its disk holds 'Debian 11'")));
  EXPECT_EQ(world().effects("gpu001/image"), 0);
}

TEST_F(EngineTest, aDiskThatNobodyLookedAtIsNotWiped) {
  build({"gpu001"});
  world().behave("gpu001/inspected").also.erase("disk.system");
  auto report = apply();
  EXPECT_THAT(report.problems,
              Contains(HasSubstr("it is not known whether its disk holds a system")));
  EXPECT_EQ(world().effects("gpu001/image"), 0);
}

TEST_F(EngineTest, aFailedActionLeavesWhatIsTrueNow) {
  arrive({"gpu001"});
  rack_->driver = "575";
  world().set("gpu001/gate.burn-in", "fail:GPU 1");
  auto& behaviour = world().behave("gpu001/gate.burn-in");
  behaviour.fail_first = 1;
  behaviour.error = Error(ErrorCode::Conflict, "GPU 1 has remapped rows");
  EXPECT_EQ(apply().failed, 1);
  EXPECT_EQ(store_.facts()->value(Subject(NodeName("gpu001")), FacetName("gate.burn-in")),
            "fail:GPU 1");
  EXPECT_THAT(findings("gpu001"), ElementsAre("gate.burn-in: GPU 1 has remapped rows"));
}

TEST_F(EngineTest, aPhaseThatThrowsWhileItLooksStopsNobody) {
  build({"gpu001"});
  rack_->firmware.observe_throws = true;
  observe();
  EXPECT_THAT(shown(EventKind::Note),
              Contains(HasSubstr("threw 'broken'; this is a defect in muster")));
}

TEST_F(EngineTest, progressThatSaysTheSameIsStoredSeldomAndShownAlways) {
  build({"gpu001"});
  auto& behaviour = world().behave("gpu001/image");
  behaviour.polls = 100;
  behaviour.poll_every = 100ms;
  EXPECT_TRUE(apply().ok());
  std::size_t stored = 0, seen = 0;
  const auto kept = *store_.events(0, 100'000, nullptr);
  for (const auto& event : kept)
    stored += event.action_id == "gpu001/image" && event.kind == EventKind::ActionProgress;
  for (const auto& event : shown_)
    seen += event.action_id == "gpu001/image" && event.kind == EventKind::ActionProgress;
  EXPECT_EQ(seen, 100u);
  EXPECT_EQ(stored, 1u);
}

TEST_F(EngineTest, anOpenIntentThatNobodyWantsIsClosedAfterALook) {
  arrive({"gpu001", "gpu002"});
  auto intent = [](const std::string& facet, const std::string& to) {
    Intent out;
    out.id = facet;
    out.action.id = facet;
    out.action.facet = test::FakeWorld::ref(facet);
    out.action.phase = "provision";
    out.action.to = to;
    return out;
  };
  ASSERT_TRUE(store_.openIntent(intent("gpu001/os", "running")));
  ASSERT_TRUE(store_.openIntent(intent("gpu002/driver.nvidia", "565")));
  ASSERT_TRUE(store_.recordOperation("gpu002/driver.nvidia", "task-7"));
  EXPECT_TRUE(apply().ok());
  EXPECT_EQ(store_.facts()->value(Subject(NodeName("gpu002")), FacetName("left.driver.nvidia")),
            "565|task-7");
  EXPECT_FALSE(store_.facts()->value(Subject(NodeName("gpu001")), FacetName("left.os")))
      << "it was finished";
  EXPECT_THAT(*store_.openIntents(), IsEmpty());
  EXPECT_EQ(store_.intentsOf(Subject(NodeName("gpu001")), 1)->front().state, IntentState::Done);
  EXPECT_EQ(store_.intentsOf(Subject(NodeName("gpu002")), 1)->front().state,
            IntentState::Abandoned);
  EXPECT_THAT(world().log, IsEmpty());
}

TEST_F(EngineTest, whatAPhaseDrivesOnIsDrivenAlthoughItsFacetIsMet) {
  build({"gpu001"});
  ASSERT_TRUE(apply().ok());
  for (const bool drives_on : {false, true}) {
    SCOPED_TRACE(drives_on);
    rack_->firmware.drives_on = drives_on;
    Intent intent;
    intent.id = drives_on ? "driven" : "closed";
    intent.inventory_digest = rack_->cluster.digest;
    intent.action.id = "gpu001/firmware.BMC";
    intent.action.facet = test::FakeWorld::ref(intent.action.id);
    intent.action.phase = "firmware";
    intent.action.to = world().value(intent.action.id);
    ASSERT_TRUE(store_.openIntent(intent));
    ASSERT_TRUE(store_.recordOperation(intent.id, "wave"));
    world().operations["wave"] = {intent.action.facet, intent.action.to, 3,
                                  false};  // it has more to do than its facet shows
    const auto policy = policyOf(store_, {});
    ASSERT_TRUE(policy);
    const auto made = makePlan(rack_->cluster, observe(), *policy, rack_->phases());
    ASSERT_TRUE(made);
    const auto& actions = made->actions;
    EXPECT_EQ(std::any_of(actions.begin(), actions.end(),
                          [](const Action& action) { return action.id == "gpu001/firmware.BMC"; }),
              drives_on);
    EXPECT_TRUE(apply(*made).ok());
    EXPECT_EQ(world().operations.at("wave").finished, drives_on);
    EXPECT_THAT(*store_.openIntents(), IsEmpty());
    world().operations.erase("wave");
  }
}

TEST_F(EngineTest, intentsOfNodesThatAPlanLeavesOutAreNotTouched) {
  build({"gpu001", "gpu002"});
  Intent intent;
  intent.id = "i";
  intent.action.id = "gpu002/os";
  intent.action.facet = test::FakeWorld::ref("gpu002/os");
  intent.action.phase = "provision";
  intent.action.to = "running";
  ASSERT_TRUE(store_.openIntent(intent));
  Policy policy;
  policy.only = {Subject(NodeName("gpu001"))};
  auto made = makePlan(rack_->cluster, observe(), policy, rack_->phases());
  EXPECT_TRUE(apply(*made).ok());
  EXPECT_EQ(store_.openIntents()->size(), 1u);
}

TEST_F(EngineTest, anInterruptedUpdateToAVersionThatIsNotWantedAnyMoreIsAbandoned) {
  build({"gpu001"});
  Intent intent;
  intent.id = "old";
  intent.inventory_digest = "inventory-0";
  intent.action.id = "gpu001/firmware.BMC";
  intent.action.facet = test::FakeWorld::ref(intent.action.id);
  intent.action.phase = "firmware";
  intent.action.to = "2.0.9";
  ASSERT_TRUE(store_.openIntent(intent));
  ASSERT_TRUE(store_.recordOperation("old", "+BIOS=1 next"));
  EXPECT_TRUE(apply().ok());
  EXPECT_EQ(store_.facts()->value(Subject(NodeName("gpu001")), FacetName("left.firmware.BMC")),
            "2.0.9|+BIOS=1 next")
      << "what it may have left";
  const auto oldest = history("gpu001").back();
  EXPECT_EQ(oldest.id, "old");
  EXPECT_EQ(oldest.state, IntentState::Abandoned);
  EXPECT_THAT(oldest.outcome, HasSubstr("now wants '2.1.0' instead of '2.0.9'"));
  EXPECT_EQ(world().value("gpu001/firmware.BMC"), "2.1.0");
}

TEST_F(EngineTest, anActionThatNobodyWantsAnyMoreEndsWithItsFindings) {
  arrive({"gpu001"});
  Intent intent;
  intent.id = "old";
  intent.inventory_digest = "inventory-0";
  intent.action.id = "gpu001/driver.gdrcopy";
  intent.action.facet = test::FakeWorld::ref(intent.action.id);
  intent.action.phase = "provision";
  intent.action.to = "2.5";
  ASSERT_TRUE(store_.openIntent(intent));
  for (const auto* facet : {"gpu001/driver.gdrcopy", "gpu001/health.fan"})
    ASSERT_TRUE(store_.addFinding(
        {test::FakeWorld::ref(facet), Severity::Error, "it is wrong", "", "", clock_.now()}));
  EXPECT_TRUE(apply().ok());
  EXPECT_EQ(history("gpu001").front().state, IntentState::Abandoned);
  EXPECT_THAT(findings("gpu001"), ElementsAre("health.fan: it is wrong"));
}

TEST_F(EngineTest, observingStoresWhatIsSeenAndTellsWhatChanged) {
  build({"gpu001"});
  world().set("gpu001/firmware.BMC", "1.0.0");
  observe();
  EXPECT_EQ(store_.facts()->value(Subject(NodeName("gpu001")), FacetName("firmware.BMC")), "1.0.0");
  world().set("gpu001/firmware.BMC", "1.0.1");
  world().behave("gpu001/pool").unreadable = true;
  shown_.clear();
  observe();
  EXPECT_THAT(shown(EventKind::Observed), ElementsAre(" firmware.BMC '1.0.0' → '1.0.1'"));
  EXPECT_EQ(store_.facts()->value(Subject(NodeName("gpu001")), FacetName("pool")), "out")
      << "what cannot be read now keeps its older fact";
}

}  // namespace
}  // namespace muster::lifecycle
