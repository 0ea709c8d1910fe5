// SPDX-License-Identifier: Apache-2.0
// Erasing as the controller sees it: what was asked for, the agent's task, the report that is kept.
#include "provision/storage/erase.h"

#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "provision/facets.h"
#include "provision/provision.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/fakes/fake_netboot.h"
#include "tests/fakes/memory_store.h"
#include "tests/lifecycle/crash_store.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>

namespace muster::provision {
namespace {

using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::Subject;
using ::testing::HasSubstr;

constexpr const char* kWhole =
    R"json({"node_serial":"SN-1","complete":true,"left":[],"disks":[{"disk":"/dev/nvme0n1 (serial A, 3.6 TiB)","serial":"A",
  "method":"nvme-format-crypto","level":"purge","tried":[],"places_checked":514,"seconds":4.2,"fault":""}]})json";
constexpr const char* kPart =
    R"json({"node_serial":"SN-1","complete":false,"left":["/dev/sdc (serial C, 1.0 GiB)"],"disks":[
  {"disk":"/dev/sda (serial A, 1.0 GiB)","serial":"A","method":"overwrite","level":"clear","tried":["secure-discard: not supported"],"places_checked":514,"seconds":9,"fault":""},
  {"disk":"/dev/sdb (serial B, 1.0 GiB)","serial":"B","method":"","level":"","tried":[],"places_checked":0,"seconds":2,"fault":"cannot write at byte 4096: Input/output error"}]})json";

class EraseNode : public ::testing::Test {
 protected:
  EraseNode() { agents_.boot(kNode, wire::Mode::Ram); }
  std::unique_ptr<Erasures> phase() {
    return makeErasePhase({cluster_, fleet_, agents_, images_, netboot_, clock_, "http://c",
                           "https://c", "CA", "KEY"},
                          *store_);
  }
  void ask(std::vector<std::string> disks = {}) {
    ASSERT_TRUE(askForErasure(*store_, kNode,
                              {"r1", "SN-1", std::move(disks), "ops@c", "leaves the site"}));
  }
  Result<lifecycle::Outcome> act(Erasures& phase) {
    lifecycle::Action action;
    action.facet = {Subject(kNode), facet(kErased)};
    return test::runAsync(phase.act(action, context_));
  }
  std::string fact(Erasures& phase) {
    const auto facts = test::runAsync(phase.observe(Subject(kNode)));
    return facts && !facts->empty() ? facts->front().value : "(none)";
  }

  inventory::Cluster cluster_ = twoNodes();
  FakeClock clock_;
  test::FakeBmcFleet fleet_;
  test::FakeAgentGateway agents_;
  test::FakeImageStore images_;
  test::FakeNetboot netboot_;
  std::unique_ptr<lifecycle::Store> store_ = std::make_unique<test::MemoryStore>();
  test::FakeActContext context_;
};

TEST_F(EraseNode, nobodyHasAGoalWhoWasNotAskedFor) {
  auto idle = phase();
  EXPECT_TRUE(idle->goals(cluster_, Subject(kNode), {}).empty());
  ask();
  auto asked = phase();
  const auto goals = asked->goals(cluster_, Subject(kNode), {});
  ASSERT_EQ(goals.size(), 1u);
  EXPECT_EQ(goals[0].disruption, lifecycle::Disruption::Wipe);
  EXPECT_EQ(goals[0].want, "complete:r1");
  EXPECT_THAT(goals[0].why, HasSubstr("leaves the site"));
  EXPECT_TRUE(asked->goals(cluster_, Subject(NodeName("gpu002")), {}).empty());
  ASSERT_TRUE(forgetErasure(*store_, kNode, "r0"));
  EXPECT_EQ(phase()->goals(cluster_, Subject(kNode), {}).size(), 1u)
      << "another request's end is not this one's";
  ASSERT_TRUE(forgetErasure(*store_, kNode, "r1"));
  EXPECT_TRUE(phase()->goals(cluster_, Subject(kNode), {}).empty());
}

