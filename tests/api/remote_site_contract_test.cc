// SPDX-License-Identifier: Apache-2.0
// One contract over both ways to ask a site: by this process, and over HTTP. Every answer of the
// server that the second one gets is held against the server's description.
#include "app/site/site_client.h"

#include "api/run_json.h"
#include "cli/view/rollout_view.h"
#include "cli/view/run_view.h"
#include "lifecycle/model/json.h"
#include "tests/api/site_clients.h"

#include <set>

namespace muster::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> namesOf(const Result<app::SiteStatus>& status) {
  std::vector<std::string> out;
  EXPECT_TRUE(status) << status.error().str();
  if (status)
    for (const auto& node : status->nodes) out.push_back(node.node);
  return out;
}

TEST_P(SiteClientContract, statusIsFilteredAndRefusesWordsThatNameNothing) {
  const auto all = site().status({});
  EXPECT_THAT(namesOf(all), ElementsAre("gpu001", "gpu002", "gpu003", "login1"));
  EXPECT_EQ(all->nodes[0].state, "in pool");
  EXPECT_EQ(all->nodes[1].findings, 1u);
  EXPECT_EQ(all->nodes[1].state, "unhealthy");
  EXPECT_FALSE(all->monitor.running);
  EXPECT_THAT(namesOf(site().status({.nodes = "gpu[001-002]", .rack = "r1"})),
              ElementsAre("gpu001", "gpu002"));
  EXPECT_THAT(namesOf(site().status({.pool = "debug"})), ElementsAre("login1"));
  EXPECT_THAT(namesOf(site().status({.state = "in pool"})), ElementsAre("gpu001"));
  EXPECT_THAT(namesOf(site().status({.state = "imaging"})), IsEmpty());
  EXPECT_EQ(codeOf(site().status({.state = "in-pool"})), ErrorCode::InvalidInput);
  EXPECT_EQ(codeOf(site().status({.pool = "nope"})), ErrorCode::NotFound);
  EXPECT_EQ(codeOf(site().status({.rack = "r9"})), ErrorCode::NotFound);
  EXPECT_EQ(codeOf(site().status({.nodes = "gpu999"})), ErrorCode::NotFound);
  EXPECT_EQ(codeOf(site().status({.nodes = "gpu[1-"})), ErrorCode::InvalidInput);
}

TEST_P(SiteClientContract, nodesAndTheClusterAreExplained) {
  const auto one = site().explain({.nodes = "gpu002"}, 10);
  ASSERT_TRUE(one) << one.error().str();
  ASSERT_THAT(*one, SizeIs(1));
  EXPECT_EQ(one->front().word, "unhealthy");
  ASSERT_THAT(one->front().findings, SizeIs(1));
  EXPECT_EQ(one->front().findings[0].what_to_do, "replace it");
  EXPECT_THAT(one->front().text(), HasSubstr("GPU 3 fell off the bus"));
  const auto cluster = site().explain({.nodes = "@cluster"}, 10);
  ASSERT_TRUE(cluster) << cluster.error().str();
  EXPECT_TRUE(cluster->front().subject.isCluster());
  const auto rack = site().explain({.rack = "r1"}, 10);
  ASSERT_TRUE(rack) << rack.error().str();
  EXPECT_THAT(*rack, SizeIs(2));
  EXPECT_EQ(codeOf(site().explain({}, 10)), ErrorCode::InvalidInput);
  EXPECT_EQ(codeOf(site().explain({.rack = "r1"}, 1)), ErrorCode::InvalidInput);
  EXPECT_EQ(codeOf(site().explain({.nodes = "gpu999"}, 10)), ErrorCode::NotFound);
  EXPECT_EQ(codeOf(site().explain({.state = "imaging"}, 10)), ErrorCode::NotFound);
}

TEST_P(SiteClientContract, aPlanIsTheValueThatApplyWouldCarryOut) {
  app::ProgressListener nobody;
  const auto expected = app::makePlan(site_.options(), {"", false}, nobody);
  const auto made = site().plan({"", false}, nobody);
  ASSERT_TRUE(made) << made.error().str();
  ASSERT_TRUE(expected);
  EXPECT_FALSE(made->plan.empty());
  EXPECT_EQ(made->plan.hash(), expected->plan.hash());
  EXPECT_EQ(made->plan.toJson(), expected->plan.toJson());
  EXPECT_EQ(made->impact.actions, expected->impact.actions);
  EXPECT_EQ(made->impact.taken_out, expected->impact.taken_out);
  EXPECT_EQ(made->impact.at_least, expected->impact.at_least);
  const auto some = site().plan({"gpu003", false}, nobody);
  ASSERT_TRUE(some) << some.error().str();
  EXPECT_LT(some->plan.actions.size(), made->plan.actions.size());
  EXPECT_EQ(codeOf(site().plan({"gpu999", false}, nobody)), ErrorCode::NotFound);
}

