// SPDX-License-Identifier: Apache-2.0
// Validations over the API: who may ask for gates on which nodes, and what is told of them.
#include "api/tokens.h"
#include "app/runs/runs.h"
#include "lifecycle/store/measurements.h"
#include "tests/api/api_site.h"
#include "tests/validate/fleet_history.h"

#include <future>

namespace muster::api {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class ApiValidations : public ApiSite {
 protected:
  void SetUp() override {
    std::string text(kSite);
    const std::string pools = "pools:\n", profile = "pool: batch}";
    text.insert(text.find(pools),
                "gates:\n  burn-in: {level: quick, groups: [host]}\n"
                "  fabric: {level: quick, groups: [system]}\n");
    text.replace(text.find(profile), profile.size(), "gates: [burn-in, fabric], pool: batch}");
    site_.write("cluster.yaml", text);
  }
  Said as(const std::string& token, const std::string& resource, const nlohmann::json& body = {}) {
    return ask({.method = body.is_null() ? "GET" : "POST",
                .target = "/api/v1" + resource,
                .headers = {"Content-Type: application/json"},
                .body = body.is_null() ? "" : jsonText(body),
                .token = token});
  }
};

TEST_F(ApiValidations, areAskedForAndToldGateByGate) {
  start();
  EXPECT_THAT(get("/validations").items(), IsEmpty());
  const auto made = post("/validations", {{"nodes", "gpu[001-002]"}, {"gates", {"burn-in"}}});
  ASSERT_EQ(made.status, 202) << made.body;
  const std::string id = made.json["id"];
  EXPECT_EQ(made.header("Location"), "/api/v1/validations/" + id);
  EXPECT_EQ(made.json["kind"], "validate");
  EXPECT_EQ(made.json["validate"]["gates"], nlohmann::json{"burn-in"});
  EXPECT_EQ(get("/runs/" + id).json["kind"], "validate") << "it is a run";
  ASSERT_EQ(post("/runs", {{"kind", "apply"}}).status, 202);
  EXPECT_EQ(get("/validations").items().size(), 1u) << "of other kinds none";
  auto told = get("/validations/" + id);
  ASSERT_EQ(told.status, 200) << told.body;
  EXPECT_EQ(told.json["run"]["id"], id);
  ASSERT_EQ(told.json["results"].size(), 2u);
  for (const auto& result : told.json["results"]) EXPECT_EQ(result["result"], "pending");
  const auto fact = [](const char* node, const char* value, WallTime at) {
    return lifecycle::Fact{
        lifecycle::Subject(NodeName(node)), FacetName("gate.burn-in"), value, at, "agent", ""};
  };
  const auto now = SystemClock().now();
  ASSERT_TRUE(site_.store()->putFacts({fact("gpu001", "pass:abc", now + std::chrono::hours(1)),
                                       fact("gpu002", "pass:abc", now - std::chrono::hours(24))}));
  told = get("/validations/" + id);
  EXPECT_EQ(told.json["results"][0]["result"], "pass");
  EXPECT_EQ(told.json["results"][1]["result"], "pending") << "that was before it was asked for";
  EXPECT_FALSE(told.json["results"][1].contains("at"));
  ASSERT_TRUE(site_.store()->putFacts({fact("gpu002", "fail:abc", now + std::chrono::hours(1))}));
  EXPECT_EQ(get("/validations/" + id).json["results"][1]["result"], "fail");
}

TEST_F(ApiValidations, withoutNamesMeanAllGatesOfTheirProfiles) {
  start();
  const std::string id = post("/validations", {{"nodes", "gpu001"}}).json["id"];
  std::vector<std::string> gates;
  for (const auto& result : get("/validations/" + id).json["results"])
    gates.push_back(result["gate"]);
  EXPECT_THAT(gates, UnorderedElementsAre("burn-in", "fabric"));
  const std::string none = post("/validations", {{"nodes", "login1"}}).json["id"];
  EXPECT_TRUE(get("/validations/" + none).json["results"].empty())
      << "its profile has no gates: the run says so";
}

TEST_F(ApiValidations, refuseWhatMakesNoSense) {
  start();
  EXPECT_EQ(post("/validations", nlohmann::json::object()).status, 400);
  EXPECT_EQ(post("/validations", {{"nodes", ""}}).status, 400);
  EXPECT_EQ(post("/validations", {{"nodes", "gpu999"}}).status, 404);
  EXPECT_EQ(post("/validations", {{"nodes", "gpu[1-"}}).status, 400);
  EXPECT_EQ(post("/validations", {{"nodes", "gpu001"}, {"gates", {"a", "a"}}}).status, 400);
  const auto unknown = post("/validations", {{"nodes", "gpu001"}, {"gates", {"burn-in", "soak"}}});
  EXPECT_EQ(unknown.status, 400);
  EXPECT_THAT(unknown.body, HasSubstr("has a gate soak; they have burn-in, fabric"));
  EXPECT_EQ(post("/runs", {{"kind", "validate"}, {"nodes", "gpu001"}, {"gates", {"soak"}}}).status,
            400);
  EXPECT_EQ(post("/validations", {{"nodes", "gpu001"}, {"disks", {"S1"}}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "validate"}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "apply"}, {"gates", {"burn-in"}}}).status, 400);
  EXPECT_THAT(get("/runs").items(), IsEmpty());
  const std::string other = post("/runs", {{"kind", "apply"}}).json["id"];
  EXPECT_EQ(get("/validations/" + other).status, 404) << "it is no validation";
  EXPECT_EQ(get("/validations/r-none").status, 404);
  EXPECT_EQ(post("/runs", {{"kind", "validate"}, {"nodes", "gpu001"}}).status, 202);
}