TEST_F(EraseNode, theAgentErasesAndItsReportIsKept) {
  ask({"A"});
  agents_.answer(wire::TaskKind::EraseDisks, kWhole);
  auto erasing = phase();
  EXPECT_EQ(fact(*erasing), "not-yet");
  context_.wipe = true;
  const auto outcome = act(*erasing);
  ASSERT_TRUE(outcome) << outcome.error().str();
  EXPECT_TRUE(std::holds_alternative<Done>(*outcome));
  const auto tasks = agents_.submitted(kNode, wire::TaskKind::EraseDisks);
  ASSERT_EQ(tasks.size(), 1u);
  const auto params = nlohmann::json::parse(tasks[0].params);
  EXPECT_EQ(params, (nlohmann::json{
                        {"node_serial", "SN-1"}, {"disk_serials", {"A"}}, {"wipe_allowed", true}}));
  EXPECT_EQ(fact(*erasing), "complete:r1");
  const auto report = *erasureReport(*store_, kNode);
  ASSERT_TRUE(report);
  EXPECT_THAT(erasureText(*report),
              HasSubstr("erased by nvme-format-crypto (purge), 514 places read back"));
  EXPECT_THAT(erasureText(*report), HasSubstr("ops@c: leaves the site"));
}

TEST_F(EraseNode, theLargestDiskSaysHowLongItMayTake) {
  using std::chrono::hours;
  const auto limit = [this](std::vector<wire::Disk> disks, std::vector<std::string> named) {
    test::FakeAgentGateway agents;
    auto& node = agents.boot(kNode, wire::Mode::Ram);
    node.hardware.disks = std::move(disks);
    agents.answer(wire::TaskKind::EraseDisks, kWhole);
    ask(std::move(named));
    auto erasing = makeErasePhase(
        {cluster_, fleet_, agents, images_, netboot_, clock_, "http://c", "https://c", "CA", "KEY"},
        *store_);
    const auto goals = erasing->goals(cluster_, Subject(kNode), {});
    EXPECT_TRUE(act(*erasing));
    context_.recorded.clear();
    const auto tasks = agents.submitted(kNode, wire::TaskKind::EraseDisks);
    EXPECT_EQ(tasks.size(), 1u);
    EXPECT_GT(goals.at(0).deadline, tasks.at(0).deadline + hours(1))
        << "the action waits for its task";
    return tasks.at(0).deadline;
  };
  const wire::Disk nvme{"/dev/nvme0n1", "A", "", "", "", 4'000'000'000'000},
      turning{"/dev/sda", "B", "", "", "", 24'000'000'000'000},
      huge{"/dev/sdb", "C", "", "", "", 60'000'000'000'000};
  EXPECT_GT(limit({nvme, turning}, {}), hours(24'000'000 / 100 / 3600)) << "24 TB at 100 MB/s";
  EXPECT_LT(limit({nvme, turning}, {"A"}), hours(72)) << "only what is meant counts";
  EXPECT_EQ(limit({nvme, turning, huge}, {}), hours(7 * 24)) << "the protocol allows no more";
  EXPECT_EQ(limit({}, {}), hours(7 * 24)) << "nobody knows the disks";
}

TEST_F(EraseNode, aDiskThatIsNotErasedIsAFindingAndNeverComplete) {
  ask();
  agents_.answer(wire::TaskKind::EraseDisks, kPart);
  auto erasing = phase();
  const auto outcome = act(*erasing);
  ASSERT_TRUE(outcome);
  ASSERT_TRUE(std::holds_alternative<Blocked>(*outcome));
  ASSERT_EQ(context_.findings.size(), 1u);
  EXPECT_THAT(
      context_.findings[0].text,
      HasSubstr("/dev/sdb (serial B, 1.0 GiB) of gpu001 is NOT erased: cannot write at byte 4096"));
  EXPECT_EQ(fact(*erasing), "incomplete:r1");
  const auto text = erasureText(**erasureReport(*store_, kNode));
  EXPECT_THAT(text, HasSubstr("NOT COMPLETE"));
  EXPECT_THAT(text, HasSubstr("serial C, 1.0 GiB)"));
  EXPECT_THAT(text, HasSubstr("tried secure-discard"));
}

