// SPDX-License-Identifier: Apache-2.0
// The contract of records, parts and orders over both ways to ask a site: what the store, the key
// files and the kept looks of a site hold, this process and a client over HTTP are told alike.
#include "api/remote_records.h"

#include "app/fabric/fabric_look.h"
#include "app/firmware/firmware_baselines.h"
#include "app/images.h"
#include "app/nodes/bmc_credentials.h"
#include "app/nodes/console.h"
#include "app/nodes/discovery.h"
#include "app/nodes/erase.h"
#include "app/nodes/measurements.h"
#include "app/nodes/wipe.h"
#include "app/records/records.h"
#include "app/site/site_keys.h"
#include "app/site/site_records.h"
#include "app/validation/certificates.h"
#include "base/io/files.h"
#include "bmc/console/boot_log.h"
#include "cli/view/fabric_view.h"
#include "cli/view/firmware_view.h"
#include "discovery/machine_registry.h"
#include "fabric/kept_report.h"
#include "lifecycle/audit/head.h"
#include "monitor/breakers.h"
#include "tests/api/records_site.h"
#include "tests/validate/fleet_history.h"

namespace muster::api {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SiteRecordsContract : public RecordsSite, public ::testing::WithParamInterface<How> {
 protected:
  void SetUp() override {
    start();
    asked_ = SiteClientSite::client(GetParam());
    ASSERT_NE(asked_, nullptr);
  }
  app::SiteRecords& site() { return asked_->records(); }
  app::SiteClient& client() { return *asked_; }
  ErrorCode codeOf(const auto& result) {
    EXPECT_FALSE(result);
    return result ? ErrorCode::Internal : result.error().code();
  }

