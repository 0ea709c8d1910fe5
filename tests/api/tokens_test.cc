// SPDX-License-Identifier: Apache-2.0
// Tokens: over HTTPS and the socket, with a scope, at their end, revoked.
#include "api/tokens.h"

#include "lifecycle/store/runs.h"
#include "tests/api/api_site.h"

namespace muster::api {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ApiTokens : public ApiSite {
 protected:
  std::string create(const TokenRequest& request, WallTime now = SystemClock().now()) {
    const auto store = site_.store();
    const auto made = Tokens(*store).create(request, {"test", "test"}, now);
    EXPECT_TRUE(made) << made.error().str();
    return made ? made->secret : "";
  }
  Said with(const std::string& token, const std::string& target, const std::string& method = "GET",
            const std::string& body = {}) {
    return ask({.method = method,
                .target = "/api/v1" + target,
                .headers = {"Content-Type: application/json"},
                .body = body,
                .token = token,
                .over_https = true});
  }
  /// Until the server has seen what was written beside it, which it does every second.
  Said until(int status, const std::string& token, const std::string& target) {
    Said said;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(90);
    do said = with(token, target);
    while (said.status != status && std::chrono::steady_clock::now() < limit);
    return said;
  }
};

TEST_F(ApiTokens, areKnownByTheirHashAlone) {
  const auto secret = create({"ci", Role::Viewer, {}, 1});
  EXPECT_GE(secret.size(), 43u) << "256 bits";
  const auto kept = site_.store()->getValue(kTokensKey);
  ASSERT_TRUE(kept && *kept);
  EXPECT_THAT(**kept, Not(HasSubstr(secret)));
  EXPECT_THAT(**kept, HasSubstr(io::sha256Hex(secret)));
  const auto events = site_.store()->lastEvents(10, nullptr);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_THAT(events->front().text, HasSubstr("test creates token ci"));
}

/// Revoking a login takes its words back, for as long as somebody may ask; ending it does not.
TEST_F(ApiTokens, aRevokedLoginIsKeptAndOneThatHasEndedIsNot) {
  const auto store = site_.store();
  Tokens tokens(*store);
  const auto now = SystemClock().now();
  const auto login = [&](const std::string& name, WallTime at) {
    Identity who{"oidc:" + name, Way::Oidc, Role::Approver, {}, at + std::chrono::hours(1)};
    who.person = name;
    who.account = "oidc:" + name;
    auto made = tokens.logIn({who, "test"}, at);
    EXPECT_TRUE(made);
    return *std::move(made);
  };
  const auto revoked = login("anna", now), ended = login("ben", now);
  ASSERT_TRUE(tokens.revoke(revoked.token.id, "test", now));
  ASSERT_TRUE(*tokens.logOut(ended.secret, "test", now));
  (void)login("zoe", now + std::chrono::hours(24));
  const auto actor = [](const CreatedToken& of) {
    const auto who = identityOf(of.token);
    return lifecycle::RunActor{.principal = who.principal,
                               .way = std::string(toString(who.way)),
                               .address = "10.0.0.9",
                               .person = who.person,
                               .account = who.account,
                               .token = who.token};
  };
  const auto known = app::RevokedTokens::read(*store);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->whyVoid(actor(revoked)), "oidc:anna of anna was revoked");
  EXPECT_EQ(known->whyVoid(actor(ended)), "");
  for (std::size_t i = 0; i <= kMaxLoginsOfOne; ++i) (void)login("anna", now);
  EXPECT_EQ(app::RevokedTokens::read(*store)->whyVoid(actor(revoked)),
            "oidc:anna of anna was revoked")
      << "her newer logins push out older ones, and not this";
  (void)login("zoe", now + std::chrono::hours(24 * 92));
  EXPECT_EQ(app::RevokedTokens::read(*store)->whyVoid(actor(revoked)), "") << "at last";
}