TEST_P(SiteClientContract, aPlanIsMadeOfTheInventorysFileAsItIsNow) {
  app::ProgressListener nobody;
  std::string text(kSite);
  site_.write("cluster.yaml", text.substr(0, text.rfind("  - {names: login1")));
  const auto fewer = site().plan({"", false}, nobody);
  ASSERT_TRUE(fewer) << fewer.error().str();
  for (const auto& action : fewer->plan.actions)
    EXPECT_NE(action.facet.subject.str(), "login1") << action.id;
  site_.write("cluster.yaml", text + "profilez: {}\n");
  const auto broken = site().plan({"", false}, nobody);
  EXPECT_EQ(codeOf(broken), ErrorCode::InvalidInput);
  EXPECT_THAT(broken.error().str(), HasSubstr("cluster.yaml"));
}

TEST_P(SiteClientContract, theNewestEventsOldestFirst) {
  const lifecycle::Subject node(NodeName("gpu001"));
  const auto store = site_.store();
  ASSERT_TRUE(store->addEvent({0, SystemClock().now(), lifecycle::EventKind::ActionProgress, node,
                               "gpu001/image", "writing", 0.5}));
  const auto found = site().lastEvents("", 2);
  ASSERT_TRUE(found) << found.error().str();
  ASSERT_THAT(*found, SizeIs(2));
  EXPECT_EQ((*found)[0].text, "looked at by anna");
  EXPECT_EQ((*found)[1].kind, lifecycle::EventKind::ActionProgress);
  EXPECT_EQ((*found)[1].fraction, 0.5);
  EXPECT_EQ((*found)[1].action_id, "gpu001/image");
  EXPECT_THAT(*site().lastEvents("gpu001", 1), SizeIs(1));
  EXPECT_THAT(*site().lastEvents("gpu003", 10), IsEmpty());
  EXPECT_THAT(*site().lastEvents("@cluster", 10), IsEmpty());
  EXPECT_EQ(codeOf(site().lastEvents("gpu999", 10)), ErrorCode::NotFound);
}

TEST_P(SiteClientContract, findingsAreListedAndEndedByAPersonsWord) {
  const lifecycle::FacetRef facet{lifecycle::Subject(NodeName("gpu003")), FacetName("bmc.fan")};
  const auto store = site_.store();
  ASSERT_TRUE(store->addFinding(
      {facet, Severity::Warning, "fan 2 is slow", "", "", SystemClock().now(), ""}));
  const auto all = site().findings("");
  ASSERT_TRUE(all) << all.error().str();
  EXPECT_THAT(*all, SizeIs(2));
  const auto one = site().findings("gpu002");
  ASSERT_TRUE(one) << one.error().str();
  ASSERT_THAT(*one, SizeIs(1));
  EXPECT_EQ(lifecycle::toJson(one->front())["evidence"]["xid"], 79);
  EXPECT_EQ(codeOf(site().clearFindings({"gpu003", "bmc.nothing", "seen"})), ErrorCode::NotFound);
  EXPECT_EQ(codeOf(site().clearFindings({"gpu003", "bmc.fan", ""})), ErrorCode::InvalidInput);
  const auto cleared = site().clearFindings({"gpu003", "bmc.fan", "fan replaced"});
  ASSERT_TRUE(cleared) << cleared.error().str();
  ASSERT_THAT(*cleared, SizeIs(1));
  EXPECT_EQ(cleared->front().text, "fan 2 is slow");
  EXPECT_THAT(*site().findings(""), SizeIs(1));
}