 private:
  std::unique_ptr<app::SiteClient> asked_;
};

TEST_P(SiteRecordsContract, historyOfThePlansOfANodeAndOfAPlan) {
  const auto store = site_.store();
  const std::string hash(64, 'a');
  const auto at = SystemClock().now();
  ASSERT_TRUE(store->openRequest({"q1", at, "anna", "ctl1", "muster apply", hash, "", {}}));
  lifecycle::Intent intent;
  intent.id = "i1";
  intent.plan_hash = hash;
  intent.action.id = "gpu001/image";
  intent.action.facet = {lifecycle::Subject(NodeName("gpu001")), FacetName("image")};
  intent.action.phase = "provision";
  intent.action.from = "none";
  intent.action.to = "bookworm@aaaa";
  intent.action.disruption = lifecycle::Disruption::Wipe;
  intent.action.expected = std::chrono::seconds(600);
  intent.action.deadline = std::chrono::seconds(3600);
  intent.opened_at = at;
  intent.request = "q1";
  ASSERT_TRUE(store->openIntent(intent));
  ASSERT_TRUE(store->recordOperation("i1", "task 7"));
  ASSERT_TRUE(store->closeIntent("i1", lifecycle::IntentState::Failed, "no answer", at));
  ASSERT_TRUE(store->closeRequest("q1", "1 failed", at));
  const auto embedded = app::history(site_.options(), "gpu001", 100);
  ASSERT_TRUE(embedded) << embedded.error().str();
  for (const auto& what : {std::string("gpu001"), hash.substr(0, 12)}) {
    const auto found = site().history(what, 100);
    ASSERT_TRUE(found) << found.error().str();
    EXPECT_EQ(found->toJson(), embedded->toJson()) << what;
    EXPECT_EQ(found->text(), embedded->text());
    EXPECT_THAT(found->text(), AllOf(HasSubstr("no answer"), HasSubstr("anna@ctl1")));
  }
  const auto plans = site().history("", 100);
  ASSERT_TRUE(plans) << plans.error().str();
  EXPECT_THAT(plans->requests, SizeIs(1));
  EXPECT_THAT(plans->intents, IsEmpty());
  EXPECT_EQ(codeOf(site().history("gpu999", 100)), ErrorCode::NotFound);
  EXPECT_THAT(site().history("gpu999", 100).error().str(), HasSubstr("gpu999"));
}

TEST_P(SiteRecordsContract, eachNodesPathToItsBaseline) {
  const auto expected = app::firmwareUpgrades(site_.options(), "");
  ASSERT_TRUE(expected) << expected.error().str();
  ASSERT_THAT(*expected, SizeIs(3)) << "login1 has no baseline";
  const auto all = site().firmwareUpgrades("");
  ASSERT_TRUE(all) << all.error().str();
  EXPECT_EQ(cli::firmwareJson(*all), cli::firmwareJson(*expected));
  EXPECT_EQ(cli::firmwareText(*all), cli::firmwareText(*expected));
  EXPECT_THAT(cli::firmwareText(*all),
              AllOf(HasSubstr("1.4.0 → 1.5.0"), HasSubstr("muster firmware retry gpu002")));
  const auto one = site().firmwareUpgrades("gpu002");
  ASSERT_TRUE(one) << one.error().str();
  ASSERT_THAT(*one, SizeIs(1));
  EXPECT_EQ(one->front().node.str(), "gpu002");
  EXPECT_THAT(*site().firmwareUpgrades("login1"), IsEmpty());
  EXPECT_EQ(codeOf(site().firmwareUpgrades("gpu999")), ErrorCode::NotFound);
  EXPECT_EQ(codeOf(site().firmwareUpgrades("gpu[1-")), ErrorCode::InvalidInput);
}

TEST_P(SiteRecordsContract, imagesThatAreDeclaredAndNotThere) {
  const auto expected = app::listImages(site_.options());
  ASSERT_TRUE(expected) << expected.error().str();
  const auto list = site().images();
  ASSERT_TRUE(list) << list.error().str();
  EXPECT_THAT(list->images, IsEmpty());
  EXPECT_THAT(list->not_built, ElementsAre("bookworm"));
  EXPECT_EQ(list->site_key_id, expected->site_key_id);
}

TEST_P(SiteRecordsContract, theFabricAndItsFaultyCables) {
  const auto folder = site_.options().state / "run/fabric";
  ASSERT_TRUE(fabric::keepReport(
      folder, fabric::KeptReportKind::Diff, SystemClock().now(),
      R"({"format": "muster-fabric-diff/2", "fabric": "ib", "devices": 9, "links": 8,
          "deviations": [{"kind": "missing-link", "device": "gpu001 mlx5_0", "port": 1,
          "declared": "leaf-su1-r0 port 1", "found": "no cable", "repair": "plug it in"}],
          "repairs": [{"text": "plug it in", "moves": []}], "excluded": []})"));
  ASSERT_TRUE(fabric::keepReport(
      folder, fabric::KeptReportKind::Health, SystemClock().now(),
      R"({"links": [{"grade": "bad", "advice": "clean it", "transceiver": "MT1", "ends": [
          {"device": "gpu002 mlx5_1", "port": 1, "complaints": [{"text": "many errors"}]}]}],
          "hints": ["look at leaf-su1-r1"], "window_seconds": {"longest": 300.5}})"));
  const auto look = app::fabricLook(site_.options(), "");
  ASSERT_TRUE(look) << look.error().str();
  const auto summary = site().fabric("");
  ASSERT_TRUE(summary) << summary.error().str();
  EXPECT_EQ(toJson(*summary), toJson(app::summaryOf(*look)));
  const auto faulty = site().fabricCables({"ib", "", true});
  ASSERT_TRUE(faulty) << faulty.error().str();
  ASSERT_THAT(*faulty, SizeIs(2));
  EXPECT_THAT(cli::fabricText(*summary, *faulty),
              AllOf(HasSubstr("fabric ib: "), HasSubstr("2 faulty"), HasSubstr("plug it in"),
                    HasSubstr("many errors"), HasSubstr("look at leaf-su1-r1"),
                    HasSubstr("over 300 s: 1 bad")));
  const auto all = site().fabricCables({});
  ASSERT_TRUE(all) << all.error().str();
  ASSERT_EQ(all->size(), look->view.cables.size());
  for (std::size_t i = 0; i < all->size(); ++i)
    EXPECT_EQ(toJson((*all)[i]), toJson(look->view.cables[i]));
  EXPECT_THAT(*site().fabricCables({"", "gpu001", true}), SizeIs(1));
  EXPECT_EQ(codeOf(site().fabric("stroage")), ErrorCode::NotFound);
  EXPECT_EQ(codeOf(site().fabricCables({"stroage"})), ErrorCode::NotFound);
}

