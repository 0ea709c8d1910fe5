// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/basic_authentication.h"
#include "tests/bmc/redfish_rig.h"
#include "tests/bmc/virtual_bmc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSessions = "/redfish/v1/SessionService/Sessions";
constexpr const char* kSystemPath = "/redfish/v1/Systems/system";

class RedfishSessionTest : public testing::Test {
 protected:
  test::VirtualLoop loop;
  test::VirtualBmc virtual_bmc{loop};
  test::FakeHttp& net = virtual_bmc.net;
  test::RedfishRig rig{loop, net};
};

TEST_F(RedfishSessionTest, logsInOnceReusesTheTokenAndLogsOut) {
  auto session = rig.session();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(loop.run(session->get(kSystemPath)));
  EXPECT_EQ(virtual_bmc.logins(), 1);
  ASSERT_TRUE(loop.run(session->close()));
  EXPECT_EQ(net.requests.back().method, "DELETE");
  ASSERT_TRUE(loop.run(session->get(kSystemPath)));
  EXPECT_EQ(virtual_bmc.logins(), 2);
}

TEST_F(RedfishSessionTest, logsInAgainOnceWhenTheSessionExpired) {
  auto session = rig.session();
  ASSERT_TRUE(loop.run(session->get(kSystemPath)));
  loop.clock.advance(2h);
  ASSERT_TRUE(loop.run(session->get(kSystemPath)));
  EXPECT_EQ(virtual_bmc.logins(), 2);
}

/// Glued to the BMC's address, such a link would have named a third machine.
TEST_F(RedfishSessionTest, aLinkToAnotherHostIsNotFollowed) {
  auto session = rig.session();
  ASSERT_TRUE(loop.run(session->get(kSystemPath)));
  const auto sent = net.requests.size();
  const auto absolute = loop.run(session->get("https://evil.example/redfish/v1/Systems/1"));
  ASSERT_FALSE(absolute);
  EXPECT_EQ(absolute.error().code(), ErrorCode::Corrupt);
  EXPECT_THAT(absolute.error().str(),
              HasSubstr("an address of another host: https://evil.example"));
  EXPECT_THAT(absolute.error().str(), HasSubstr("not followed"));
  for (const char* glued : {".evil.example/redfish/v1", "@evil.example/redfish/v1"})
    EXPECT_EQ(loop.run(session->get(glued)).error().code(), ErrorCode::Corrupt);
  EXPECT_EQ(net.requests.size(), sent) << "nothing was sent";
}

/// Whoever answers on a BMC's behalf decides neither where the password goes, nor that it goes with
/// every request.
TEST(SessionsOf, aLinkToAnotherHostIsAPathHereAndOneThatIsNoneIsNoWayToBasic) {
  const auto sessions = [](const std::string& link) {
    return sessionsOf(
        Json{{"RedfishVersion", "1.6.0"}, {"Links", {{"Sessions", {{"@odata.id", link}}}}}});
  };
  EXPECT_EQ(sessions("https://evil.example/redfish/v1/Sessions"), "/redfish/v1/Sessions");
  EXPECT_EQ(sessions("/redfish/v1/S"), "/redfish/v1/S");
  for (const auto* link : {"gopher://evil.example/x", "evil.example", "https://"})
    EXPECT_THAT(sessions(link), testing::StartsWith("/redfish/v1/")) << link;
  EXPECT_EQ(sessionsOf(Json{{"RedfishVersion", "1.6.0"}}), "") << "it has none: Basic, to itself";
}

TEST(UrlOfLink, anAbsoluteLinkOfTheBmcItselfIsItsPath) {
  const auto own = urlOfLink("https://10.20.250.1", "https://10.20.250.1/redfish/v1/Systems/1");
  ASSERT_TRUE(own) << own.error().str();
  EXPECT_EQ(own->target, "/redfish/v1/Systems/1");
  EXPECT_FALSE(urlOfLink("https://10.20.250.1", "https://10.20.250.1:8443/redfish/v1"));
  EXPECT_FALSE(urlOfLink("https://10.20.250.1", "http://10.20.250.1/redfish/v1"));
}

Async<io::HttpResponse> answering(io::HttpResponse response) { co_return response; }

TEST_F(RedfishSessionTest, aSessionThatIsRefusedAtOnceIsDeniedAndNotALoop) {
  auto inner = net.handle;
  net.handle = [inner](io::HttpRequest request) {
    if (request.method == "POST") return inner(std::move(request));
    return answering(test::FakeHttp::json(401, "{}"));
  };
  auto session = rig.session();
  auto answer = loop.run(session->get(kSystemPath));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Denied);
  EXPECT_EQ(virtual_bmc.logins(), 2);
}

Task<int> deniedOf(RedfishSession& session, int times) {
  int denied = 0;
  for (int i = 0; i < times; ++i) {
    auto answer = co_await session.get(kSystemPath);
    denied += !answer && answer.error().code() == ErrorCode::Denied;
  }
  co_return denied;
}
Task<void> knock(RedfishSession& session, int times) { co_await deniedOf(session, times); }

