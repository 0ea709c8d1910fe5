// SPDX-License-Identifier: Apache-2.0
// The server of a host that stands by: it looks and takes orders that are rows, and names who does
// the rest. The lease is written as the other host's own process writes it.
#include "api/route.h"
#include "app/nodes/bmc_credentials.h"
#include "app/nodes/bmc_power.h"
#include "app/site/actor.h"
#include "app/site/site_records.h"
#include "app/site/state_folder.h"
#include "lifecycle/store/leader_lease.h"
#include "lifecycle/store/runs.h"
#include "tests/api/site_clients.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

namespace muster::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOtherUrl = "https://ctl2.example.org:9443";

class ApiStandby : public SiteClientSite {
 protected:
  void SetUp() override {
    std::string site(kSite);
    const std::string_view cidr = "cidr: 10.20.0.0/16, ";
    site.insert(site.find(cidr) + cidr.size(), "controllers: [10.20.0.1, 10.20.0.2], ");
    // A port where nobody listens: refused at once.
    const std::string bmc = "https://10.20.250.1";
    site.replace(site.find(bmc), bmc.size(), "https://127.0.0.1:1");
    site_.write("cluster.yaml", site);
    fill();
    start();
  }
  void otherHostServes(const std::string& url = kOtherUrl) {
    const SystemClock clock;
    const auto store = site_.store();
    const auto taken =
        lifecycle::LeaderLease(*store, clock, "ctl2 (3f9c)", "10.20.0.2", url).take();
    ASSERT_TRUE(taken && taken->ours) << (taken ? taken->holder : taken.error().str());
  }
  void thisHostServes() {
    const SystemClock clock;
    const auto holder = app::holderOf(site_.options().state, app::hostName());
    ASSERT_TRUE(holder);
    const auto store = site_.store();
    const auto taken = lifecycle::LeaderLease(*store, clock, *holder, "10.20.0.1").take();
    ASSERT_TRUE(taken && taken->ours) << (taken ? taken->holder : taken.error().str());
  }
  /// Every order and look that needs the process of the serving host.
  std::vector<Said> askForTheProcess() {
    return {get("/nodes/gpu001/locator"),
            post("/nodes/gpu001/locator", {{"led", "read"}}),
            post("/nodes/gpu001/power", {{"action", "on"}}),
            get("/nodes/gpu001/boots"),
            get("/nodes/gpu001/boots/1/output"),
            post("/inventory/reload", nlohmann::json::object())};
  }
};

TEST_F(ApiStandby, whatNeedsTheLiveProcessIsAnsweredWithWhoServesAndWhere) {
  otherHostServes();
  for (const auto& said : askForTheProcess()) {
    ASSERT_EQ(said.status, 409) << said.body;
    EXPECT_EQ(said.header("Content-Type"), "application/problem+json");
    EXPECT_EQ(said.json["code"], "not-serving");
    EXPECT_EQ(said.json["serves"]["holder"], "ctl2 (3f9c)");
    EXPECT_EQ(said.json["serves"]["address"], "10.20.0.2");
    EXPECT_EQ(said.json["serves"]["url"], kOtherUrl);
    EXPECT_EQ(said.json["what_to_do"], std::string("ask it at ") + kOtherUrl);
    EXPECT_EQ(said.json["retryable"], false);
  }
}

/// The list above is the whole of them.
TEST_F(ApiStandby, theTableSaysWhatNeedsTheLiveProcess) {
  std::vector<std::string> needs;
  for (const auto& route : apiRoutes())
    if (route.needs_serving_host) needs.push_back(std::string(route.method) + " " + route.path);
  EXPECT_THAT(needs, ::testing::UnorderedElementsAre(
                         "GET /nodes/{name}/locator", "POST /nodes/{name}/locator",
                         "POST /nodes/{name}/power", "GET /nodes/{name}/boots",
                         "GET /nodes/{name}/boots/{boot}/output", "POST /inventory/reload"));
}