TEST_P(SiteRecordsContract, certificatesAreShownVerifiedAndRevoked) {
  EXPECT_EQ(codeOf(site().certificate("gpu001")), ErrorCode::NotFound);
  EXPECT_EQ(codeOf(site().certificate("gpu999")), ErrorCode::NotFound);
  ASSERT_TRUE(app::overrideCertificate(site_.options(), {"gpu001", "delivery test", 24}));
  const auto expected = app::certificateOf(site_.options(), "gpu001");
  ASSERT_TRUE(expected) << expected.error().str();
  const auto found = site().certificate("gpu001");
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_EQ(found->toJson(), expected->toJson());
  EXPECT_EQ(found->id(), expected->id()) << "what a list of revocations names it by";
  const auto told = [&](const std::string& node) {
    std::string out;
    const auto verdicts = site().verifyCertificates(node);
    EXPECT_TRUE(verdicts) << verdicts.error().str();
    for (const auto& each : *verdicts)
      out += each.node.str() + ": " + (each.valid ? "valid" : each.valid.error().str()) +
             (each.override_by.empty() ? "" : " by the word of " + each.override_by) + "\n";
    return out;
  };
  EXPECT_THAT(told(""),
              AllOf(HasSubstr("gpu001: valid"), HasSubstr("gpu002: "), HasSubstr("login1: ")));
  EXPECT_THAT(told("gpu001"), ::testing::StartsWith("gpu001: valid by the word of root"));
  EXPECT_EQ(codeOf(site().verifyCertificates("gpu999")), ErrorCode::NotFound);
  EXPECT_EQ(codeOf(site().revokeCertificate("gpu001", "")), ErrorCode::InvalidInput);
  EXPECT_EQ(codeOf(site().revokeCertificate("gpu999", "stolen")), ErrorCode::NotFound);
  const auto list = site().revokeCertificate("gpu001", "board replaced");
  ASSERT_TRUE(list) << list.error().str();
  EXPECT_EQ(list->list, app::revocationListOf(site_.options().state));
  EXPECT_THAT(told("gpu001"), HasSubstr("revoked"));
  const auto events = site_.store()->lastEvents(5, nullptr);
  EXPECT_THAT(events->back().text, AllOf(HasSubstr("board replaced"), HasSubstr("root")));
}

TEST_P(SiteRecordsContract, machinesThatWereSeenAndWhatIsOddAboutThem) {
  const auto store = site_.store();
  ASSERT_TRUE(discovery::updateRegistry(*store, [](auto& registry) -> Result<void> {
    discovery::Machine known, one, two;
    known.bmc = "https://10.20.250.1";
    known.serial = "S-0";
    known.gpus = {{"H100", "G1"}, {"H100", "G2"}};
    one.bmc = "https://10.20.250.7";
    one.serial = two.serial = "S-7";
    one.macs = {"52:54:00:20:00:77"};
    two.bmc = "https://10.20.250.8";
    for (auto* each : {&known, &one, &two}) {
      each->seen_by = {"redfish"};
      TRY_OK(registry.note(*each, SystemClock().now()));
    }
    return {};
  }));
  const auto expected = app::discoveredMachines(site_.options());
  ASSERT_TRUE(expected) << expected.error().str();
  const auto found = site().discovered();
  ASSERT_TRUE(found) << found.error().str();
  ASSERT_THAT(found->machines, SizeIs(3));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(toJson(found->machines[i]), toJson(expected->machines[i]));
  EXPECT_EQ(found->machines[0].node, "gpu001");
  EXPECT_EQ(found->machines[0].machine.gpuText(), "2× H100");
  ASSERT_THAT(found->anomalies, SizeIs(1));
  EXPECT_EQ(found->anomalies[0].what, expected->anomalies[0].what);
  EXPECT_EQ(found->anomalies[0].what_to_do, expected->anomalies[0].what_to_do);
}