TEST_P(SiteClientContract, quarantineKeepsTheFirstReason) {
  EXPECT_THAT(*site().quarantine(), IsEmpty());
  const auto added = site().addToQuarantine("gpu[001-002]", "PSU");
  ASSERT_TRUE(added) << added.error().str();
  ASSERT_THAT(*added, SizeIs(2));
  EXPECT_TRUE(added->front().is_new);
  const auto again = site().addToQuarantine("gpu001", "fan");
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_FALSE(again->front().is_new);
  EXPECT_EQ(again->front().reason, "PSU");
  const auto held = site().quarantine();
  ASSERT_TRUE(held) << held.error().str();
  ASSERT_THAT(*held, SizeIs(2));
  EXPECT_EQ(held->at(NodeName("gpu001")).reason, "PSU");
  EXPECT_THAT(held->at(NodeName("gpu001")).by, HasSubstr("root@"));
  EXPECT_EQ(codeOf(site().addToQuarantine("gpu999", "PSU")), ErrorCode::NotFound);
  const auto removed = site().removeFromQuarantine(NodeName("gpu001"), "replaced");
  EXPECT_TRUE(removed) << removed.error().str();
  EXPECT_EQ(codeOf(site().removeFromQuarantine(NodeName("gpu001"), "x")), ErrorCode::NotFound);
  EXPECT_THAT(*site().quarantine(), SizeIs(1));
}

TEST_P(SiteClientContract, aPersonsDrainIsShownAndOverridden) {
  const auto holds = site().poolHolds();
  ASSERT_TRUE(holds) << holds.error().str();
  ASSERT_THAT(holds->holds, SizeIs(1));
  EXPECT_EQ(holds->holds[0].node.str(), "gpu002");
  EXPECT_EQ(holds->holds[0].hold, "dimm swap [anna]");
  EXPECT_FALSE(holds->holds[0].overridden);
  EXPECT_THAT(holds->unread, ::testing::Contains(NodeName("gpu003")));
  EXPECT_EQ(codeOf(site().overridePoolHolds("gpu001", "PSU first")), ErrorCode::NotFound);
  const auto after = site().overridePoolHolds("gpu002", "PSU first");
  ASSERT_TRUE(after) << after.error().str();
  EXPECT_TRUE(site().poolHolds()->holds[0].overridden);
  EXPECT_THAT(site().poolHolds()->holds[0].overridden_by, HasSubstr("PSU first"));
}

TEST_P(SiteClientContract, runsAreShownSteeredAndFollowed) {
  const auto runs = app::openRunStore(site_.options());
  ASSERT_TRUE(runs) << runs.error().str();
  const auto made = [&](const std::string& nodes) {
    app::RunRequest request;
    request.apply.nodes = nodes;
    const auto run =
        app::submitRun(**runs, request, {"anna", "local", "ctl1"}, SystemClock().now());
    EXPECT_TRUE(run) << run.error().str();
    return run ? run->id : std::string();
  };
  const auto first = made("gpu001"), second = made("gpu[002-003]");
  const auto all = site().runs({});
  ASSERT_TRUE(all) << all.error().str();
  ASSERT_THAT(*all, SizeIs(2));
  EXPECT_EQ(all->front().id, second);
  EXPECT_THAT(*site().runs({.limit = 1}), SizeIs(1));
  const auto one = site().run(first);
  ASSERT_TRUE(one) << one.error().str();
  EXPECT_EQ(one->apply.nodes, "gpu001");
  EXPECT_EQ(one->asked_by.principal, "anna");
  EXPECT_EQ(one->state, lifecycle::RunState::Queued);
  EXPECT_FALSE(*site().planOfRun(first));
  EXPECT_EQ(codeOf(site().confirmRun(first, "hash")), ErrorCode::Denied) << "it is anna's";
  EXPECT_EQ(codeOf(site().approveRun(first, "hash")), ErrorCode::Conflict) << "it has no plan";
  EXPECT_EQ(codeOf(site().overrideRun(first, "hash", "fire")), ErrorCode::Conflict);
  EXPECT_EQ(codeOf(site().say(first, app::RunWord::Acknowledge)), ErrorCode::Conflict);
  const auto paused = site().say(first, app::RunWord::Pause);
  ASSERT_TRUE(paused) << paused.error().str();
  EXPECT_EQ(paused->state, lifecycle::RunState::Paused);
  EXPECT_EQ(site().say(first, app::RunWord::Resume)->state, lifecycle::RunState::Queued);
  const auto cancelled = site().say(first, app::RunWord::Cancel);
  ASSERT_TRUE(cancelled) << cancelled.error().str();
  EXPECT_EQ(cancelled->state, lifecycle::RunState::Cancelled);
  EXPECT_EQ(codeOf(site().say(first, app::RunWord::Resume)), ErrorCode::Conflict);
  EXPECT_THAT(*site().runs({.open_only = true}), SizeIs(1));
  std::vector<lifecycle::Event> events;
  std::int64_t after = 0;
  bool ended = false;
  for (int part = 0; part < 10 && !ended; ++part) {
    const auto followed = site().followRun(first, after, 100);
    ASSERT_TRUE(followed) << followed.error().str();
    EXPECT_EQ(followed->run.id, first);
    events.insert(events.end(), followed->events.begin(), followed->events.end());
    after = followed->next;
    ended = followed->ended;
  }
  EXPECT_TRUE(ended);
  EXPECT_THAT(events, SizeIs(::testing::Ge(3)));
  EXPECT_EQ(codeOf(site().run("r-nothing")), ErrorCode::NotFound);
  EXPECT_EQ(codeOf(site().followRun("r-nothing", 0, 10)), ErrorCode::NotFound);
  EXPECT_EQ(*site().principal(), "root");
}