TEST_F(EraseNode, whatHasNotBegunCanBeTakenBack) {
  EXPECT_EQ(cancelErasure(*store_, kNode, "me@c", clock_.now()).error().code(),
            ErrorCode::NotFound);
  ask();
  ASSERT_TRUE(store_->grantWipe(kNode, "muster erase: leaves the site", clock_.now()));
  auto running = phase();  // of a process that has read the request
  const auto words = cancelErasure(*store_, kNode, "me@c", clock_.now());
  ASSERT_TRUE(words) << words.error().str();
  EXPECT_THAT(*words, HasSubstr("ops@c had asked: leaves the site"));
  EXPECT_TRUE(phase()->goals(cluster_, Subject(kNode), {}).empty());
  EXPECT_TRUE(store_->wipeGrants()->empty()) << "the next image would have used the permission";
  EXPECT_TRUE(store_->openIntents()->empty());
  EXPECT_THAT(store_->intentsOf(Subject(kNode), 1)->at(0).outcome, HasSubstr("taken back by me@c"));
  context_.wipe = true;
  const auto outcome = act(*running);
  ASSERT_TRUE(outcome && std::holds_alternative<Blocked>(*outcome));
  EXPECT_THAT(std::get<Blocked>(*outcome).why, HasSubstr("taken back"));
  EXPECT_TRUE(agents_.submitted(kNode, wire::TaskKind::EraseDisks).empty());
  EXPECT_TRUE(running->goals(cluster_, Subject(kNode), {}).empty());
}

TEST_F(EraseNode, oneThatOnlyRestartsTheMachineCanBeTakenBackToo) {
  ask();
  ASSERT_TRUE(store_->grantWipe(kNode, "muster erase", clock_.now()));
  lifecycle::Intent intent;
  intent.id = "i1";
  intent.action.facet = {Subject(kNode), facet(kErased)};
  intent.action.to = "complete:r1";
  intent.uses_wipe = true;
  ASSERT_TRUE(store_->openIntent(intent));
  ASSERT_TRUE(store_->grantWipe(kNode, "another person, for an image", clock_.now()));
  const auto words = cancelErasure(*store_, kNode, "me@c", clock_.now());
  ASSERT_TRUE(words) << words.error().str();
  EXPECT_THAT(*words, HasSubstr("may be in its RAM OS"));
  EXPECT_TRUE(store_->openIntents()->empty());
  EXPECT_EQ(store_->wipeGrants()->size(), 1u) << "that one is not the erasure's";
}

TEST_F(EraseNode, whatHasBegunIsNotTakenBackAndSaysWhatToDo) {
  ask();
  lifecycle::Intent intent;
  intent.id = "i1";
  intent.action.facet = {Subject(kNode), facet(kErased)};
  intent.action.to = "complete:r1";
  ASSERT_TRUE(store_->openIntent(intent));
  ASSERT_TRUE(store_->recordOperation("i1", "1:wipe:open"));
  const auto begun = cancelErasure(*store_, kNode, "me@c", clock_.now());
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(begun.error().str(), HasSubstr("muster apply --nodes gpu001"));
  EXPECT_THAT(begun.error().str(), HasSubstr("muster bmc power gpu001 off"));
  EXPECT_EQ(store_->openIntents()->size(), 1u);
  EXPECT_EQ(eraseRequests(*store_)->size(), 1u);
}

/// The process dies after any of its writes: the next cancel does it, and a permission is never
/// left behind without its request.
TEST_F(EraseNode, takingBackSurvivesEveryDeath) {
  int deaths = 0;
  for (int at = 0; at < 10; ++at) {
    test::MemoryStore inner;
    ASSERT_TRUE(askForErasure(inner, kNode, {"r1", "SN-1", {}, "ops@c", "leaves"}));
    ASSERT_TRUE(inner.grantWipe(kNode, "muster erase", clock_.now()));
    test::CrashStore store(inner, at, true);
    try {
      ASSERT_TRUE(cancelErasure(store, kNode, "me@c", clock_.now()));
    } catch (const test::Crash&) {
      ++deaths;
      EXPECT_TRUE(inner.wipeGrants()->empty() || !eraseRequests(inner)->empty())
          << "dies at write " << at;
      ASSERT_TRUE(cancelErasure(inner, kNode, "me@c", clock_.now())) << "dies at write " << at;
    }
    EXPECT_TRUE(inner.wipeGrants()->empty());
    EXPECT_TRUE(inner.openIntents()->empty());
    EXPECT_TRUE(eraseRequests(inner)->empty());
  }
  EXPECT_EQ(deaths, 3);
}

TEST_F(EraseNode, aControllerThatWasKilledGoesOnWithTheSameTask) {
  ask();
  agents_.hold(wire::TaskKind::EraseDisks);
  context_.wipe = true;
  ASSERT_TRUE(std::holds_alternative<lifecycle::Again>(*act(*phase())));
  auto after = phase();
  agents_.finish(context_.intent, kWhole);
  const auto outcome = act(*after);
  ASSERT_TRUE(outcome && std::holds_alternative<Done>(*outcome));
  EXPECT_EQ(agents_.submitted(kNode, wire::TaskKind::EraseDisks).size(), 1u);
}