TEST_P(SiteRecordsContract, measurementsWithTheirDocuments) {
  test::FleetHistory fleet;
  fleet.nodes = 64;
  fleet.from = std::chrono::floor<std::chrono::milliseconds>(SystemClock().now()) -
               std::chrono::hours(24 * 50);
  fleet.fault = [](int node, int metric, int) { return node == 7 && metric == 2 ? 0.8 : 1.0; };
  ASSERT_TRUE((*lifecycle::openMeasurements(site_.options().storeUrl()))->add(fleet.make(3)));
  ASSERT_TRUE(io::makeDirs(site_.options().state / "validation", 0700));
  site_.write("state/validation/isolate-1.json", "{}");
  using enum app::ReportFormat;
  const app::MeasurementsRequest request{.days = 100, .false_alarms = 0.5};
  const auto expected = app::measuredFleet(site_.options(), request, {Html, Json, Junit});
  ASSERT_TRUE(expected) << expected.error().str();
  const auto found = site().measurements(request, {Html, Json, Junit});
  ASSERT_TRUE(found) << found.error().str();
  ASSERT_FALSE(found->alarms.empty());
  ASSERT_EQ(found->alarms.size(), expected->alarms.size());
  EXPECT_THAT(found->alarms[0].text, HasSubstr("gpu00007"));
  EXPECT_EQ(found->alarms[0].text, expected->alarms[0].text);
  EXPECT_EQ(found->alarms[0].kind, expected->alarms[0].kind);
  EXPECT_EQ(found->alarms[0].sigmas, expected->alarms[0].sigmas);
  EXPECT_EQ(found->alarms[0].limit, expected->alarms[0].limit);
  ASSERT_EQ(found->typical.size(), expected->typical.size());
  for (std::size_t i = 0; i < found->typical.size(); ++i) {
    EXPECT_EQ(found->typical[i].sku, expected->typical[i].sku);
    EXPECT_EQ(found->typical[i].metric, expected->typical[i].metric);
    EXPECT_EQ(found->typical[i].values, expected->typical[i].values);
    EXPECT_EQ(found->typical[i].median, expected->typical[i].median);
    EXPECT_EQ(found->typical[i].sigma, expected->typical[i].sigma);
  }
  EXPECT_EQ(found->numbers, expected->numbers);
  EXPECT_EQ(found->nodes, 65u) << "and the one that was there";
  EXPECT_EQ(found->comparisons, expected->comparisons);
  EXPECT_EQ(found->false_alarms, 0.5);
  EXPECT_EQ(found->left_out, expected->left_out);
  EXPECT_THAT(found->left_out, HasSubstr("isolate-1.json"));
  auto a = jsonOrNone(found->documents.at(Json), kServerJson),
       b = jsonOrNone(expected->documents.at(Json), kServerJson);
  a.erase("at");
  b.erase("at");
  EXPECT_EQ(a, b);
  EXPECT_THAT(found->documents.at(Html), AllOf(HasSubstr("<!doctype html>"), HasSubstr("gpu00007"),
                                               HasSubstr("</body></html>")));
  EXPECT_THAT(found->documents.at(Junit), AllOf(HasSubstr("<testsuite"), HasSubstr("gpu00007")));
  EXPECT_THAT(site().measurements(request, {})->documents, IsEmpty());
}

TEST_P(SiteRecordsContract, whatIsKnownOfBmcsAndAPersonsWordAboutThem) {
  const auto store = site_.store();
  const auto expected = app::bmcIdentities(site_.options(), "");
  ASSERT_TRUE(expected) << expected.error().str();
  const auto all = site().bmcIdentities("");
  ASSERT_TRUE(all) << all.error().str();
  ASSERT_THAT(*all, SizeIs(4));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(toJson((*all)[i]), toJson((*expected)[i]));
  EXPECT_THAT(*site().bmcIdentities("gpu[001-002]"), SizeIs(2));
  EXPECT_EQ(codeOf(site().bmcIdentities("gpu999")), ErrorCode::NotFound);
  const auto changed = site().resetBmcAuth("gpu[001-002]");
  ASSERT_TRUE(changed) << changed.error().str();
  EXPECT_THAT(*changed, ElementsAre(NodeName("gpu001"), NodeName("gpu002")));
  EXPECT_THAT(site_.store()->lastEvents(1, nullptr)->back().text,
              AllOf(HasSubstr("root"), HasSubstr("tried once more")));
  EXPECT_EQ(codeOf(site().resetBmcTrust("gpu999")), ErrorCode::NotFound);
  EXPECT_THAT(*site().resetBmcTrust("gpu001"), SizeIs(1));
}

TEST_P(SiteRecordsContract, theReportOfAnErasure) {
  EXPECT_EQ(codeOf(site().erasureReport(NodeName("gpu001"))), ErrorCode::NotFound);
  ASSERT_TRUE(
      site_.store()->putValue("erase.report.gpu001", R"({"id":"e1","node":"gpu001","disks":[]})"));
  const auto report = site().erasureReport(NodeName("gpu001"));
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ(jsonOrNone(*report, kKeptJson)["id"], "e1");
}