TEST_F(RedfishSessionTest, aRefusedPasswordIsSentOnce) {
  rig.password = "wrong";
  auto session = rig.session();
  for (int i = 0; i < 4; ++i) loop.spawn(knock(*session, 3));  // side by side
  EXPECT_EQ(loop.run(deniedOf(*session, 20)), 20);
  loop.settle();
  EXPECT_EQ(virtual_bmc.logins(), 1);

  auto after_restart = rig.session();  // a new process: the store remembers
  EXPECT_EQ(loop.run(deniedOf(*after_restart, 5)), 5);
  EXPECT_EQ(virtual_bmc.logins(), 1);
  EXPECT_EQ(virtual_bmc.service->state().failed_logins, 1u);

  rig.password = "right";  // the credential changed: tried at once
  EXPECT_EQ(loop.run(deniedOf(*after_restart, 3)), 0);
  EXPECT_EQ(virtual_bmc.logins(), 2);
}

TEST_F(RedfishSessionTest, theErrorSaysWhatToDoAndNeverTheSecret) {
  rig.password = "hunter2-wrong";
  auto session = rig.session();
  auto answer = loop.run(session->get(kSystemPath));
  ASSERT_FALSE(answer);
  EXPECT_FALSE(answer.error().canRetry());
  EXPECT_THAT(answer.error().str(), HasSubstr("Correct the credential of gpu001"));
  EXPECT_THAT(answer.error().str(), Not(HasSubstr("hunter2")));
  for (const auto& [key, value] : rig.store.values)
    EXPECT_THAT(value, Not(HasSubstr("hunter2"))) << key;
  // Keyed: the same credential in another state folder leaves another value.
  test::RedfishRig other{loop, net};
  other.password = rig.password;
  auto other_session = other.session();
  ASSERT_FALSE(loop.run(other_session->get(kSystemPath)));
  EXPECT_NE(rig.store.values["bmc.refused.gpu001"], other.store.values["bmc.refused.gpu001"]);
}

TEST_F(RedfishSessionTest, anOperatorMayLetTheSamePasswordBeTriedAgain) {
  rig.password = "wrong";
  auto session = rig.session();
  ASSERT_FALSE(loop.run(session->get(kSystemPath)));
  ASSERT_TRUE(forgetRefusal(rig.store, NodeName("gpu001")));
  ASSERT_FALSE(loop.run(session->get(kSystemPath)));
  EXPECT_EQ(virtual_bmc.logins(), 2);
}

TEST_F(RedfishSessionTest, pinsTheFirstCertificateAndTellsNothingToAnother) {
  auto session = rig.session();
  ASSERT_TRUE(loop.run(session->get(kSystemPath)));
  EXPECT_EQ(rig.store.values["bmc.pin.gpu001"], net.fingerprint);

  net.fingerprint = std::string(64, 'b');
  net.requests.clear();
  auto later = rig.session();
  auto answer = loop.run(later->get(kSystemPath));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Denied);
  EXPECT_THAT(answer.error().str(), HasSubstr("trust reset gpu001"));
  EXPECT_TRUE(net.requests.empty());

  ASSERT_TRUE(forgetPin(rig.store, NodeName("gpu001")));
  auto allowed = rig.session();
  EXPECT_TRUE(loop.run(allowed->get(kSystemPath)));
}

TEST_F(RedfishSessionTest, firstContactCarriesNoSecret) {
  auto session = rig.session();
  ASSERT_TRUE(loop.run(session->get(kSystemPath)));
  const auto& first = net.requests.front();
  EXPECT_EQ(first.method, "GET");
  EXPECT_TRUE(first.body.empty());
  EXPECT_FALSE(first.headers.contains("X-Auth-Token"));
  EXPECT_FALSE(first.headers.contains("Authorization"));
}

TEST_F(RedfishSessionTest, aResetConnectionIsTriedOnceMoreForReadsOnly) {
  auto session = rig.session();
  ASSERT_TRUE(loop.run(session->get(kSystemPath)));
  net.fail_next.assign(1, Error(ErrorCode::Unavailable, "connection reset"));
  EXPECT_TRUE(loop.run(session->get(kSystemPath)));
  net.fail_next.assign(2, Error(ErrorCode::Unavailable, "connection reset"));
  EXPECT_FALSE(loop.run(session->get(kSystemPath)));

  net.requests.clear();
  net.fail_next.assign(1, Error(ErrorCode::Unavailable, "connection reset"));
  EXPECT_FALSE(loop.run(session->post("/redfish/v1/Systems/system/Actions/ComputerSystem.Reset",
                                      Json{{"ResetType", "On"}})));
  EXPECT_EQ(net.requests.size(), 1u);
}