TEST_F(ApiStandby, looksAndTakesOrdersThatAreRows) {
  otherHostServes();
  EXPECT_EQ(get("/nodes").json["total"], 4);
  EXPECT_EQ(get("/nodes/gpu001/why").status, 200);
  EXPECT_EQ(get("/nodes/gpu001/power").status, 200) << "the last order is a row";
  EXPECT_EQ(get("/site").json["leader"]["url"], kOtherUrl);
  EXPECT_EQ(post("/quarantine", {{"nodes", "gpu003"}, {"reason", "loose cable"}}).status, 200);
  EXPECT_EQ(post("/wipe-grants", {{"nodes", "gpu003"}, {"reason", "new image"}}).status, 200);
  const auto run = post("/runs", {{"kind", "apply"}, {"nodes", "gpu001"}});
  ASSERT_EQ(run.status, 202) << run.body;
  const auto runs = lifecycle::openRuns(site_.options().storeUrl());
  ASSERT_TRUE(runs);
  const auto kept = (*runs)->read(run.json["id"].get<std::string>());
  ASSERT_TRUE(kept && *kept);
  EXPECT_EQ((*kept)->state, lifecycle::RunState::Queued) << "who serves carries it out";
}

/// The role is looked at first: whom it is no business learns nothing of hosts.
TEST_F(ApiStandby, whoMayNotIsRefusedForThatReason) {
  otherHostServes();
  const auto viewer = tokenOf("anna", Role::Viewer);
  const auto said = ask({.method = "POST",
                         .target = "/api/v1/nodes/gpu001/locator",
                         .headers = {"Content-Type: application/json"},
                         .body = R"({"led": "on"})",
                         .token = viewer});
  EXPECT_EQ(said.status, 403) << said.body;
  EXPECT_FALSE(said.json.contains("serves"));
}

/// An order that was sent to the wrong host has not used up its key.
TEST_F(ApiStandby, anOrderKeepsItsIdempotencyKeyForTheHostThatServes) {
  const auto order = [this] {
    return ask({.method = "POST",
                .target = "/api/v1/nodes/gpu001/locator",
                .headers = {"Content-Type: application/json", "Idempotency-Key: k1"},
                .body = R"({"led": "read"})"});
  };
  otherHostServes();
  EXPECT_EQ(order().status, 409);
  // As this host's process does once the other one has been silent for a lease.
  const auto holder = app::holderOf(site_.options().state, app::hostName());
  ASSERT_TRUE(holder);
  ASSERT_TRUE(site_.store()->putValue(
      "site/serves",
      "{\"holder\":\"" + *holder + "\",\"address\":\"10.20.0.1\",\"term\":2,\"beat\":0}"));
  const auto done = order();
  EXPECT_EQ(done.status, 202) << done.body;
}

TEST_F(ApiStandby, theHostThatServesDoesIt) {
  thisHostServes();
  EXPECT_EQ(get("/nodes/gpu001/boots").status, 200);
  EXPECT_EQ(get("/nodes/gpu001/locator").status, 200);
  EXPECT_EQ(post("/nodes/gpu001/locator", {{"led", "read"}}).status, 202);
  EXPECT_EQ(post("/inventory/reload", nlohmann::json::object()).status, 202);
  EXPECT_FALSE(get("/site").json["leader"].contains("url"));
}

TEST_F(ApiStandby, aServingHostWithoutAUrlIsNamedAllTheSame) {
  otherHostServes("");
  const auto said = get("/nodes/gpu001/boots");
  EXPECT_EQ(said.status, 409);
  EXPECT_EQ(said.json["serves"]["url"], "");
  EXPECT_THAT(said.json["what_to_do"].get<std::string>(), HasSubstr("--listen"));
}

TEST_F(ApiStandby, whereNobodyServesYetItIsSaidAndCanBeTriedAgain) {
  const auto said = get("/nodes/gpu001/boots");
  EXPECT_EQ(said.status, 503) << said.body;
  EXPECT_EQ(said.json["retryable"], true);
  EXPECT_THAT(said.json["detail"].get<std::string>(), HasSubstr("no host serves the site yet"));
}