TEST_P(SiteRecordsContract, recordedBootsComeWholeAndByteForByte) {
  EXPECT_THAT(*site().recordedBoots(NodeName("gpu001")), IsEmpty());
  EXPECT_EQ(codeOf(site().recordedBoot(NodeName("gpu001"), std::nullopt)), ErrorCode::NotFound);
  bmc::BootLogArchive archive{bmc::keptConsoles(site_.options().state), NodeName("gpu001")};
  auto first = archive.begin(SystemClock().now(), "installation");
  ASSERT_TRUE(first);
  ASSERT_TRUE(first->append("first\xff\r\n"));
  auto second = archive.begin(SystemClock().now(), "power on");
  ASSERT_TRUE(second);
  std::string said;  // more than one answer holds
  for (int line = 0; said.size() < (300u << 10); ++line)
    said += fmt::format("line {}\x1b[0m\n", line);
  ASSERT_TRUE(second->append(said));
  const auto boots = site().recordedBoots(NodeName("gpu001"));
  ASSERT_TRUE(boots) << boots.error().str();
  ASSERT_THAT(*boots, SizeIs(2));
  EXPECT_EQ(boots->front().why, "installation");
  const auto newest = site().recordedBoot(NodeName("gpu001"), std::nullopt);
  ASSERT_TRUE(newest) << newest.error().str();
  EXPECT_EQ(newest->boot.why, "power on");
  EXPECT_EQ(newest->output, app::recordedBoot(site_.options(), NodeName("gpu001"), {})->output);
  EXPECT_EQ(newest->output, said);
  EXPECT_EQ(site().recordedBoot(NodeName("gpu001"), first->number())->output, "first\xff\r\n");
  EXPECT_EQ(codeOf(site().recordedBoot(NodeName("gpu001"), 77)), ErrorCode::NotFound);
  EXPECT_EQ(codeOf(site().recordedBoots(NodeName("gpu999"))), ErrorCode::NotFound);
}

TEST_P(SiteRecordsContract, theEndOfTheLogIsSignedByTheSitesKey) {
  const auto head = site().auditHead();
  ASSERT_TRUE(head) << head.error().str();
  const auto key = app::loadKey(site_.options().state, app::KeyPurpose::Audit);
  ASSERT_TRUE(key) << key.error().str();
  EXPECT_EQ(head->key_id, key->id());
  const auto heads = lifecycle::parseHeads(toText(*head));
  ASSERT_TRUE(heads);
  EXPECT_EQ(heads->front(), *head);
  const auto ends = site_.store()->auditEnds();
  ASSERT_TRUE(ends);
  EXPECT_EQ(head->sequence, ends->link);
  EXPECT_EQ(head->hash, ends->hash);
}

TEST_P(SiteRecordsContract, aWipeIsPermittedOnce) {
  const auto granted = site().grantWipe({"gpu[001-002]", "new image", false});
  ASSERT_TRUE(granted) << granted.error().str();
  EXPECT_THAT(granted->nodes, ElementsAre(NodeName("gpu001"), NodeName("gpu002")));
  EXPECT_FALSE(granted->has_storage_sets);
  EXPECT_THAT(*site_.store()->wipeGrants(), ::testing::Contains(NodeName("gpu002")));
  EXPECT_EQ(codeOf(site().grantWipe({"gpu999", "new image", false})), ErrorCode::NotFound);
}

TEST_P(SiteRecordsContract, breakersAreClosedByAPersonsWord) {
  EXPECT_THAT(*site().acknowledgeBreakers("looked"), IsEmpty());
  const auto store = site_.store();
  ASSERT_TRUE(monitor::Breakers(*store).trip(
      {.pool = "batch", .nodes = {NodeName("gpu001"), NodeName("gpu002")}}, SystemClock().now()));
  EXPECT_EQ(codeOf(site().acknowledgeBreakers("")), ErrorCode::InvalidInput);
  const auto closed = site().acknowledgeBreakers("the switch was rebooted");
  ASSERT_TRUE(closed) << closed.error().str();
  ASSERT_THAT(*closed, SizeIs(1));
  EXPECT_EQ(closed->front().pool, "batch");
  EXPECT_THAT(closed->front().nodes, ElementsAre(NodeName("gpu001"), NodeName("gpu002")));
  EXPECT_THAT(*site().acknowledgeBreakers("again"), IsEmpty());
}

TEST_P(SiteRecordsContract, nobodyCarriesRunsOutWhereAServerOnlyAnswers) {
  const auto watched = client().isWatched();
  ASSERT_TRUE(watched) << watched.error().str();
  EXPECT_FALSE(*watched);
}

INSTANTIATE_TEST_SUITE_P(Both, SiteRecordsContract, ::testing::Values(How::Embedded, How::Http),
                         nameOf);

}  // namespace
}  // namespace muster::api
