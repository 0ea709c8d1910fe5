// SPDX-License-Identifier: Apache-2.0
// Runs over the API: asked for, looked at, cancelled; who may say yes.
#include "api/tokens.h"
#include "app/site/embedded_site.h"
#include "lifecycle/store/runs.h"
#include "tests/api/api_site.h"

namespace muster::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ApiRuns : public ApiSite {
 protected:
  Said postAs(const std::string& token, const std::string& resource, const nlohmann::json& body) {
    return ask({.method = "POST",
                .target = "/api/v1" + resource,
                .headers = {"Content-Type: application/json"},
                .body = jsonText(body),
                .token = token});
  }
  /// As a plan leaves it that others must agree to.
  void needApproval(const std::string& id, const std::string& hash, std::size_t approvals = 2) {
    const auto runs = lifecycle::openRuns(site_.options().storeUrl());
    ASSERT_TRUE(runs) << runs.error().str();
    auto run = **(*runs)->read(id);
    run.state = lifecycle::RunState::NeedsApproval;
    run.reason = lifecycle::RunReason::AwaitsApproval;
    run.plan_hash = hash;
    run.approvals_needed = approvals;
    ASSERT_TRUE((*runs)->exchange(run, "planned"));
  }
};

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
  needApproval(id, "h");
  EXPECT_EQ(post("/runs/" + id + "/override", {{"plan_hash", "old"}, {"reason", "fire"}}).status,
            400)
      << "no hash";
  EXPECT_EQ(
      post("/runs/" + id + "/override", {{"plan_hash", "0123456789"}, {"reason", "fire"}}).status,
      409);
  EXPECT_TRUE(get("/site").json["overrides"].empty());
  const auto done = post("/runs/" + id + "/override", {{"plan_hash", "h"}, {"reason", "fire"}});
  ASSERT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(done.json["state"], "approved");
  EXPECT_EQ(done.json["overrides"][0]["against"], "awaits-approval");
  ASSERT_EQ(get("/site").json["overrides"].size(), 1u);
  EXPECT_THAT(get("/site").json["overrides"][0], ::testing::HasSubstr("fire"));
  const auto own = post("/runs/" + id + "/acknowledge", nlohmann::json::object());
  EXPECT_EQ(own.status, 403) << own.body;
  EXPECT_EQ(own.json["what_to_do"], "somebody else has to: `muster run acknowledge " + id + "`");
  EXPECT_EQ(get("/site").json["overrides"].size(), 1u);
  const auto known = postAs(tokenOf("bert", Role::Approver), "/runs/" + id + "/acknowledge",
                            nlohmann::json::object());
  EXPECT_EQ(known.status, 200) << known.body;
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

/// A refusal says who may, and the plan may be named by its first digits.
TEST_F(ApiRuns, arePlansNamedAlikeByWhoeverAsks) {
  start();
  const std::string hash = "0123456789abcdef0123456789abcdef";
  const std::string id = post("/runs", {{"kind", "apply"}}).json["id"];
  needApproval(id, hash);
  const auto own = post("/runs/" + id + "/approve", {{"plan_hash", hash}});
  EXPECT_EQ(own.status, 403) << own.body;
  EXPECT_EQ(own.json["what_to_do"], "somebody else has to: `muster run approve " + id + "`");
  EXPECT_THAT(own.json["detail"].get<std::string>(), Not(HasSubstr("somebody else has to")));
  EXPECT_THAT(own.json["roles"], ::testing::Contains("approver"));
  const auto bert = tokenOf("bert", Role::Approver);
  const auto words = postAs(bert, "/runs/" + id + "/approve", {{"plan_hash", "the newest"}});
  EXPECT_EQ(words.status, 400) << words.body;
  EXPECT_THAT(words.json["detail"].get<std::string>(), HasSubstr("the first 8 digits of it"));
  EXPECT_EQ(postAs(bert, "/runs/" + id + "/approve", {{"plan_hash", "0123456"}}).status, 400);
  const auto wrong = postAs(bert, "/runs/" + id + "/approve", {{"plan_hash", "ffffffffff"}});
  EXPECT_EQ(wrong.status, 409);
  EXPECT_THAT(wrong.json["what_to_do"].get<std::string>(), HasSubstr("muster run show " + id));
  const auto approved = postAs(bert, "/runs/" + id + "/approve", {{"plan_hash", "0123456789"}});
  ASSERT_EQ(approved.status, 200) << approved.body;
  EXPECT_EQ(approved.json["approvals"][0]["plan_hash"], hash);
  EXPECT_EQ(approved.json["approvals"][0]["void_because"], "");
  const auto confirm =
      postAs(tokenOf("op", Role::Operator), "/runs/" + id + "/confirm", {{"plan_hash", hash}});
  EXPECT_EQ(confirm.status, 403);
  EXPECT_THAT(confirm.json["what_to_do"].get<std::string>(), HasSubstr("approve it instead"));
}

