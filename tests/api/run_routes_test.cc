// SPDX-License-Identifier: Apache-2.0
// Runs over the API: asked for, looked at, cancelled; who may say yes.
#include "lifecycle/store/runs.h"
#include "tests/api/api_site.h"

namespace muster::api {
namespace {

using ::testing::StartsWith;

class ApiRuns : public ApiSite {};

TEST_F(ApiRuns, areAskedForLookedAtAndCancelled) {
  start();
  EXPECT_EQ(get("/runs").items().size(), 0u);
  const auto made =
      post("/runs", {{"kind", "apply"}, {"nodes", "gpu[001-002]"}, {"confirm", true}});
  ASSERT_EQ(made.status, 202) << made.body;
  const std::string id = made.json["id"];
  EXPECT_EQ(made.header("Location"), "/api/v1/runs/" + id);
  EXPECT_EQ(made.json["state"], "queued") << "nobody serves the site here";
  EXPECT_EQ(made.json["asked_by"]["way"], "unix");
  EXPECT_EQ(get("/runs/" + id).json["nodes"], "gpu[001-002]");
  EXPECT_EQ(get("/runs?open=true").items().size(), 1u);
  EXPECT_EQ(get("/runs/" + id + "/plan").status, 404) << "it has none yet";
  EXPECT_FALSE(get("/runs/" + id + "/events").items().empty());
  const auto paused = post("/runs/" + id + "/pause", nlohmann::json::object());
  EXPECT_EQ(paused.status, 200) << paused.body;
  EXPECT_EQ(post("/runs/" + id + "/cancel", nlohmann::json::object()).json["state"], "cancelled");
  EXPECT_EQ(post("/runs/" + id + "/cancel", nlohmann::json::object()).status, 409);
  EXPECT_EQ(get("/runs?open=true").items().size(), 0u);
  EXPECT_EQ(get("/runs/r-nothing").status, 404);
}

TEST_F(ApiRuns, theSameOrderTwiceIsOneRun) {
  start();
  const Ask order{.method = "POST",
                  .target = "/api/v1/runs",
                  .headers = {"Content-Type: application/json", "Idempotency-Key: k1"},
                  .body = R"({"kind": "apply", "nodes": "gpu001"})"};
  const std::string id = ask(order).json["id"];
  EXPECT_THAT(id, StartsWith("r-"));
  EXPECT_EQ(ask(order).json["id"], id);
  EXPECT_EQ(get("/runs").items().size(), 1u);
}

TEST_F(ApiRuns, refuseWhatCannotBe) {
  start();
  EXPECT_EQ(post("/runs", {{"kind", "dance"}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "apply"}, {"nodes", "gpu9"}}).status, 404);
  EXPECT_EQ(post("/runs", {{"kind", "apply"}, {"after_restart", "maybe"}}).status, 400);
  const std::string id = post("/runs", {{"kind", "apply"}}).json["id"];
  EXPECT_EQ(post("/runs/" + id + "/approve", {{"plan_hash", "0123"}}).status / 100, 4);
  EXPECT_EQ(post("/runs/" + id + "/approve", nlohmann::json::object()).status, 400);
}

/// What waits for people begins by an admin's word, and the site says so until it is known.
TEST_F(ApiRuns, anOverrideIsLoudUntilItIsAcknowledged) {
  start();
  const std::string id = post("/runs", {{"kind", "apply"}}).json["id"];
  EXPECT_EQ(post("/runs/" + id + "/override", {{"plan_hash", "h"}, {"reason", "fire"}}).status, 409)
      << "it waits for nobody";
  EXPECT_EQ(post("/runs/" + id + "/override", {{"plan_hash", "h"}}).status, 400);
  EXPECT_EQ(post("/runs/" + id + "/acknowledge", nlohmann::json::object()).status, 409);
  const auto runs = lifecycle::openRuns(site_.options().storeUrl());
  ASSERT_TRUE(runs) << runs.error().str();
  auto run = **(*runs)->read(id);
  run.state = lifecycle::RunState::NeedsApproval;
  run.reason = lifecycle::RunReason::AwaitsApproval;
  run.plan_hash = "h";
  run.approvals_needed = 2;
  ASSERT_TRUE((*runs)->exchange(run, "planned"));
  EXPECT_EQ(post("/runs/" + id + "/override", {{"plan_hash", "old"}, {"reason", "fire"}}).status,
            409);
  EXPECT_TRUE(get("/site").json["overrides"].empty());
  const auto done = post("/runs/" + id + "/override", {{"plan_hash", "h"}, {"reason", "fire"}});
  ASSERT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(done.json["state"], "approved");
  EXPECT_EQ(done.json["overrides"][0]["against"], "awaits-approval");
  ASSERT_EQ(get("/site").json["overrides"].size(), 1u);
  EXPECT_THAT(get("/site").json["overrides"][0], ::testing::HasSubstr("fire"));
  EXPECT_EQ(post("/runs/" + id + "/acknowledge", nlohmann::json::object()).status, 200);
  EXPECT_TRUE(get("/site").json["overrides"].empty());
}

TEST_F(ApiRuns, anErasureIsOfOneNodeThatIsNamedTwice) {
  start();
  const auto order = [](const std::string& nodes, const std::string& again,
                        const std::string& reason) {
    return nlohmann::json{
        {"kind", "erase"}, {"nodes", nodes}, {"confirm_node", again}, {"reason", reason}};
  };
  EXPECT_EQ(post("/runs", order("gpu001", "gpu002", "leaves")).status, 400);
  EXPECT_EQ(post("/runs", order("", "", "leaves")).status, 400);
  EXPECT_EQ(post("/runs", order("gpu[001-002]", "gpu[001-002]", "leaves")).status, 400);
  EXPECT_EQ(post("/runs", order("gpu999", "gpu999", "leaves")).status, 404);
  EXPECT_EQ(
      post("/runs", {{"kind", "erase"}, {"nodes", "gpu001"}, {"confirm_node", "gpu001"}}).status,
      400)
      << "without a reason";
  EXPECT_EQ(post("/runs", {{"kind", "apply"}, {"confirm_node", "gpu001"}}).status, 400);
  for (const nlohmann::json& disks : {nlohmann::json{""}, {" "}, {"S1", "S1"}}) {
    auto bad = order("gpu001", "gpu001", "leaves");
    bad["disks"] = disks;
    EXPECT_EQ(post("/runs", bad).status, 400) << disks;
  }
  EXPECT_EQ(get("/runs").items().size(), 0u);
  auto meant = order("gpu001", "gpu001", "leaves the site");
  meant["disks"] = {"S1", "S2"};
  const auto made = post("/runs", meant);
  ASSERT_EQ(made.status, 202) << made.body;
  EXPECT_EQ(made.json["kind"], "erase");
  EXPECT_EQ(made.json["erase"]["reason"], "leaves the site");
  EXPECT_EQ(made.json["erase"]["disks"].size(), 2u);
}

/// Pages go back in time.
TEST_F(ApiRuns, pagesOfRuns) {
  start();
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(post("/runs", {{"kind", "apply"}}).json["id"]);
  const auto first = get("/runs?limit=2");
  ASSERT_EQ(first.items().size(), 2u);
  EXPECT_EQ(first.items()[0]["id"], ids[2]);
  const auto second = get("/runs?limit=2&cursor=" + first.json["next"].get<std::string>());
  ASSERT_EQ(second.items().size(), 1u);
  EXPECT_EQ(second.items()[0]["id"], ids[0]);
}

}  // namespace
}  // namespace muster::api
