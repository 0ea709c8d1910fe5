// SPDX-License-Identifier: Apache-2.0
// What a command says when a server refuses, is old, is something else, or dies.
#include "api/remote_site.h"

#include "base/io/unix_client.h"
#include "tests/api/api_site.h"
#include "tests/api/connect.h"
#include "tests/api/scripted_server.h"

#include <atomic>

namespace muster::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RemoteSites : public ApiSite {
 protected:
  Result<std::unique_ptr<RemoteSite>> connect(std::string token = {}) {
    return connectTo(site_ / "api.sock", std::move(token));
  }
  /// The server knows it within a second or two.
  std::string tokenOf(const std::string& role) {
    std::string token = post("/tokens", {{"name", role}, {"role", role}}).json.at("token");
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < limit &&
           ask({.target = "/api/v1/me", .token = token, .record = false}).status != 200) {
    }
    return token;
  }
  /// A server that knows who asks and then says `answer` to everything else.
  ScriptedServer scripted(std::string answer) {
    return {site_ / "api.sock",
            ScriptedServer::ofVersion("9.9", [answer](const std::string&) { return answer; })};
  }
  Error statusError(const std::string& answer) {
    const auto server = scripted(answer);
    const auto site = connect();
    EXPECT_TRUE(site) << site.error().str();
    const auto status = (*site)->status({});
    EXPECT_FALSE(status);
    return status ? Error(ErrorCode::Internal, "it was believed") : status.error();
  }
};

TEST_F(RemoteSites, aRoleThatMayNotIsToldWhichWould) {
  fill();
  start();
  auto site = connect(tokenOf("viewer"));
  ASSERT_TRUE(site) << site.error().str();
  EXPECT_TRUE((*site)->status({}));
  EXPECT_EQ(*(*site)->principal(), "token:viewer");
  const auto refused = (*site)->addToQuarantine("gpu001", "PSU");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  EXPECT_THAT(refused.error().str(),
              AllOf(HasSubstr("token:viewer"), HasSubstr("operator or admin")));
  app::ProgressListener nobody;
  EXPECT_EQ((*site)->plan({"", false}, nobody).error().code(), ErrorCode::Denied);
  const auto unknown = connect("muster_" + std::string(64, '0'));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::Denied);
  EXPECT_THAT(unknown.error().str(), HasSubstr("token is unknown, over or revoked"));
}

TEST_F(RemoteSites, overHttpsTheSitesAuthorityIsWhatIsBelieved) {
  fill();
  start("127.0.0.1:0");
  RemoteSiteOptions options;
  options.url = fmt::format("https://localhost:{}", server_->port());
  options.token = tokenOf("viewer");
  options.ca_pem = *io::readFile(site_.options().state / "ca/ca.crt");
  auto site = RemoteSite::connect(std::move(options));
  ASSERT_TRUE(site) << site.error().str();
  EXPECT_EQ((*site)->status({})->nodes.size(), 4u);
  EXPECT_EQ((*site)->server().state, std::filesystem::canonical(site_.options().state));
  RemoteSiteOptions other;
  other.url = fmt::format("https://localhost:{}", server_->port());
  other.token = "muster_x";
  const auto ca = io::selfSigned("another site", {"localhost"});
  ASSERT_TRUE(ca) << ca.error().str();
  other.ca_pem = ca->certificate_pem;
  const auto refused = RemoteSite::connect(std::move(other));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied) << refused.error().str();
}

TEST_F(RemoteSites, nobodyListensIsAReasonOfItsOwn) {
  const auto none = connect();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::Unavailable);
  EXPECT_TRUE(none.error().has(io::DialFailure::NobodyListens));
}

TEST_F(RemoteSites, aProgramOfAnotherUserIsNotBelieved) {
  start();
  RemoteSiteOptions options;
  options.socket = site_ / "api.sock";
  options.owners = {4'711};
  const auto site = RemoteSite::connect(std::move(options));
  ASSERT_FALSE(site);
  EXPECT_EQ(site.error().code(), ErrorCode::Denied);
  EXPECT_THAT(site.error().str(), HasSubstr("not believed"));
}

/// Its answers as muster at 64eb811c gave them, which had neither GET /server nor the plan.
TEST_F(RemoteSites, anOlderServerIsAskedAndSaidToBeOlder) {
  const ScriptedServer server(site_ / "api.sock", [](const std::string& head) {
    if (head.starts_with("GET /api/v1/me "))
      return ScriptedServer::json(
          200,
          R"({"principal":"root","role":"admin","scope":{"nodes":"","pools":[],"racks":[]},"verbs":["look"],"way":"unix"})");
    return ScriptedServer::json(
        404,
        R"({"code":"not-found","detail":"there is no such resource","diagnostics":[],"request_id":"1","retryable":false,"roles":[],"status":404,"title":"Not Found","type":"urn:muster:error:not-found","what_to_do":"see /openapi.json"})");
  });
  const auto site = connect();
  ASSERT_TRUE(site) << site.error().str();
  EXPECT_THAT((*site)->server().version, IsEmpty());
  app::ProgressListener nobody;
  const auto plan = (*site)->plan({"", false}, nobody);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().str(), HasSubstr("older muster than this command"));
}