TEST_F(ApiTokens, nobodyIsAnsweredWithoutOne) {
  const auto secret = create({"ci", Role::Viewer, {}, 1});
  start("127.0.0.1:0");
  EXPECT_EQ(until(200, secret, "/me").json["principal"], "token:ci");
  for (const auto& bad : {std::string(), std::string("muster_"), secret + "x", secret.substr(1),
                          "muster_" + std::string(40, 'A'), std::string(4'000, 'x')}) {
    const auto said = with(bad, "/nodes");
    EXPECT_EQ(said.status, 401) << bad.substr(0, 60);
    EXPECT_THAT(said.header("WWW-Authenticate"), HasSubstr("Bearer"));
  }
  EXPECT_EQ(with("", "/nothing").status, 401) << "an unknown sender does not learn what there is";
  EXPECT_EQ(ask({.target = "/metrics", .over_https = true}).status, 401);
  EXPECT_EQ(ask({.target = "/healthz", .over_https = true}).status, 200);
  // On the socket a token that does not count is not replaced by the peer.
  EXPECT_EQ(ask({.target = "/api/v1/me", .token = "muster_wrong"}).status, 401);
  EXPECT_EQ(ask({.target = "/api/v1/me", .token = secret}).json["way"], "token");
}

TEST_F(ApiTokens, aRefusalNamesTheRolesThatWouldDo) {
  const auto viewer = create({"v", Role::Viewer, {}, 1});
  const auto robot = create({"r", Role::Robot, {}, 1});
  start("127.0.0.1:0");
  until(200, viewer, "/me");
  const auto body = R"({"nodes": "gpu001", "reason": "x"})";
  const auto said = with(viewer, "/quarantine", "POST", body);
  EXPECT_EQ(said.status, 403);
  EXPECT_EQ(said.json["roles"], nlohmann::json::array({"operator", "admin"}));
  EXPECT_EQ(with(robot, "/quarantine", "POST", body).status, 403);
  EXPECT_EQ(with(viewer, "/tokens").json["roles"], nlohmann::json::array({"admin"}));
  EXPECT_EQ(with(viewer, "/nodes").status, 200);
}

TEST_F(ApiTokens, aScopeIsAllThatIsSeenAndOrdered) {
  const auto secret = create({"rack2", Role::Operator, {{}, {"r2"}, "gpu001"}, 1});
  ASSERT_TRUE(
      site_.store()->addEvent({0, SystemClock().now(), lifecycle::EventKind::Note,
                               lifecycle::Subject(NodeName("gpu002")), "", "not for rack2"}));
  start("127.0.0.1:0");
  until(200, secret, "/me");
  EXPECT_EQ(with(secret, "/nodes").json["total"], 3) << "gpu001, gpu003, login1";
  EXPECT_EQ(with(secret, "/site").json["nodes"], 3);
  EXPECT_EQ(with(secret, "/nodes/gpu002").status, 404);
  EXPECT_EQ(with(secret, "/nodes?nodes=gpu002").status, 404);
  EXPECT_EQ(with(secret, "/certificates").json["total"], 3);
  EXPECT_THAT(with(secret, "/events").body, Not(HasSubstr("not for rack2")));
  EXPECT_EQ(with(secret, "/events?after=0&subject=gpu002").json,
            with(secret, "/events?after=0&subject=nosuch").json)
      << "not even that it exists";
  EXPECT_EQ(with(secret, "/rollouts").status, 403) << "of the whole site";
  EXPECT_EQ(with(secret, "/cluster/why").status, 403);
  const auto order = [&](const char* nodes) {
    return with(secret, "/quarantine", "POST",
                fmt::format(R"({{"nodes": "{}", "reason": "x"}})", nodes))
        .status;
  };
  EXPECT_EQ(order("gpu002"), 404);
  EXPECT_EQ(order("gpu[001-003]"), 404);
  EXPECT_EQ(with(secret, "/quarantine").json["total"], 0) << "none of them";
  EXPECT_EQ(order("gpu[001,003]"), 200);
}

TEST_F(ApiTokens, endAndAreRevoked) {
  const auto over =
      create({"old", Role::Admin, {}, 1}, SystemClock().now() - std::chrono::hours(2));
  const auto secret = create({"ci", Role::Admin, {}, 1});
  start("127.0.0.1:0");
  until(200, secret, "/me");
  EXPECT_EQ(with(over, "/me").status, 401);
  const auto store = site_.store();
  EXPECT_FALSE(
      Tokens(*store).create({"ci", Role::Viewer, {}, 1}, {"test", "test"}, SystemClock().now()))
      << "a name is one token's";
  ASSERT_TRUE(Tokens(*store).revoke("ci", "test", SystemClock().now()));
  EXPECT_EQ(until(401, secret, "/me").status, 401);
  EXPECT_FALSE(Tokens(*store).revoke("ci", "test", SystemClock().now()));
}

/// What the store logs after a token's end does not reach a stream that was opened before.
TEST_F(ApiTokens, anOpenStreamEndsWithItsToken) {
  const auto secret = create({"ci", Role::Viewer, {}, 1});
  start("127.0.0.1:0");
  until(200, secret, "/me");
  const auto command = fmt::format(
      "exec curl -skN --max-time 60 -H 'Authorization: Bearer {}' "
      "https://127.0.0.1:{}/api/v1/events/stream",
      secret, server_->port());
  auto* stream = ::popen(command.c_str(), "r");
  ASSERT_TRUE(stream);
  char line[4096] = {};
  ASSERT_TRUE(std::fgets(line, sizeof line, stream)) << "it is open";
  const auto store = site_.store();
  ASSERT_TRUE(Tokens(*store).revoke("ci", "test", SystemClock().now()));
  EXPECT_EQ(until(401, secret, "/me").status, 401);
  ASSERT_TRUE(store->addEvent({0, SystemClock().now(), lifecycle::EventKind::Note,
                               lifecycle::Subject(NodeName("gpu001")), "", "LATE"}));
  std::string rest;
  while (std::fgets(line, sizeof line, stream)) rest += line;
  EXPECT_THAT(rest, Not(HasSubstr("LATE")));
  EXPECT_EQ(::pclose(stream), 0) << "the server has ended it, no timeout of the client";
}

TEST_F(ApiTokens, anEmptyNameIsOfNoPool) {
  const auto store = site_.store();
  for (const auto& scope :
       {Scope{{""}, {}, ""}, Scope{{}, {" "}, ""}, Scope{{","}, {}, ""}, Scope{{"a,b"}, {}, ""},
        Scope{{}, {"r1\n"}, ""}, Scope{{}, {}, "gpu[1"}}) {
    const auto made = Tokens(*store).create({"e", Role::Operator, scope, 1}, {"test", "test"},
                                            SystemClock().now());
    ASSERT_FALSE(made) << toJson(scope);
    EXPECT_EQ(made.error().code(), ErrorCode::InvalidInput);
    EXPECT_FALSE(checkScope(scope)) << "the one rule";
  }
  EXPECT_TRUE(checkScope({{"batch"}, {"row 7"}, "gpu[001-004]"}));
}

TEST_F(ApiTokens, areMadeAndEndedOverTheApi) {
  start("127.0.0.1:0");
  const auto made =
      post("/tokens", {{"name", "page"}, {"role", "viewer"}, {"racks", {"r1"}}, {"hours", 2}});
  ASSERT_EQ(made.status, 200) << made.body;
  const std::string secret = made.json["token"];
  EXPECT_EQ(made.header("Cache-Control"), "no-store");
  EXPECT_EQ(until(200, secret, "/me").json["scope"]["racks"][0], "r1");
  EXPECT_FALSE(get("/tokens").items()[0].contains("token"));
  EXPECT_EQ(post("/tokens", {{"name", "x y"}, {"role", "viewer"}}).status, 400);
  EXPECT_EQ(post("/tokens", {{"name", "x"}, {"role", "king"}}).status, 400);
  EXPECT_EQ(post("/tokens", {{"name", "x"}, {"role", "viewer"}, {"nodes", "gpu[1-"}}).status, 400);
  EXPECT_EQ(ask({.method = "DELETE", .target = "/api/v1/tokens/page"}).status, 204);
  EXPECT_EQ(until(401, secret, "/me").status, 401);
}

/// Whoever asked for a run does not approve it with a token: neither with their own, nor with one
/// that they have made for somebody else and so have seen.
TEST_F(ApiTokens, nobodyApprovesWithASecondTokenWhatTheyAskedFor) {
  const auto token = [&](const char* name, const char* by, const char* owner,
                         Role role = Role::Admin) {
    const auto made = Tokens(*site_.store())
                          .create({name, role, {}, 1, owner}, {std::string(by) + "@ctl1", by},
                                  SystemClock().now());
    EXPECT_TRUE(made) << made.error().str();
    return made ? made->secret : "";
  };
  const auto annas = token("work", "anna", ""), annas_second = token("phone", "anna", ""),
             given = token("given", "anna", "ben"), bens = token("ben", "root", "ben"),
             carls = token("carl", "root", "carl"), roots = token("spare", "root", "");
  start("127.0.0.1:0");
  until(200, roots, "/me");
  const auto waiting = [&](const std::string& id) {
    const auto runs = lifecycle::openRuns(site_.options().storeUrl());
    auto run = **(*runs)->read(id);
    run.state = lifecycle::RunState::NeedsApproval;
    run.plan_hash = "h";
    run.approvals_needed = 2;
    ASSERT_TRUE((*runs)->exchange(run, "planned"));
  };
  const auto approve = [&](const std::string& secret, const std::string& id) {
    return with(secret, "/runs/" + id + "/approve", "POST", R"({"plan_hash": "h"})");
  };
  const auto asked = [&](const std::string& secret) {
    const auto said = with(secret, "/runs", "POST", R"({"kind": "apply"})");
    EXPECT_EQ(said.status, 202) << said.body;
    const std::string id = said.json.value("id", "");
    waiting(id);
    return id;
  };
  const auto id = asked(annas);
  for (const auto& secret : {annas, annas_second, given}) {
    const auto refused = approve(secret, id);
    EXPECT_EQ(refused.status, 403) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("anna has asked for run"));
  }
  EXPECT_EQ(approve(bens, id).json["state"], "needs-approval") << "one of two";
  EXPECT_EQ(approve(bens, id).json["approvals"].size(), 1u) << "twice is once";
  EXPECT_EQ(approve(carls, id).json["state"], "approved");
  EXPECT_EQ(get("/runs/" + id).json["approvals"][1]["person"], "carl");
  // On the socket root is root, whose own token is no second person either.
  const std::string mine = post("/runs", {{"kind", "apply"}}).json["id"];
  waiting(mine);
  EXPECT_EQ(approve(roots, mine).status, 403);
  EXPECT_EQ(approve(bens, mine).status, 403) << "root has made it, and seen it";
  EXPECT_EQ(approve(given, mine).json["state"], "needs-approval");
}

/// An operator rolls out what is declared; a change that nobody has reviewed, and a wipe, are an
/// admin's.
TEST_F(ApiTokens, anOperatorRollsOutWhatIsDeclaredOnly) {
  const auto secret = create({"op", Role::Operator, {}, 1});
  start("127.0.0.1:0");
  until(200, secret, "/me");
  const auto asked = [&](const nlohmann::json& more) {
    nlohmann::json body = {{"kind", "rollout"}, {"nodes", "gpu001"}};
    body.update(more);
    return with(secret, "/runs", "POST", jsonText(body)).status;
  };
  EXPECT_EQ(asked({{"change", "drivers: {}"}}), 403);
  EXPECT_EQ(asked({{"driver", "nvidia"}, {"wipe_reason", "new image"}}), 403);
  EXPECT_EQ(asked({{"driver", "nvidia"}, {"reason", "x"}}), 400);
  EXPECT_EQ(asked({{"rollback", "r-none"}}), 400) << "with nodes";
  EXPECT_EQ(asked({{"driver", "nvidia"}}), 202);
  EXPECT_EQ(with(secret, "/runs", "POST", R"({"kind": "rollout", "rollback": "r0"})").status, 404);
  EXPECT_EQ(with(secret, "/runs", "POST",
                 R"({"kind": "erase", "nodes": "gpu001", "confirm_node": "gpu001", "reason": "x"})")
                .status,
            403);
}

/// Two tokens of one person are one approval.
TEST_F(ApiTokens, twoTokensOfOnePersonAreOneApproval) {
  lifecycle::Run run;
  run.plan_hash = "h";
  run.asked_by = {"anna", "unix", "ctl1"};
  run.approvals = {{{"token:a", "token", "", "ben", {"root"}}, {}, "h", false},
                   {{"token:b", "token", "", "ben", {"root"}}, {}, "h", false},
                   {{"ben", "unix", "ctl1"}, {}, "h", false}};
  EXPECT_EQ(approvalsOf(run), 1u);
  run.approvals.push_back({{"token:c", "token", "", "anna", {"root"}}, {}, "h", false});
  run.approvals.push_back({{"token:d", "token", "", "dora", {"anna"}}, {}, "h", false});
  EXPECT_EQ(approvalsOf(run), 1u) << "those of its author";
  run.approvals.push_back({{"token:e", "token", "", "Anna", {"root"}}, {}, "h", false});
  run.approvals.push_back({{"token:f", "token", "", "BEN", {"root"}}, {}, "h", false});
  EXPECT_EQ(approvalsOf(run), 1u) << "in another case it is the same person";
  run.approvals.push_back({{"carl", "unix", "ctl1"}, {}, "h", false});
  EXPECT_EQ(approvalsOf(run), 2u);
}

/// Whoever made a token has seen it, and so each that it makes: anna makes one for zoe, by which
/// one for mike is made.
TEST_F(ApiTokens, whoMadeTheTokenThatMadeATokenHasSeenIt) {
  const auto store = site_.store();
  Tokens tokens(*store);
  const auto now = SystemClock().now();
  const auto zoe =
      tokens.create({.name = "z", .role = Role::Admin, .owner = "zoe"}, {"anna@ctl1", "anna"}, now);
  ASSERT_TRUE(zoe) << zoe.error().str();
  const auto by = identityOf(zoe->token);
  const auto mike = tokens.create({.name = "m", .role = Role::Approver, .owner = "mike"},
                                  {"token:z", by.person, by.issuers}, now);
  ASSERT_TRUE(mike) << mike.error().str();
  EXPECT_THAT(mike->token.issuers, ElementsAre("zoe", "anna"));
  const auto kept = tokens.list();
  ASSERT_TRUE(kept);
  EXPECT_THAT(kept->back().issuers, ElementsAre("zoe", "anna"));
  const auto of = identityOf(kept->back());
  const lifecycle::RunActor approver{of.principal, "token", "", of.person, of.issuers};
  EXPECT_TRUE(mayBeOnePerson({"anna", "unix", "ctl1"}, approver));
  EXPECT_TRUE(mayBeOnePerson({"token:z", "token", "", "zoe", {"anna"}}, approver));
  EXPECT_FALSE(mayBeOnePerson({"carl", "unix", "ctl1"}, approver));
}

/// What an older muster has written names its maker only.
TEST_F(ApiTokens, ofAnOlderMusterBelongToWhoMadeThem) {
  const auto row = [](const char* name, const char* by) {
    return nlohmann::json{
        {"id", name},
        {"name", name},
        {"role", "admin"},
        {"scope",
         {{"pools", nlohmann::json::array()}, {"racks", nlohmann::json::array()}, {"nodes", ""}}},
        {"created_at", "2026-01-01T00:00:00.000Z"},
        {"created_by", by},
        {"expires_at", "2036-01-01T00:00:00.000Z"},
        {"revoked", false},
        {"sha256", name}};
  };
  const auto tokens = tokensFromText(
      jsonText(nlohmann::json{row("a", "anna@ctl1"), row("b", "token:a (API, 10.0.0.9, request 1)"),
                              row("c", "token:b (")}));
  ASSERT_TRUE(tokens) << tokens.error().str();
  for (const auto& token : *tokens) {
    EXPECT_EQ(token.owner, "anna") << token.name;
    EXPECT_THAT(token.issuers, Contains("anna")) << token.name;
  }
}

}  // namespace
}  // namespace muster::api
