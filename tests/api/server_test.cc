// SPDX-License-Identifier: Apache-2.0
// What the API answers, over its real socket, to curl.
#include "api/server.h"

#include "tests/api/api_site.h"

#include <condition_variable>
#include <mutex>

#include <sys/stat.h>

namespace muster::api {
namespace {

using lifecycle::Subject;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class Api : public ApiSite {};

TEST_F(Api, answersOfEveryResource) {
  fill();
  start();
  const auto site = get("/site");
  ASSERT_EQ(site.status, 200) << site.body;
  EXPECT_EQ(site.json["name"], "hall-2");
  EXPECT_EQ(site.json["nodes"], 4);
  EXPECT_EQ(site.json["findings"], 1);
  EXPECT_EQ(get("/me").json["role"], "admin");

  const auto nodes = get("/nodes");
  ASSERT_EQ(nodes.status, 200) << nodes.body;
  ASSERT_EQ(nodes.items().size(), 4u);
  EXPECT_EQ(nodes.items()[0]["node"], "gpu001");
  EXPECT_EQ(nodes.items()[0]["pool"], "in");
  EXPECT_EQ(nodes.items()[0]["pool_name"], "batch");
  const auto node = get("/nodes/gpu002");
  ASSERT_EQ(node.status, 200) << node.body;
  EXPECT_EQ(node.json["unit"], 12);
  EXPECT_EQ(node.json["hold"]["hold"], "dimm swap [anna]");
  const auto why = get("/nodes/gpu002/why");
  ASSERT_EQ(why.status, 200) << why.body;
  EXPECT_EQ(why.json["subject"], "gpu002");
  EXPECT_EQ(get("/nodes/gpu001/facts").items().size(), 2u);
  EXPECT_EQ(get("/nodes/gpu002/findings").items()[0]["text"], "GPU 3 fell off the bus");
  EXPECT_EQ(get("/nodes/gpu001/events").items()[0]["text"], "looked at by anna");
  EXPECT_EQ(get("/nodes/gpu001/history").status, 200);
  EXPECT_EQ(get("/nodes/gpu001/certificate").status, 404);
  EXPECT_EQ(get("/nodes/gpu001/measurements").items()[0]["numbers"]["gpu.hbm/hbm_gb_s@3"], 3012.5);
  EXPECT_EQ(get("/cluster/why").status, 200);
  EXPECT_EQ(get("/cluster/findings").items().size(), 0u);

  EXPECT_EQ(get("/racks").items()[0]["hostlist"], "gpu[001-002]");
  EXPECT_EQ(get("/pools").items().size(), 2u);
  EXPECT_EQ(get("/pools/batch").json["partition"], "gpu");
  EXPECT_EQ(get("/profiles").items()[1]["nodes"], 1);
  EXPECT_EQ(get("/findings?severity=error").items().size(), 1u);
  EXPECT_EQ(get("/findings?severity=info").items().size(), 0u);
  EXPECT_EQ(get("/rollouts").items().size(), 0u);
  EXPECT_EQ(get("/rollouts/current").status, 404);
  EXPECT_EQ(get("/images").json["not_built"], nlohmann::json::array({"bookworm"}));
  EXPECT_EQ(get("/certificates").items()[0]["valid"], false);
  EXPECT_EQ(get("/revocations").json["number"], 0);
  EXPECT_GT(get("/audit/head").json["sequence"], 0);
  EXPECT_EQ(get("/quarantine").items().size(), 0u);
  EXPECT_EQ(get("/holds").items()[0]["node"], "gpu002");
  EXPECT_EQ(get("/breakers").items().size(), 0u);
  EXPECT_EQ(get("/wipe-grants").items()[0]["node"], "gpu003");
  EXPECT_EQ(get("/tokens").items().size(), 0u);
  for (const auto* target : {"/healthz", "/readyz", "/openapi.json", "/metrics"})
    EXPECT_EQ(ask({.target = target}).status, 200) << target;
}

/// A filter that names nothing is a mistake, not an empty fleet.
TEST_F(Api, saysWhatIsWrongWithARequest) {
  start();
  const auto expect = [&](const std::string& target, int status, const char* code,
                          const char* text) {
    const auto said = get(target);
    EXPECT_EQ(said.status, status) << target;
    EXPECT_EQ(said.header("Content-Type"), "application/problem+json");
    ASSERT_TRUE(said.json.is_object()) << said.body;
    EXPECT_EQ(said.json["code"], code) << target;
    EXPECT_THAT(said.json["detail"].get<std::string>(), HasSubstr(text)) << target;
    EXPECT_EQ(said.json["request_id"], said.header("X-Request-Id"));
  };
  expect("/nodes?pool=nope", 404, "not-found", "no pool nope");
  expect("/nodes?rack=r9", 404, "not-found", "r9");
  expect("/nodes?nodes=gpu%5B1-", 400, "invalid-input", "hostlist");
  expect("/nodes?nodes=gpu%5B0000000-9999999%5D", 400, "invalid-input", "");
  expect("/nodes?nodse=gpu001", 400, "invalid-input", "nodse");
  expect("/nodes?limit=0", 400, "invalid-input", "limit");
  expect("/nodes?limit=1&limit=2", 400, "invalid-input", "given twice");
  expect("/nodes?limit=1&l%69mit=2", 400, "invalid-input", "given twice");
  expect("/nodes?limit=99999999999999999999", 400, "invalid-input", "limit");
  expect("/nodes?cursor=nobody", 400, "invalid-input", "cursor");
  expect("/findings?cursor=-1", 400, "invalid-input", "cursor");
  expect("/nodes/gpu999", 404, "not-found", "gpu999");
  expect("/nodes/gpu999/why", 404, "not-found", "gpu999");
  expect("/nothing", 404, "unknown-resource", "no such resource");
  const auto wrong = ask({.method = "DELETE", .target = "/api/v1/nodes"});
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("Allow"), "GET");
}

TEST_F(Api, anEtagSavesTheBodyAndOutlivesTheSecond) {
  fill();
  start();
  const auto first = get("/nodes");
  const auto etag = first.header("ETag");
  ASSERT_FALSE(etag.empty());
  const auto again = ask({.target = "/api/v1/nodes", .headers = {"If-None-Match: " + etag}});
  EXPECT_EQ(again.status, 304);
  EXPECT_TRUE(again.body.empty());
  // Who keeps the body learns all the same that it is still so.
  EXPECT_EQ(first.header("Muster-As-Of"), first.json["as_of"].get<std::string>());
  const auto seen_at = again.header("Muster-As-Of");
  ASSERT_FALSE(seen_at.empty());
  EXPECT_GE(seen_at, first.header("Muster-As-Of"));
  ASSERT_TRUE(site_.store()->putFacts(
      {{Subject(NodeName("gpu003")), FacetName("pool"), "in", SystemClock().now(), "test", ""}}));
  // A fleet is read anew after ten times as long as that takes: the slower the machine, the later.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(90);
  while (std::chrono::steady_clock::now() < limit) {
    const auto changed = ask({.target = "/api/v1/nodes", .headers = {"If-None-Match: " + etag}});
    if (changed.status == 200) return;
  }
  FAIL() << "the change was never shown";
}

TEST_F(Api, compressesWhatIsLargeForWhoTakesIt) {
  start();
  const auto plain = ask({.target = "/openapi.json"});
  EXPECT_EQ(plain.header("Content-Encoding"), "");
  const auto packed =
      ask({.target = "/openapi.json", .headers = {"Accept-Encoding: gzip"}, .record = false});
  EXPECT_EQ(packed.header("Content-Encoding"), "gzip");
  EXPECT_LT(packed.body.size(), plain.body.size() / 3);
  EXPECT_EQ(ask({.method = "HEAD", .target = "/api/v1/nodes", .record = false}).status, 200);
}

TEST_F(Api, thePageIsFilesOfTheBinaryAndNothingElse) {
  start();
  const auto page = ask({.target = "/", .record = false});
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.header("Content-Type"), HasSubstr("text/html"));
  EXPECT_THAT(page.header("Content-Security-Policy"), HasSubstr("default-src 'none'"));
  EXPECT_EQ(
      ask({.target = "/", .headers = {"If-None-Match: " + page.header("ETag")}, .record = false})
          .status,
      304);
  for (const auto* path : {"/../etc/passwd", "/%2e%2e/etc/passwd", "/..%2fetc/passwd",
                           "//etc/passwd", "/./index.html", "/etc/passwd", "/index.html/"}) {
    const auto said = ask({.target = path, .record = false});
    EXPECT_TRUE(said.status == 404 || said.status == 400) << path << " " << said.status;
    EXPECT_THAT(said.body, ::testing::Not(HasSubstr("root:"))) << path;
  }
}