TEST_P(SiteClientContract, runsOfEachKindAreAskedFor) {
  app::RunRequest apply;
  apply.apply.nodes = "gpu[001-002]";
  apply.after_restart = lifecycle::AfterRestart::Pause;
  apply.idempotency_key = "k1";
  const auto first = site().submitRun(apply);
  ASSERT_TRUE(first) << first.error().str();
  EXPECT_EQ(first->kind, lifecycle::RunKind::Apply);
  EXPECT_EQ(first->apply.nodes, "gpu[001-002]");
  EXPECT_EQ(first->after_restart, lifecycle::AfterRestart::Pause);
  EXPECT_EQ(site().submitRun(apply)->id, first->id);
  const app::RunRequest erase{.kind = lifecycle::RunKind::Erase,
                              .apply = {"gpu001"},
                              .erase = {{"S1"}, "leaves the site", ""}};
  const auto second = site().submitRun(erase);
  ASSERT_TRUE(second) << second.error().str();
  const auto shown = site().run(second->id);
  ASSERT_TRUE(shown) << shown.error().str();
  EXPECT_EQ(shown->kind, lifecycle::RunKind::Erase);
  EXPECT_THAT(shown->erase.disks, ElementsAre("S1"));
  EXPECT_EQ(shown->erase.reason, "leaves the site");
  app::RunRequest rollout{.kind = lifecycle::RunKind::Rollout, .apply = {"gpu[001-002]"}};
  rollout.rollout.driver = "nvidia-575";
  rollout.rollout.canaries = 2;
  rollout.rollout.on_failure = lifecycle::parseOnFailure("roll-back");
  const auto third = site().submitRun(rollout);
  ASSERT_TRUE(third) << third.error().str();
  EXPECT_EQ(third->kind, lifecycle::RunKind::Rollout);
  EXPECT_EQ(third->rollout.driver, "nvidia-575");
  EXPECT_FALSE(third->rollout.id.empty());
  EXPECT_EQ(site().run(third->id)->rollout.id, third->rollout.id);
  auto unclear = rollout;
  unclear.rollout.change = "drivers: {}";
  EXPECT_EQ(codeOf(site().submitRun(unclear)), ErrorCode::InvalidInput);
  unclear = rollout;
  unclear.apply.nodes.clear();
  EXPECT_EQ(codeOf(site().submitRun(unclear)), ErrorCode::InvalidInput);
  auto bad = erase;
  bad.apply.nodes = "gpu[001-002]";
  EXPECT_EQ(codeOf(site().submitRun(bad)), ErrorCode::InvalidInput);
  bad.apply.nodes = "gpu999";
  EXPECT_EQ(codeOf(site().submitRun(bad)), ErrorCode::NotFound);
  bad = erase;
  bad.erase.reason.clear();
  EXPECT_EQ(codeOf(site().submitRun(bad)), ErrorCode::InvalidInput);
  std::string text(kSite);
  const std::string pools = "pools:\n", profile = "pool: batch}";
  text.insert(text.find(pools), "gates:\n  burn-in: {level: quick, groups: [host]}\n");
  text.replace(text.find(profile), profile.size(), "gates: [burn-in], pool: batch}");
  site_.write("cluster.yaml", text);
  server_->reload();
  app::RunRequest gates{.kind = lifecycle::RunKind::Validate,
                        .apply = {"gpu[001-002]"},
                        .validate = {{"burn-in"}, true}};
  const auto fourth = site().submitRun(gates);
  ASSERT_TRUE(fourth) << fourth.error().str();
  EXPECT_EQ(fourth->kind, lifecycle::RunKind::Validate);
  EXPECT_THAT(site().run(fourth->id)->validate.gates, ElementsAre("burn-in"));
  EXPECT_TRUE(site().run(fourth->id)->validate.synchronized_load);
  gates.validate.gates = {"burn-in", "soak"};
  EXPECT_EQ(codeOf(site().submitRun(gates)), ErrorCode::InvalidInput);
  gates.apply.nodes.clear();
  EXPECT_EQ(codeOf(site().submitRun(gates)), ErrorCode::InvalidInput);
  gates.apply.nodes = "gpu999";
  EXPECT_EQ(codeOf(site().submitRun(gates)), ErrorCode::NotFound);
  app::RunRequest between{.kind = lifecycle::RunKind::Isolate, .apply = {"gpu[001-002]"}};
  between.isolate = {"rdma", 350.5, 7};
  const auto fifth = site().submitRun(between);
  ASSERT_TRUE(fifth) << fifth.error().str();
  EXPECT_EQ(site().run(fifth->id)->kind, lifecycle::RunKind::Isolate);
  EXPECT_EQ(site().run(fifth->id)->isolate, between.isolate);
  between.isolate.until = "good";
  const auto sixth = site().submitRun(between);
  ASSERT_TRUE(sixth) << sixth.error().str();
  EXPECT_EQ(site().run(sixth->id)->isolate, between.isolate);
  between.isolate.until = "soon";
  EXPECT_EQ(codeOf(site().submitRun(between)), ErrorCode::InvalidInput);
  between.isolate.until.clear();
  between.isolate.engine = "mpi";
  EXPECT_EQ(codeOf(site().submitRun(between)), ErrorCode::InvalidInput);
  app::RunRequest retry{.kind = lifecycle::RunKind::FirmwareRetry, .apply = {"gpu001"}};
  retry.firmware_retry.reason = "reseated";
  const auto seventh = site().submitRun(retry);
  ASSERT_TRUE(seventh) << seventh.error().str();
  EXPECT_EQ(site().run(seventh->id)->kind, lifecycle::RunKind::FirmwareRetry);
  EXPECT_EQ(site().run(seventh->id)->firmware_retry.reason, "reseated");
  retry.firmware_retry.reason.clear();
  EXPECT_EQ(codeOf(site().submitRun(retry)), ErrorCode::InvalidInput);
  app::RunRequest build{.kind = lifecycle::RunKind::ImageBuild};
  build.image_build = {"bookworm", "none"};
  const auto eighth = site().submitRun(build);
  ASSERT_TRUE(eighth) << eighth.error().str();
  EXPECT_EQ(site().run(eighth->id)->kind, lifecycle::RunKind::ImageBuild);
  EXPECT_EQ(site().run(eighth->id)->image_build, build.image_build);
  build.image_build.image.clear();
  EXPECT_EQ(codeOf(site().submitRun(build)), ErrorCode::InvalidInput);
  const auto ninth =
      site().submitRun({.kind = lifecycle::RunKind::BmcCertificate, .apply = {"gpu001"}});
  ASSERT_TRUE(ninth) << ninth.error().str();
  EXPECT_EQ(site().run(ninth->id)->kind, lifecycle::RunKind::BmcCertificate);
  EXPECT_EQ(
      codeOf(site().submitRun({.kind = lifecycle::RunKind::BmcPassword, .apply = {"gpu001"}})),
      ErrorCode::NotFound)
      << "none is declared";
  EXPECT_THAT(*site().runs({}), SizeIs(9));
  EXPECT_THAT(*site().runs({.kind = lifecycle::RunKind::Rollout}), SizeIs(1));
}