/// What the run's row keeps of a token is enough to know, later and elsewhere, that it was revoked.
TEST_F(ApiRuns, anApprovalIsVoidOnceItsTokenIsRevoked) {
  start();
  const std::string id = post("/runs", {{"kind", "apply"}}).json["id"];
  needApproval(id, "0123456789abcdef");
  const auto bert = tokenOf("bert", Role::Approver);
  ASSERT_EQ(postAs(bert, "/runs/" + id + "/approve", {{"plan_hash", "0123456789"}}).status, 200);
  const auto runs = lifecycle::openRuns(site_.options().storeUrl());
  ASSERT_TRUE(runs) << runs.error().str();
  const auto by = (*(*runs)->read(id))->approvals.at(0).by;
  const auto store = site_.store();
  EXPECT_EQ(app::RevokedTokens::read(*store)->whyVoid(by), "");
  ASSERT_TRUE(Tokens(*store).revoke("bert", "test", SystemClock().now()));
  EXPECT_EQ(app::RevokedTokens::read(*store)->whyVoid(by), "token:bert of bert was revoked");
  // It is shown so at once, and its row is as it was until the run is to begin.
  const auto shown = get("/runs/" + id).json["approvals"][0]["void_because"];
  EXPECT_EQ(shown, "token:bert of bert was revoked");
  EXPECT_EQ(get("/runs").items()[0]["approvals"][0]["void_because"], shown);
  EXPECT_EQ((*(*runs)->read(id))->approvals.at(0).void_because, "");
  app::EmbeddedSite embedded(site_.options());
  EXPECT_EQ(embedded.run(id)->approvals.at(0).void_because, shown.get<std::string>());
  EXPECT_EQ(embedded.runs({})->at(0).approvals.at(0).void_because, shown.get<std::string>());
  // Another token of the same name is another one.
  ASSERT_FALSE(tokenOf("bert", Role::Approver).empty());
  EXPECT_EQ(app::RevokedTokens::read(*store)->whyVoid(by), "token:bert of bert was revoked");
}

TEST_F(ApiRuns, aRolloutsGateIsAcceptedOnlyWhereOneWaits) {
  start();
  const std::string id =
      post("/runs", {{"kind", "rollout"}, {"nodes", "gpu[001-002]"}, {"driver", "nvidia-575"}})
          .json["id"];
  EXPECT_EQ(post("/runs/" + id + "/resume", {{"accept", "known"}}).status, 409);
  EXPECT_EQ(post("/runs/" + id + "/resume", {{"accept", " "}}).status, 400);
  const std::string apply = post("/runs", {{"kind", "apply"}}).json["id"];
  EXPECT_EQ(post("/runs/" + apply + "/resume", {{"accept", "known"}}).status, 400);
  for (const auto* member : {"on_failure", "on_inconclusive"})
    EXPECT_EQ(
        post(
            "/runs",
            {{"kind", "rollout"}, {"nodes", "gpu001"}, {"driver", "nvidia-575"}, {member, "laugh"}})
            .status,
        400)
        << member;
}

TEST_F(ApiRuns, anIsolationIsAskedForWithItsNumbers) {
  start();
  const auto made = post("/runs", {{"kind", "isolate"},
                                   {"nodes", "gpu[001-002]"},
                                   {"engine", "rdma"},
                                   {"min_gbps", 350.5},
                                   {"seed", 7}});
  ASSERT_EQ(made.status, 202) << made.body;
  EXPECT_EQ(made.json["isolate"]["min_gbps"], 350.5);
  EXPECT_EQ(made.json["isolate"]["seed"], 7);
  EXPECT_EQ(made.json["isolate"]["until"], "cleared");
  EXPECT_EQ(post("/runs", {{"kind", "isolate"}, {"until", "good"}}).json["isolate"]["until"],
            "good");
  EXPECT_EQ(post("/runs", {{"kind", "isolate"}, {"until", "never"}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "apply"}, {"until", "good"}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "isolate"}}).status, 202) << "all that may be disturbed";
  EXPECT_EQ(post("/runs", {{"kind", "isolate"}, {"engine", "mpi"}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "isolate"}, {"min_gbps", -1}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "isolate"}, {"min_gbps", "fast"}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "isolate"}, {"min_gbps", 1e300}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "apply"}, {"engine", "rdma"}}).status, 400);
  EXPECT_EQ(get("/runs").items().size(), 3u);
  EXPECT_EQ(postAs(tokenOf("bert", Role::Approver), "/runs", {{"kind", "isolate"}}).status, 403);
}