TEST_F(Api, aSecondServerOnTheSocketIsToldSo) {
  start();
  const auto second = ApiServer::start(site_.options(), apiOptions());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::Conflict);
  EXPECT_EQ(get("/me").status, 200);
  server_->stop();
  EXPECT_FALSE(std::filesystem::exists(site_ / "api.sock"));
  start();
  EXPECT_EQ(get("/me").status, 200);
}

TEST_F(Api, anAddressThatNoInterfaceHasIsNoPlaceToListen) {
  // TEST-NET-3 (RFC 5737): nobody's.
  const auto refused = ApiServer::start(site_.options(), apiOptions("203.0.113.7:0"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(refused.error().str(), HasSubstr("no interface of this host has that address"));
}

TEST_F(Api, namesThatNobodyHasAreSaidOnce) {
  site_.write("access.conf",
              "user root admin pools=batsh\nuser no-such-user-of-this-host viewer\n");
  ASSERT_TRUE(Tokens(*site_.store())
                  .create({"ci", Role::Robot, {{}, {"r99"}, ""}, 1}, {"test", "test"},
                          SystemClock().now()));
  auto options = apiOptions();
  std::mutex guard;
  std::condition_variable changed;
  std::vector<std::string> said;
  options.notice = [&](const std::string& text) {
    const std::lock_guard lock(guard);
    said.push_back(text);
    changed.notify_all();
  };
  auto started = ApiServer::start(site_.options(), options);
  ASSERT_TRUE(started) << started.error().str();
  server_ = std::move(*started);
  std::unique_lock lock(guard);
  ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(60), [&] { return said.size() >= 3; }));
  EXPECT_THAT(said, UnorderedElementsAre(
                        AllOf(HasSubstr("access.conf:1:1: its scope names what the inventory has "
                                        "not: pool batsh")),
                        HasSubstr("access.conf:2:1: this host knows no user no-such-user"),
                        HasSubstr("token ci: its scope names what the inventory has not: rack "
                                  "r99")));
  lock.unlock();
  EXPECT_EQ(get("/me").json["role"], "admin") << "it is a warning";
  server_.reset();
}