/// The run fails with the inventory that its author does not mean, whoever carried the order.
TEST_P(SiteClientContract, aRunNamesTheInventoryThatItsAuthorMeans) {
  app::RunRequest request;
  request.apply = {"gpu001", false, "muster apply", "0123abcd"};
  const auto made = site().submitRun(request);
  ASSERT_TRUE(made) << made.error().str();
  const auto runs = app::openRunStore(site_.options());
  EXPECT_EQ((*(*runs)->read(made->id))->apply.inventory, "0123abcd");
}

lifecycle::Rollout haltedRollout() {
  lifecycle::Rollout rollout;
  rollout.id = "r7";
  rollout.at = SystemClock().now();
  rollout.user = "anna";
  rollout.host = "ctl1";
  rollout.command = "muster rollout start";
  rollout.plan_hash = "0123456789abcdef";
  rollout.state = lifecycle::RolloutState::Halted;
  rollout.reasons = {"2 of 2 nodes failed"};
  rollout.waves = {{"canary", {NodeName("gpu001")}}, {"100 %", {NodeName("gpu002")}}};
  rollout.gates = {{.wave = "canary", .failed = 1, .reasons = {"gpu001 failed"}}};
  return rollout;
}

TEST_P(SiteClientContract, aRolloutIsShownAndItsFailedGateAccepted) {
  EXPECT_EQ(codeOf(site().rollout("")), ErrorCode::NotFound);
  const auto store = site_.store();
  ASSERT_TRUE(lifecycle::RolloutRecord::draft(
                  *store, haltedRollout(), {},
                  {{NodeName("gpu001"), {lifecycle::RolloutNodeState::Failed, "burn-in", {}, {}}},
                   {NodeName("gpu002"), {}}})
                  .begin());
  for (const auto* id : {"", "r7"}) {
    const auto shown = site().rollout(id);
    ASSERT_TRUE(shown) << shown.error().str();
    const auto expected = app::statusOf(*lifecycle::RolloutRecord::open(*store, "r7"));
    EXPECT_EQ(cli::rolloutText(*shown), cli::rolloutText(expected));
    EXPECT_EQ(cli::rolloutJson(*shown), cli::rolloutJson(expected));
    EXPECT_THAT(cli::rolloutText(*shown), HasSubstr("burn-in"));
    EXPECT_THAT(shown->others, IsEmpty());
  }
  EXPECT_EQ(codeOf(site().rollout("r9")), ErrorCode::NotFound);

  const auto runs = app::openRunStore(site_.options());
  ASSERT_TRUE(runs) << runs.error().str();
  app::RunRequest request{.kind = lifecycle::RunKind::Rollout, .apply = {"gpu[001-002]"}};
  request.rollout.driver = "nvidia-575";
  auto made = app::submitRun(**runs, request, {"anna", "local", "ctl1"}, SystemClock().now());
  ASSERT_TRUE(made) << made.error().str();
  EXPECT_EQ(codeOf(site().resumeAccepting(made->id, "known bad cable")), ErrorCode::Conflict)
      << "no gate of it waits";
  made->rollout.id = "r7";
  made->state = lifecycle::RunState::Paused;
  made->reason = lifecycle::RunReason::RolloutHalted;
  ASSERT_TRUE((*runs)->exchange(*made, "halted")->has_value());
  const auto resumed = site().resumeAccepting(made->id, "known bad cable");
  ASSERT_TRUE(resumed) << resumed.error().str();
  EXPECT_EQ(resumed->state, lifecycle::RunState::Queued);
  EXPECT_THAT(lifecycle::RolloutRecord::open(*store, "r7")->rollout().accepted_by,
              HasSubstr("known bad cable"));
}