TEST_F(ApiValidations, theSameOrderTwiceIsOneRun) {
  start();
  const Ask order{.method = "POST",
                  .target = "/api/v1/validations",
                  .headers = {"Content-Type: application/json", "Idempotency-Key: k1"},
                  .body = R"({"nodes": "gpu001"})"};
  const std::string id = ask(order).json["id"];
  EXPECT_THAT(id, StartsWith("r-"));
  EXPECT_EQ(ask(order).json["id"], id);
  EXPECT_EQ(get("/validations").items().size(), 1u);
}

TEST_F(ApiValidations, needTheVerbValidate) {
  start();
  for (const auto role : {Role::Viewer, Role::Approver}) {
    const auto token = tokenOf(std::string(toString(role)), role);
    const auto refused = as(token, "/validations", {{"nodes", "gpu001"}});
    EXPECT_EQ(refused.status, 403) << refused.body;
    EXPECT_THAT(refused.json["roles"], UnorderedElementsAre("operator", "robot", "admin"));
    EXPECT_EQ(as(token, "/validations").status, 200);
  }
  EXPECT_EQ(as(tokenOf("r", Role::Robot), "/validations", {{"nodes", "gpu001"}}).status, 202);
}

/// Who has a part of the site tests that part, and sees what was asked for there.
TEST_F(ApiValidations, areOfTheScopeOfWhoAsks) {
  start();
  const auto token = tokenOf("rack1", Role::Operator, {.racks = {"r1"}});
  const auto own = as(token, "/validations", {{"nodes", "gpu[001-002]"}});
  ASSERT_EQ(own.status, 202) << own.body;
  EXPECT_EQ(as(token, "/validations", {{"nodes", "gpu003"}}).status, 404);
  EXPECT_EQ(as(token, "/validations", {{"nodes", "gpu[002-003]"}}).status, 404);
  const std::string others = post("/validations", {{"nodes", "gpu[002-003]"}}).json["id"];
  EXPECT_EQ(get("/validations").items().size(), 2u);
  EXPECT_EQ(as(token, "/validations").items().size(), 1u);
  EXPECT_EQ(as(token, "/validations/" + own.json["id"].get<std::string>()).status, 200);
  EXPECT_EQ(as(token, "/validations/" + others).status, 404);
  EXPECT_EQ(as(token, "/runs", {{"kind", "validate"}, {"nodes", "gpu001"}}).status, 403)
      << "runs are of the whole site";
}

TEST_F(ApiValidations, checksSayWhereWhatTheyExpectComesFrom) {
  start();
  const auto said = get("/checks");
  ASSERT_EQ(said.status, 200) << said.body;
  std::map<std::string, nlohmann::json> by_id;
  for (const auto& check : said.items()) by_id[check["id"]] = check;
  for (const auto* id : {"gpu.count", "host.memory", "rdma.pair", "bmc.power"}) {
    ASSERT_TRUE(by_id.contains(id)) << id;
    for (const auto* member : {"what", "expected_from", "what_to_do"})
      EXPECT_NE(by_id[id][member], "") << id << ' ' << member;
  }
  EXPECT_EQ(by_id["gpu.count"]["expected_from"], "the profile's expect");
}