TEST_F(RemoteSites, aServerThatDoesNotKnowWhatIsAskedIsNamedWithItsVersion) {
  const auto error = statusError(ScriptedServer::json(
      404,
      R"({"code":"unknown-resource","detail":"there is no such resource","retryable":false})"));
  EXPECT_EQ(error.code(), ErrorCode::Unavailable);
  EXPECT_FALSE(error.canRetry());
  EXPECT_THAT(error.str(),
              AllOf(HasSubstr("muster 9.9"), HasSubstr("/nodes"), HasSubstr("upgrade the server")));
}

TEST_F(RemoteSites, halfAnswersAndOtherProgramsAreNoFleet) {
  const auto whole = R"({"items":[],"total":0})";
  const auto half = statusError(
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
      R"({"items":[)");
  EXPECT_EQ(half.code(), ErrorCode::Unavailable) << half.str();
  EXPECT_THAT(half.str(), HasSubstr("did not answer"));
  for (
      const std::string body :
      {R"({"items":[{"node":"gpu001")", R"([])", R"({})", R"({"items":{}})", "null", "<html>",
       R"({"items":[{"node":"gpu001"}],"total":1})", R"({"items":[7],"total":1})",
       R"({"items":[{"node":7,"state":"x","pool":"-","image":"-","certificate":"-","rack":"r","profile":"p","findings":0,"stale":[]}]})"}) {
    const auto error = statusError(ScriptedServer::json(200, body));
    EXPECT_EQ(error.code(), ErrorCode::Corrupt) << body << ": " << error.str();
  }
  EXPECT_EQ(statusError("SSH-2.0-OpenSSH_9.2\r\n").code(), ErrorCode::Corrupt);
  const auto other = statusError(ScriptedServer::json(200, whole));
  EXPECT_EQ(other.code(), ErrorCode::Corrupt) << "/site says no nodes' list";
  const auto proxy = statusError("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>");
  EXPECT_EQ(proxy.code(), ErrorCode::Unavailable);
  EXPECT_THAT(proxy.str(), AllOf(HasSubstr("502"), Not(HasSubstr("<html>"))));
}

TEST_F(RemoteSites, aListWithoutAnEndIsRefused) {
  const auto error = statusError(ScriptedServer::json(200, R"({"items":[],"total":1,"next":"x"})"));
  EXPECT_EQ(error.code(), ErrorCode::Corrupt);
  EXPECT_THAT(error.str(), HasSubstr("without an end"));
}

TEST_F(RemoteSites, deepAndHugeAnswersAreRefused) {
  const auto deep =
      statusError(ScriptedServer::json(200, std::string(100'000, '[') + std::string(100'000, ']')));
  EXPECT_EQ(deep.code(), ErrorCode::Corrupt);
  const auto huge = statusError("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{");
  EXPECT_NE(huge.code(), ErrorCode::Internal);
}

TEST_F(RemoteSites, anOrderWhoseAnswerIsLostMayHaveBeenCarriedOut) {
  std::atomic<int> orders = 0;
  const ScriptedServer server(site_ / "api.sock", [&](const std::string& head) {
    if (head.starts_with("GET /api/v1/server "))
      return ScriptedServer::json(200,
                                  R"({"version":"9.9","host":"h","state":"/s","inventory":"/i"})");
    ++orders;
    return std::string();  // it dies
  });
  const auto site = connect();
  ASSERT_TRUE(site) << site.error().str();
  const auto lost = (*site)->addToQuarantine("gpu001", "PSU");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(lost.error().str(), HasSubstr("may have done what it was asked to"));
  EXPECT_EQ(orders, 1) << "an order is not sent twice";
  EXPECT_FALSE((*site)->status({}));
}

TEST_F(RemoteSites, aServerThatIsGoneInTheMidstIsSaidSo) {
  fill();
  start();
  const auto site = connect();
  ASSERT_TRUE(site) << site.error().str();
  ASSERT_TRUE((*site)->status({}));
  server_->stop();
  const auto gone = (*site)->status({});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), ErrorCode::Unavailable) << gone.error().str();
}

}  // namespace
}  // namespace muster::api