/// What cannot be undone is refused before a run is made of it.
TEST_P(SiteClientContract, anUndoingIsRefusedWhereThereIsNothingToUndo) {
  app::RunRequest request{.kind = lifecycle::RunKind::Rollout};
  request.rollout.back = true;
  request.rollout.id = "r9";
  EXPECT_EQ(codeOf(site().submitRun(request)), ErrorCode::NotFound);
  EXPECT_THAT(*site().runs({}), IsEmpty());
}

/// `muster run show` prints the same, whoever is asked.
TEST_P(SiteClientContract, aRunHasOneForm) {
  const auto runs = app::openRunStore(site_.options());
  ASSERT_TRUE(runs) << runs.error().str();
  const auto at = SystemClock().now();
  app::RunRequest request;
  request.apply = {
      .nodes = "gpu[001-002]", .confirm = true, .command = "muster apply", .inventory = ""};
  auto made = app::submitRun(**runs, request, {"anna", "local", "ctl1"}, at);
  ASSERT_TRUE(made) << made.error().str();
  made->plan_hash = "0123456789abcdef";
  made->planned_at = at;
  made->subjects = "gpu[001-002]";
  made->approvals_needed = 2;
  made->approvals = {{{"anna", "local", "ctl1"}, at, made->plan_hash, true},
                     {{"token:ci", "token", "10.20.0.7"}, at, made->plan_hash, false}};
  made->overrides = {{{"root", "unix", "ctl1"},
                      at,
                      made->plan_hash,
                      lifecycle::RunReason::OutsideWindow,
                      "fire",
                      "bert",
                      at}};
  made->progress = {1, 9, 4, 1, 2, 1, 1};
  made->problems = {"gpu001 image: failed"};
  made->text = "two are missing";
  made->impact.emplace();
  made->impact->taken_out = {NodeName("gpu001")};
  made->impact->actions = 9;
  const auto kept = (*runs)->exchange(*made, "");
  ASSERT_TRUE(kept && *kept);
  const auto shown = site().run(made->id);
  ASSERT_TRUE(shown) << shown.error().str();
  EXPECT_EQ(runJson(*shown), runJson(**kept)) << jsonText(runJson(*shown));
  EXPECT_EQ(cli::runText(*shown), cli::runText(**kept));
  EXPECT_EQ(runJson(site().runs({})->front()), runJson(**kept));
  EXPECT_THAT(jsonText(runJson(*shown)), HasSubstr("10.20.0.7"));
}

