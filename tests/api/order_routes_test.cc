// SPDX-License-Identifier: Apache-2.0
#include "tests/api/api_site.h"

namespace muster::api {
namespace {

using lifecycle::Subject;
using ::testing::HasSubstr;

class ApiOrders : public ApiSite {
 protected:
  std::string logText() {
    const auto events = site_.store()->lastEvents(200, nullptr);
    std::string out;
    for (const auto& event : *events) out += event.subject.str() + ": " + event.text + "\n";
    return out;
  }
};

TEST_F(ApiOrders, quarantineIsAddedListedAndRemovedAndTheLogSaysWho) {
  start();
  const auto added =
      ask({.method = "POST",
           .target = "/api/v1/quarantine",
           .headers = {"Content-Type: application/json", "X-Request-Id: ticket-4711"},
           .body = R"({"nodes": "gpu[001-002]", "reason": "smells burnt"})"});
  ASSERT_EQ(added.status, 200) << added.body;
  EXPECT_EQ(added.header("X-Request-Id"), "ticket-4711");
  EXPECT_EQ(added.items().size(), 2u);
  EXPECT_EQ(get("/quarantine").items()[1]["node"], "gpu002");
  EXPECT_THAT(get("/quarantine").items()[0]["by"].get<std::string>(),
              HasSubstr("(API, Unix socket, request ticket-4711)"));
  EXPECT_EQ(get("/nodes/gpu001").json["quarantine"]["reason"], "smells burnt");
  EXPECT_EQ(post("/quarantine/gpu001/remove", {{"reason", "board replaced"}}).status, 204);
  EXPECT_EQ(post("/quarantine/gpu001/remove", {{"reason", "again"}}).status, 404);
  EXPECT_EQ(get("/quarantine").items().size(), 1u);
  EXPECT_THAT(logText(), HasSubstr("board replaced"));
}

TEST_F(ApiOrders, holdsAndWipesAndBreakers) {
  start();
  ASSERT_TRUE(site_.store()->putFacts({{Subject(NodeName("gpu002")), FacetName("pool.hold"),
                                        "dimm swap", SystemClock().now(), "slurm", ""}}));
  const auto overridden = post("/holds/override", {{"nodes", "gpu002"}, {"reason", "PSU first"}});
  ASSERT_EQ(overridden.status, 200) << overridden.body;
  EXPECT_EQ(overridden.items()[0]["overridden"], true);
  EXPECT_EQ(post("/holds/override", {{"nodes", "gpu001"}, {"reason", "x"}}).status, 404);
  EXPECT_EQ(post("/wipe-grants", {{"nodes", "gpu003"}, {"reason", "new image"}}).status, 200);
  EXPECT_EQ(get("/wipe-grants").items().size(), 1u);
  EXPECT_EQ(post("/breakers/acknowledge", {{"reason", "looked"}}).items().size(), 0u);
  EXPECT_THAT(logText(), HasSubstr("(API, Unix socket, request "));
}

TEST_F(ApiOrders, bodiesAreCheckedAgainstTheTable) {
  start();
  const auto refused = [&](const std::string& body, const char* text, int status = 400,
                           const char* type = "application/json") {
    const auto said = ask({.method = "POST",
                           .target = "/api/v1/quarantine",
                           .headers = {std::string("Content-Type: ") + type},
                           .body = body});
    EXPECT_EQ(said.status, status) << body.substr(0, 80);
    EXPECT_THAT(said.body, HasSubstr(text)) << body.substr(0, 80);
  };
  refused(R"({"nodes": "gpu001"})", "reason");
  refused(R"({"nodes": "gpu001", "reason": "  "})", "empty");
  refused(R"({"nodes": "gpu001", "reason": "a\nb"})", "control");
  refused("{\"nodes\": \"gpu001\", \"reason\": \"a\u202eexe.gpj\"}", "turn words round");
  refused(R"({"nodes": "gpu001", "reason": ")" + std::string(3'000, 'x') + "\"}", "2000 bytes");
  refused(R"({"nodes": "gpu001", "reason": "x", "force": true})", "force");
  refused(R"({"nodes": ["gpu001"], "reason": "x"})", "hostlist");
  refused(R"({"nodes": "gpu001", "nodes": "gpu002", "reason": "x"})", "");
  refused(R"({"nodes": "gpu[001-", "reason": "x"})", "hostlist");
  refused(R"({"nodes": "gpu[001-009]", "reason": "x"})", "gpu004", 404);
  refused("[" + std::string(20'000, '[') + "]", "", 400);
  refused("not JSON", "");
  refused("[]", "no JSON object");
  refused(R"({"nodes": "gpu001", "reason": "x"})", "Content-Type", 415, "text/plain");
  refused(R"({"nodes": ")" + std::string(100'000, 'x') + "\"}", "", 413);
  EXPECT_EQ(get("/quarantine").items().size(), 0u);
}

TEST_F(ApiOrders, theSameOrderAgainIsAnsweredAndNotDoneAgain) {
  start();
  const Ask order{.method = "POST",
                  .target = "/api/v1/quarantine",
                  .headers = {"Content-Type: application/json", "Idempotency-Key: k1"},
                  .body = R"({"nodes": "gpu001", "reason": "once"})"};
  const auto first = ask(order);
  EXPECT_EQ(first.items()[0]["is_new"], true);
  server_->stop();
  start();  // a restart forgets none
  const auto again = ask(order);
  EXPECT_EQ(again.items()[0]["is_new"], true) << "the answer of the first time";
  EXPECT_EQ(again.header("Idempotent-Replayed"), "true");
  EXPECT_THAT(logText(), ::testing::Not(HasSubstr("quarantine: again")));
  auto other = order;
  other.body = R"({"nodes": "gpu002", "reason": "other"})";
  EXPECT_EQ(ask(other).status, 409);
  EXPECT_EQ(get("/quarantine").items().size(), 1u);
}

TEST_F(ApiOrders, anOrderForSomethingThatHasChangedIsNotCarriedOut) {
  fill();
  start();
  const auto order = [&](const std::string& resource, const nlohmann::json& body,
                         const std::string& etag) {
    return ask({.method = "POST",
                .target = "/api/v1" + resource,
                .headers = {"Content-Type: application/json", "If-Match: " + etag},
                .body = jsonText(body)});
  };
  const nlohmann::json held = {{"nodes", "gpu001"}, {"reason", "PSU"}};
  const auto seen = get("/quarantine").header("ETag");
  EXPECT_EQ(order("/quarantine", held, seen).status, 200);
  const auto late = order("/quarantine/gpu001/remove", {{"reason", "mine"}}, seen);
  EXPECT_EQ(late.status, 412);
  EXPECT_EQ(late.json["code"], "conflict");
  EXPECT_EQ(get("/quarantine").items().size(), 1u);
  EXPECT_EQ(order("/quarantine/gpu001/remove", {{"reason", "replaced"}},
                  "\"other\", " + get("/quarantine").header("ETag"))
                .status,
            204);
  EXPECT_EQ(order("/quarantine", held, "*").status, 200);
  EXPECT_EQ(order("/runs/r-nothing/cancel", nlohmann::json::object(), seen).status, 404);
}

}  // namespace
}  // namespace muster::api