/// It answers, and says what is wrong, from the first minute of a site on.
TEST_F(Api, anInventoryWithErrorsIsSaidAndReadAgain) {
  site_.write("cluster.yaml", "cluster: {name: x}\nnodes: 3\n");
  start();
  EXPECT_EQ(ask({.target = "/healthz"}).status, 200);
  EXPECT_EQ(ask({.target = "/readyz"}).status, 503);
  const auto nodes = get("/nodes");
  EXPECT_EQ(nodes.status, 503);
  EXPECT_EQ(nodes.json["code"], "unavailable");
  const auto refused = post("/inventory/reload", nlohmann::json::object());
  EXPECT_EQ(refused.status, 400);
  EXPECT_FALSE(refused.json["diagnostics"].empty());
  EXPECT_GT(refused.json["diagnostics"][0]["line"], 0);
  site_.write("cluster.yaml", kSite);
  EXPECT_EQ(post("/inventory/reload", nlohmann::json::object()).status, 202);
  EXPECT_EQ(get("/nodes").status, 200);
  site_.write("cluster.yaml", "cluster: {name: x}\nnodes: 3\n");
  server_->reload();
  EXPECT_EQ(get("/nodes").status, 200) << "the one in use stays";
  const auto inventory = get("/inventory");
  EXPECT_EQ(inventory.json["file_differs"], true);
  EXPECT_FALSE(inventory.json["diagnostics"].empty());
}

}  // namespace
}  // namespace muster::api