/// A command says where to ask, and sends nothing there by itself.
TEST_F(ApiStandby, aCommandNamesTheServerToAsk) {
  otherHostServes();
  const auto asked = client(How::Http);
  ASSERT_NE(asked, nullptr);
  const auto led = asked->records().locate(NodeName("gpu001"), true);
  ASSERT_FALSE(led);
  EXPECT_EQ(led.error().code(), ErrorCode::Conflict);
  EXPECT_FALSE(led.error().canRetry());
  EXPECT_THAT(led.error().str(), HasSubstr("ctl2 (3f9c) serves the site"));
  EXPECT_THAT(led.error().str(), HasSubstr(std::string("--server ") + kOtherUrl));
  EXPECT_THAT(led.error().str(), HasSubstr("a token goes to whom you name"));
  const auto status = asked->status({});
  ASSERT_TRUE(status) << status.error().str();
  ASSERT_TRUE(status->leader && *status->leader);
  EXPECT_EQ((*status->leader)->api_url, kOtherUrl);
}

TEST(ApiUrl, isWhereOthersReachTheServer) {
  app::SiteFolder site;
  const auto url = [&](const std::string& listen, const std::string& announce) {
    ApiOptions api{site / "api.sock", listen, site / "access.conf"};
    api.announce = announce;
    const auto server = ApiServer::start(site.options(), api);
    if (!server) return "refused: " + server.error().str();
    auto out = (*server)->url();
    const auto port = std::to_string((*server)->port());
    if (const auto at = out.find(":" + port); at != std::string::npos) out.resize(at);
    return out;
  };
  EXPECT_EQ(url("", ""), "");
  EXPECT_EQ(url("127.0.0.1:0", ""), "") << "of no use elsewhere";
  EXPECT_EQ(url("0.0.0.0:0", ""), "https://" + app::hostName());
  EXPECT_EQ(url("127.0.0.1:0", kOtherUrl), kOtherUrl);
  EXPECT_THAT(url("", kOtherUrl), HasSubstr("there is none"));
  EXPECT_THAT(url("127.0.0.1:0", "http://ctl2:9443"), HasSubstr("write https://HOST:PORT"));
  EXPECT_THAT(url("127.0.0.1:0", "https://ctl2:9443/api"), HasSubstr("write https://HOST:PORT"));
  EXPECT_THAT(url("127.0.0.1:0", "https://anna:secret@ctl2"), HasSubstr("write https://HOST:PORT"));
}

/// The twin of the API's answer, of a command that asks nobody (--direct).
TEST_F(ApiStandby, ordersToABmcAreRefusedHereToo) {
  otherHostServes();
  std::atomic<bool> serves{true};
  std::jthread other([this, &serves] {  // it is alive: it renews
    const SystemClock clock;
    const auto store = site_.store();
    lifecycle::LeaderLease lease(*store, clock, "ctl2 (3f9c)", "10.20.0.2", kOtherUrl);
    ASSERT_TRUE(lease.take());
    while (serves) {
      EXPECT_TRUE(lease.renew());
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  });
  const NodeName node("gpu001");
  const auto ignore = [](const std::string&) {};
  const auto words = AllOf(HasSubstr("ctl2 (3f9c) serves the site, at 10.20.0.2"),
                           HasSubstr("run the command there"));
  auto options = site_.options();
  for (const auto command : {app::PowerCommand::On, app::PowerCommand::Off}) {
    const auto switched = app::powerNode(
        options, {.node = node, .command = command, .reason = "test", .confirmed = true}, ignore);
    ASSERT_FALSE(switched);
    EXPECT_EQ(switched.error().code(), ErrorCode::Conflict);
    EXPECT_THAT(switched.error().str(), words);
  }
  const auto lit = app::locateNode(options, node, true);
  ASSERT_FALSE(lit);
  EXPECT_THAT(lit.error().str(), words);
  EXPECT_THAT(app::setBootDevice(options, {node, {}}).error().str(), words);
  EXPECT_THAT(app::issueBmcCertificates(options, "gpu001", {}).error().str(), words);
  // Looking is none.
  const auto looked = app::locateNode(options, node, std::nullopt);
  ASSERT_FALSE(looked) << "nobody listens at its BMC";
  EXPECT_THAT(looked.error().str(), Not(HasSubstr("serves the site")));
  serves = false;
}

}  // namespace
}  // namespace muster::api