INSTANTIATE_TEST_SUITE_P(Both, SiteClientContract, ::testing::Values(How::Embedded, How::Http),
                         nameOf);

class SiteClients : public SiteClientSite {};

TEST_F(SiteClients, bothPrintTheSame) {
  fill();
  start();
  const auto embedded = client(How::Embedded), http = client(How::Http);
  const auto print = [](app::SiteClient& site) {
    std::string out;
    for (const auto& node : site.status({})->nodes)
      out +=
          fmt::format("{} {} {} {} {} {} {} {} {}\n", node.node, node.state, node.pool, node.image,
                      node.certificate, node.findings, node.rack, node.profile, node.stale.size());
    for (const auto& event : *site.lastEvents("", 100))
      out += jsonText(lifecycle::toJson(event)) + "\n";
    for (const auto& finding : *site.findings(""))
      out += jsonText(lifecycle::toJson(finding)) + "\n";
    const auto explained = site.explain({.rack = "r1"}, 10);
    if (!explained) return explained.error().str();
    for (const auto& each : *explained)
      out += fmt::format("{} {} {} {} {} {}\n", each.subject.str(), each.word, each.facet,
                         each.expected, each.next_step, each.unmet.size());
    for (const auto& hold : site.poolHolds()->holds)
      out += fmt::format("{} {} {}\n", hold.node.str(), hold.hold, muster::toString(hold.seen_at));
    return out;
  };
  const auto printed = print(*embedded);
  EXPECT_EQ(printed, print(*http));
  EXPECT_THAT(printed, HasSubstr("gpu002 unhealthy"));
}

/// Its end comes between the two answers of which a part of a run's story is made.
TEST_F(SiteClients, aRunThatEndsWhileItIsFollowedIsNotToldAsEndedWithAnOldState) {
  fill();
  start();
  const auto embedded = client(How::Embedded), http = client(How::Http);
  const auto run = embedded->submitRun({.kind = lifecycle::RunKind::Apply, .apply = {"gpu001"}});
  ASSERT_TRUE(run) << run.error().str();
  bool was_ended = false;
  after_answer_ = [&](const std::string& target) {
    if (was_ended || target.find("/runs/" + run->id) == std::string::npos) return;
    was_ended = true;
    EXPECT_TRUE(embedded->say(run->id, app::RunWord::Cancel));
  };
  std::int64_t after = 0;
  bool ended = false;
  for (int part = 0; part < 10 && !ended; ++part) {
    const auto followed = http->followRun(run->id, after, 100);
    ASSERT_TRUE(followed) << followed.error().str();
    ASSERT_TRUE(was_ended);
    EXPECT_EQ(followed->run.state, lifecycle::RunState::Cancelled) << "part " << part;
    after = followed->next;
    ended = followed->ended;
  }
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace muster::api