TEST_F(ApiRuns, aBuildOfImagesIsAboutNoNodes) {
  start();
  const auto made =
      post("/runs", {{"kind", "image-build"}, {"image", "bookworm"}, {"over", "none"}});
  ASSERT_EQ(made.status, 202) << made.body;
  EXPECT_EQ(made.json["image_build"]["image"], "bookworm");
  EXPECT_EQ(made.json["image_build"]["over"], "none");
  EXPECT_EQ(post("/runs", {{"kind", "image-build"}}).status, 202) << "all that is missing";
  EXPECT_EQ(post("/runs", {{"kind", "image-build"}, {"over", "none"}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "image-build"}, {"nodes", "gpu001"}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "apply"}, {"image", "bookworm"}}).status, 400);
  EXPECT_EQ(get("/runs?kind=image-build").items().size(), 2u);
}

TEST_F(ApiRuns, aFirmwareRetryNamesItsNodesAndSaysWhy) {
  start();
  const auto order = [](const char* kind) {
    return nlohmann::json{{"kind", kind}, {"nodes", "gpu001"}, {"reason", "reseated"}};
  };
  const auto made = post("/runs", order("firmware-retry"));
  ASSERT_EQ(made.status, 202) << made.body;
  EXPECT_EQ(made.json["kind"], "firmware-retry");
  EXPECT_EQ(made.json["firmware_retry"]["reason"], "reseated");
  EXPECT_EQ(get("/runs?kind=firmware-retry").items().size(), 1u);
  EXPECT_EQ(post("/runs", {{"kind", "firmware-retry"}, {"reason", "reseated"}}).status, 400);
  EXPECT_EQ(post("/runs", {{"kind", "firmware-retry"}, {"nodes", "gpu001"}}).status, 400);
  EXPECT_EQ(post("/runs", order("apply")).status, 400) << "a reason belongs to other kinds";
  auto with_disks = order("firmware-retry");
  with_disks["disks"] = {"S1"};
  EXPECT_EQ(post("/runs", with_disks).status, 400) << "disks belong to an erasure";
  EXPECT_EQ(postAs(tokenOf("bert", Role::Approver), "/runs", order("firmware-retry")).status, 403);
}

TEST_F(ApiRuns, bmcsAreChangedByWhoMayRotate) {
  std::string text(kSite);
  const std::string password = "password: {file: bmc-password}";
  text.replace(text.find(password), password.size(), password + ", rotate_to: {file: bmc-next}");
  site_.write("cluster.yaml", text);
  site_.write("bmc-next", "hobbes\n");
  std::filesystem::permissions(
      site_ / "bmc-next", std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  start();
  const nlohmann::json nodes = {{"nodes", "gpu[001-002]"}};
  for (const std::string kind : {"bmc-password", "bmc-certificate"}) {
    const auto made = post("/runs", {{"kind", kind}, {"nodes", "gpu001"}});
    ASSERT_EQ(made.status, 202) << made.body;
    EXPECT_EQ(made.json["kind"], kind);
    EXPECT_EQ(post("/runs", {{"kind", kind}}).status, 400) << "its nodes are named";
    const auto refused = postAs(tokenOf("bert-" + kind, Role::Operator), "/runs",
                                {{"kind", kind}, {"nodes", "gpu001"}});
    EXPECT_EQ(refused.status, 403);
    EXPECT_EQ(refused.json["roles"], nlohmann::json{"admin"});
  }
  const auto rotated = post("/bmcs/password/rotate", nodes);
  ASSERT_EQ(rotated.status, 202) << rotated.body;
  EXPECT_EQ(rotated.json["kind"], "bmc-password");
  EXPECT_EQ(rotated.header("Location"), "/api/v1/runs/" + rotated.json["id"].get<std::string>());
  EXPECT_EQ(post("/bmcs/certificate/issue", nodes).json["kind"], "bmc-certificate");
  EXPECT_EQ(post("/bmcs/certificate/issue", {{"nodes", "gpu999"}}).status, 404);
  EXPECT_EQ(postAs(tokenOf("otto", Role::Operator), "/bmcs/password/rotate", nodes).status, 403);
  const auto of_rack = tokenOf("rita", Role::Admin, {.racks = {"r2"}});
  EXPECT_EQ(postAs(of_rack, "/bmcs/password/rotate", nodes).status, 404) << "another rack's";
  EXPECT_EQ(postAs(of_rack, "/bmcs/password/rotate", {{"nodes", "gpu003"}}).status, 202);
  EXPECT_EQ(get("/runs?kind=bmc-password").items().size(), 3u);
}

TEST_F(ApiRuns, whereNoNextPasswordIsDeclaredNoneIsAskedFor) {
  start();
  const auto refused = post("/bmcs/password/rotate", {{"nodes", "gpu001"}});
  EXPECT_EQ(refused.status, 404) << refused.body;
  EXPECT_THAT(refused.json["detail"].get<std::string>(), HasSubstr("rotate_to"));
  EXPECT_EQ(get("/runs").items().size(), 0u);
}

}  // namespace
}  // namespace muster::api