TEST_F(EraseNode, aCompleteReportEndsItsRequestWhoeverCarriedItOut) {
  ask();
  agents_.answer(wire::TaskKind::EraseDisks, kWhole);
  auto erasing = phase();  // of a later `muster apply`
  ASSERT_TRUE(std::holds_alternative<Done>(*act(*erasing)));
  EXPECT_EQ(fact(*erasing), "complete:r1");
  EXPECT_TRUE(eraseRequests(*store_)->empty());
}

TEST_F(EraseNode, onlyWhatIsNotCompleteIsGoneOnWith) {
  const auto id = [&] {
    return requestToGoOnWith(*store_, kNode, {"r2", "SN-1", {}, "ops@c", "again"})->id;
  };
  ask();
  EXPECT_EQ(id(), "r1");
  agents_.answer(wire::TaskKind::EraseDisks, kPart);
  ASSERT_TRUE(act(*phase()));
  EXPECT_EQ(id(), "r1") << "a disk is still to be erased";
  agents_.answer(wire::TaskKind::EraseDisks, kWhole);
  context_.intent = "intent-2";
  context_.recorded.clear();
  ASSERT_TRUE(act(*phase()));
  ask();  // the controller was killed before it could forget it
  EXPECT_TRUE(*isComplete(*store_, kNode, "r1"));
  EXPECT_FALSE(*isComplete(*store_, kNode, "r2"));
  EXPECT_EQ(id(), "r2") << "the node may hold data again; the old report says nothing of it";
}

TEST_F(EraseNode, aWipeIsAllowedOnlyForAnActionThatUsesItUp) {
  const EraseRequest request{"r1", "SN-1", {}, "ops@c", "leaves the site"};
  lifecycle::Plan plan;
  EXPECT_EQ(beginErasure(*store_, plan, kNode, request, clock_.now()).error().code(),
            ErrorCode::Conflict);
  lifecycle::Action action;
  action.id = "gpu001/erased";
  action.facet = {Subject(kNode), facet(kErased)};
  action.to = "complete:r1";
  action.disruption = lifecycle::Disruption::Wipe;
  action.blocked = "held";
  plan.actions = {action};
  EXPECT_FALSE(beginErasure(*store_, plan, kNode, request, clock_.now()));
  EXPECT_TRUE(store_->wipeGrants()->empty());
  EXPECT_TRUE(eraseRequests(*store_)->empty());
  plan.actions[0].blocked.clear();
  ASSERT_TRUE(beginErasure(*store_, plan, kNode, request, clock_.now()));
  EXPECT_EQ(store_->wipeGrants()->size(), 1u);
  lifecycle::Intent begun;
  begun.id = "intent-1";
  begun.action = plan.actions[0];
  begun.uses_wipe = true;
  ASSERT_TRUE(store_->openIntent(begun));
  ASSERT_TRUE(beginErasure(*store_, plan, kNode, request, clock_.now()));
  EXPECT_TRUE(store_->wipeGrants()->empty()) << "the open action has its own";
  EXPECT_EQ(requestToGoOnWith(*store_, kNode, {"r2", "SN-1", {"A"}, "ops@c", "other disks"})
                .error()
                .code(),
            ErrorCode::Conflict);
}

TEST_F(EraseNode, onlyWhoHoldsNoJobs) {
  cluster_.profiles["uefi"].pool = "batch";
  lifecycle::FactSet facts;
  const auto with = [&](const std::string& value) {
    facts.put({Subject(kNode), FacetName("pool"), value, clock_.now(), "slurm", ""});
    return whyNotErase(cluster_, kNode, facts);
  };
  EXPECT_THAT(whyNotErase(cluster_, kNode, facts).value_or(""), HasSubstr("not known"));
  EXPECT_THAT(with("in").value_or(""), HasSubstr("may hold jobs"));
  EXPECT_TRUE(with("silent")) << "its jobs may go on without the scheduler hearing of them";
  EXPECT_FALSE(with("drained"));
  EXPECT_FALSE(with("out"));
  cluster_.profiles["uefi"].pool.clear();
  EXPECT_FALSE(whyNotErase(cluster_, kNode, {}));
}

}  // namespace
}  // namespace muster::provision