TEST_F(ApiValidations, measurementsAreHeldAgainstTheirPeers) {
  start();
  auto store = lifecycle::openMeasurements(site_.options().storeUrl());
  ASSERT_TRUE(store);
  std::vector<lifecycle::MeasuredSet> sets;
  const auto now = SystemClock().now();
  for (int node = 1; node <= 16; ++node)  // fewer are not evaluated
    for (int run = 0; run < 20; ++run)
      sets.push_back({now - std::chrono::hours(24 * (20 - run)),
                      NodeName(fmt::format("gpu{:03}", node)),
                      "gate.burn-in",
                      "gpu-node, H100",
                      "r1",
                      {{"host.stream/triad_gbytes_per_s",
                        node == 3 && run > 10 ? 250 : 400 + (run * 7 + node * 3) % 5 * 0.3}}});
  ASSERT_TRUE((*store)->add(sets));
  const auto said = get("/measurements?days=60");
  ASSERT_EQ(said.status, 200) << said.body;
  EXPECT_EQ(said.json["sets"], 16 * 20);
  ASSERT_FALSE(said.json["alarms"].empty()) << said.body;
  for (const auto& alarm : said.json["alarms"])
    EXPECT_THAT(alarm["subject"].get<std::string>(), StartsWith("gpu003"));
  EXPECT_EQ(said.json["left_out"], "");
  EXPECT_EQ(get("/measurements?days=0").status, 400);
  for (const auto* wrong : {"-1", "nan", "inf", "1001", "0x1", "one", "1e9"})
    EXPECT_EQ(get(std::string("/measurements?false_alarms=") + wrong).status, 400) << wrong;
  EXPECT_EQ(get("/measurements?days=60&false_alarms=2.5").json["false_alarms_expected"], 2.5);
  const auto page = get("/measurements/report.html?days=60");
  ASSERT_EQ(page.status, 200) << page.body;
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.header("Content-Security-Policy"), HasSubstr("sandbox"));
  EXPECT_THAT(page.body, HasSubstr("gpu003"));
  const auto junit = get("/measurements/junit.xml?days=60");
  EXPECT_EQ(junit.header("Content-Type"), "application/xml; charset=utf-8");
  EXPECT_THAT(junit.body, HasSubstr("<failure"));
  const auto of_rack = tokenOf("rita", Role::Viewer, {.racks = {"r1"}});
  for (const auto* resource :
       {"/measurements", "/measurements/report.html", "/measurements/junit.xml"})
    EXPECT_EQ(as(of_rack, resource, nullptr).status, 403) << resource;
}

/// Many reports at once are made one after the other, and whoever asks for something else meanwhile
/// is answered.
TEST_F(ApiValidations, aReportIsMadeBesideTheReader) {
  test::FleetHistory fleet;
  fleet.nodes = 512;
  fleet.from = std::chrono::floor<std::chrono::milliseconds>(SystemClock().now()) -
               std::chrono::hours(24 * 50);
  start();
  ASSERT_TRUE((*lifecycle::openMeasurements(site_.options().storeUrl()))->add(fleet.make(3)));
  std::vector<std::future<Said>> reports;
  for (int days = 91; days < 111; ++days)
    reports.push_back(std::async(std::launch::async, [this, days] {
      return ask({.target = fmt::format("/api/v1/measurements?days={}", days), .record = false});
    }));
  int meanwhile = 0;
  const auto waits = [&] {
    return std::ranges::any_of(reports, [](const auto& each) {
      return each.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
    });
  };
  while (waits()) {
    EXPECT_EQ(ask({.target = "/api/v1/me", .record = false}).status, 200);
    ++meanwhile;
  }
  EXPECT_GT(meanwhile, 0);
  int made = 0;
  for (auto& each : reports) {
    const auto said = each.get();
    made += said.status == 200;
    if (said.status == 200) continue;
    EXPECT_EQ(said.status, 503) << said.body;
    EXPECT_EQ(said.json["retryable"], true);
  }
  EXPECT_GE(made, 8);
}

}  // namespace
}  // namespace muster::api