/// A service behind a login that answers what a test scripts.
class ScriptedSession : public testing::Test {
 protected:
  ScriptedSession() {
    net.handle = [this](io::HttpRequest request) { return serve(std::move(request)); };
  }
  Async<io::HttpResponse> serve(io::HttpRequest request) {
    if (request.method == "POST" && request.url.target == kSessions) {
      io::Headers headers;
      headers["X-Auth-Token"] = "t";
      headers["Location"] = std::string(kSessions) + "/1";
      co_return test::FakeHttp::json(201, "{}", headers);
    }
    if (request.url.target == "/redfish/v1/") co_return test::FakeHttp::json(200, "{}");
    co_return script(request);
  }

  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  std::function<io::HttpResponse(const io::HttpRequest&)> script;
};

TEST_F(ScriptedSession, waitsAsLongAsTheBmcAsks) {
  int busy = 2;
  script = [&](const io::HttpRequest&) {
    return busy-- > 0 ? test::FakeHttp::json(503, "{}", {{"Retry-After", "7"}})
                      : test::FakeHttp::json(200, "{}");
  };
  auto session = rig.session();
  const auto before = loop.clock.now();
  ASSERT_TRUE(loop.run(session->get("/redfish/v1/x")));
  EXPECT_GE(loop.clock.now() - before, 14s);
}

TEST_F(ScriptedSession, givesUpOnABmcThatIsAlwaysBusy) {
  script = [](const io::HttpRequest&) { return test::FakeHttp::json(429, "{}"); };
  auto session = rig.session();
  auto answer = loop.run(session->get("/redfish/v1/x"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), ErrorCode::Unavailable);
  EXPECT_EQ(net.count("GET", "/redfish/v1/x"), 7);
}

TEST_F(ScriptedSession, waitsWhenAMessageSaysLaterWhateverTheStatus) {
  int busy = 1;
  script = [&](const io::HttpRequest&) {
    const char* post =
        R"({"error":{"@Message.ExtendedInfo":[{"MessageId":"iLO.2.14.UnableToModifyDuringSystemPOST"}]}})";
    return busy-- > 0 ? test::FakeHttp::json(400, post) : test::FakeHttp::json(200, "{}");
  };
  auto session = rig.session();
  EXPECT_TRUE(loop.run(session->patch("/redfish/v1/x", Json::object(), "")));
}

TEST_F(ScriptedSession, climbsTheEtagLadder) {
  std::vector<std::string> seen;
  script = [&](const io::HttpRequest& r) {
    auto it = r.headers.find("If-Match");
    seen.push_back(it == r.headers.end() ? "none" : it->second);
    return test::FakeHttp::json(seen.size() < 3 ? 412 : 200, "{}");
  };
  auto session = rig.session();
  ASSERT_TRUE(loop.run(session->patch("/redfish/v1/x", Json::object(), "W/\"7\"")));
  EXPECT_THAT(seen, testing::ElementsAre("W/\"7\"", "\"7\"", "none"));
}

TEST_F(ScriptedSession, dropsAcceptEncodingWhenItIsNotAcceptable) {
  script = [](const io::HttpRequest& r) {
    return test::FakeHttp::json(r.headers.contains("Accept-Encoding") ? 406 : 200, "{}");
  };
  auto session = rig.session();
  EXPECT_TRUE(loop.run(session->get("/redfish/v1/x")));
}

TEST_F(ScriptedSession, anUploadIsNeverSentTwice) {
  int uploads = 0;
  script = [&](const io::HttpRequest& r) {
    if (r.method == "POST") ++uploads;
    return test::FakeHttp::json(r.method == "POST" ? 503 : 200, "{}");
  };
  auto session = rig.session();
  auto answer = loop.run(session->upload(
      "/redfish/v1/up",
      {"multipart/form-data; boundary=b", "b", std::make_shared<const std::string>("od"), "y"},
      10s));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(uploads, 1);
  EXPECT_EQ(net.requests.back().headers.at("Content-Length"), "4");
}

TEST_F(ScriptedSession, theServicesWordsAreInTheError) {
  script = [](const io::HttpRequest&) {
    return test::FakeHttp::json(
        400, R"({"error":{"@Message.ExtendedInfo":[{"Message":"The value 'X' is wrong."}]}})");
  };
  auto session = rig.session();
  auto answer = loop.run(session->get("/redfish/v1/x"));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().str(), HasSubstr("The value 'X' is wrong."));
}

TEST_F(ScriptedSession, requestsAreSpacedOut) {
  script = [](const io::HttpRequest&) { return test::FakeHttp::json(200, "{}"); };
  auto session = rig.session();
  const auto before = loop.clock.now();
  for (int i = 0; i < kRequestBurst + 100; ++i)
    ASSERT_TRUE(loop.run(session->get("/redfish/v1/x")));
  EXPECT_GE(loop.clock.now() - before, 100 * kRequestGap);
}

}  // namespace
}  // namespace muster::bmc
