// SPDX-License-Identifier: Apache-2.0
// Tokens: over HTTPS and the socket, with a scope, at their end, revoked.
#include "api/tokens.h"

#include "tests/api/api_site.h"

namespace muster::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ApiTokens : public ApiSite {
 protected:
  std::string create(const TokenRequest& request, WallTime now = SystemClock().now()) {
    const auto store = site_.store();
    const auto made = Tokens(*store).create(request, "test", now);
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
  EXPECT_FALSE(Tokens(*store).create({"ci", Role::Viewer, {}, 1}, "test", SystemClock().now()))
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
  for (const auto& scope : {Scope{{""}, {}, ""}, Scope{{}, {" "}, ""}})
    EXPECT_FALSE(
        Tokens(*store).create({"e", Role::Operator, scope, 1}, "test", SystemClock().now()));
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

}  // namespace
}  // namespace muster::api
