// SPDX-License-Identifier: Apache-2.0
// A service whose root links a SessionService that is not there is a service without sessions, but
// only by its own word: a password is sent with every request of such a service.
#include "bmc/redfish/basic_authentication.h"
#include "tests/bmc/redfish_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace muster::bmc {
namespace {

using testing::HasSubstr;

constexpr const char* kService = "/redfish/v1/SessionService";
constexpr const char* kPlaceOfSessions = "/redfish/v1/SessionService/Sessions";
constexpr const char* kAdminRight = "Basic YWRtaW46cmlnaHQ=";

/// As DSP0266 writes an answer of error: a code of a registry, a message, extended information.
std::string errorBody(const std::string& id, const std::string& message) {
  return Json{{"error",
               {{"code", "Base.1.8." + id},
                {"message", message},
                {"@Message.ExtendedInfo",
                 {{{"@odata.type", "#Message.v1_1_2.Message"},
                   {"MessageId", "Base.1.8." + id},
                   {"Message", message},
                   {"Severity", "Critical"}}}}}}}
      .dump();
}

io::HttpResponse missing(const std::string& path) {
  return test::FakeHttp::json(
      404, errorBody("ResourceMissingAtURI", "The resource at the URI '" + path + "' was missing"));
}
io::HttpResponse unauthorized() {
  return test::FakeHttp::json(401, errorBody("InsufficientPrivilege", "Log in first"),
                              {{"WWW-Authenticate", "Basic realm=\"Redfish\""}});
}

/// A service that takes Basic only. Its root is open to all, everything else needs a login.
class LinkedSessionService : public testing::Test {
 protected:
  LinkedSessionService() {
    net.handle = [this](io::HttpRequest request) -> Async<io::HttpResponse> {
      co_return serve(request);
    };
  }
  io::HttpResponse serve(const io::HttpRequest& request) const {
    const auto& path = request.url.target;
    if (path == "/redfish/v1/") return test::FakeHttp::json(200, root.dump());
    if (path == kPlaceOfSessions && request.method == "POST")
      return to_login ? *to_login : missing(path);
    if (path == kService && to_service) return *to_service;
    if (path.starts_with(kService)) return missing(path);
    const auto sent = request.headers.find("Authorization");
    if (sent == request.headers.end() || sent->second != kAdminRight) return unauthorized();
    return path == "/redfish/v1/Systems" || path == "/redfish/v1/x"
               ? test::FakeHttp::json(200, R"({"Members": []})")
               : missing(path);
  }
  int withBasic() const {
    return static_cast<int>(std::ranges::count_if(net.requests, [](const io::HttpRequest& each) {
      const auto sent = each.headers.find("Authorization");
      return sent != each.headers.end() && isBasic(sent->second);
    }));
  }

  Json root = {{"@odata.id", "/redfish/v1/"},
               {"RedfishVersion", "1.6.0"},
               {"Systems", {{"@odata.id", "/redfish/v1/Systems"}}},
               {"SessionService", {{"@odata.id", kService}}},
               {"Links", {{"Sessions", {{"@odata.id", kPlaceOfSessions}}}}}};
  std::optional<io::HttpResponse> to_login, to_service;  ///< none: 404
  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
};

TEST_F(LinkedSessionService, thatIsNotThereIsAServiceWithoutSessions) {
  const auto session = rig.session();
  const auto answer = loop.run(session->get("/redfish/v1/x"));
  ASSERT_TRUE(answer) << answer.error().str();
  EXPECT_EQ(net.requests.back().headers.at("Authorization"), kAdminRight);
  EXPECT_EQ(net.count("POST", kPlaceOfSessions), 1);
  ASSERT_TRUE(loop.run(session->get("/redfish/v1/x")));
  EXPECT_EQ(net.count("POST", kPlaceOfSessions), 1) << "one login";
  EXPECT_TRUE(loop.run(session->close()));
}

/// The root may name the place of the sessions alone.
TEST_F(LinkedSessionService, withoutItsOwnLinkIsAskedForByItsSessions) {
  root.erase("SessionService");
  const auto session = rig.session();
  EXPECT_TRUE(loop.run(session->get("/redfish/v1/x")));
  EXPECT_EQ(net.count("GET", kPlaceOfSessions), 1);
}

TEST_F(LinkedSessionService, isAskedForWithoutASecret) {
  ASSERT_TRUE(loop.run(rig.session()->get("/redfish/v1/x")));
  int asked = 0;
  for (const auto& each : net.requests)
    if (each.method == "GET" && each.url.target == kService) {
      ++asked;
      EXPECT_FALSE(each.headers.contains("Authorization"));
    }
  EXPECT_EQ(asked, 1);
}

/// Whatever else it says of itself is no word that it is not there.
TEST_F(LinkedSessionService, thatAnswersAnythingElseGetsNoBasic) {
  const io::HttpResponse answers[] = {
      unauthorized(), test::FakeHttp::json(200, R"({"ServiceEnabled": true})"),
      test::FakeHttp::json(503, "{}"), test::FakeHttp::json(500, "{}"),
      io::HttpResponse{200, {{"Content-Type", "text/html"}}, "<html>404 Not Found</html>"}};
  for (const auto& each : answers) {
    to_service = each;
    const auto answer = loop.run(rig.session()->get("/redfish/v1/x"));
    ASSERT_FALSE(answer) << each.status;
    EXPECT_EQ(answer.error().code(), ErrorCode::NotFound);
    EXPECT_THAT(answer.error().str(), HasSubstr("logging in at https://10.20.250.1"));
  }
  EXPECT_EQ(withBasic(), 0);
}

TEST_F(LinkedSessionService, afterARefusedPasswordGetsNoBasic) {
  to_login = unauthorized();
  const auto session = rig.session();
  for (int i = 0; i < 3; ++i) {
    const auto answer = loop.run(session->get("/redfish/v1/x"));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), ErrorCode::Denied);
  }
  EXPECT_EQ(withBasic(), 0);
  EXPECT_EQ(net.count("POST", kPlaceOfSessions), 1) << "sent once";
}

/// Between two passwords of a change: what refuses one has sessions, whatever it says to the next.
TEST_F(LinkedSessionService, thatRefusedOneOfTwoPasswordsGetsNoBasicWithTheOther) {
  rig.next_password = "tomorrow";
  ASSERT_TRUE(rig.session()->trust().setRotation("admin", Secret(rig.next_password),
                                                 Rotation::Interrupted));
  int logins = 0;
  net.handle = [&](io::HttpRequest request) -> Async<io::HttpResponse> {
    if (request.method == "POST" && logins++ == 0) co_return unauthorized();
    co_return serve(request);
  };
  const auto answer = loop.run(rig.session()->get("/redfish/v1/x"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(logins, 2);
  EXPECT_EQ(withBasic(), 0);
}

/// A wrong password is sent once by this way, too.
TEST_F(LinkedSessionService, aPasswordThatBasicRefusesIsNotSentAgain) {
  rig.password = "wrong";
  const auto session = rig.session();
  for (int i = 0; i < 3; ++i) {
    const auto answer = loop.run(session->get("/redfish/v1/x"));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), ErrorCode::Denied);
  }
  EXPECT_EQ(withBasic(), 1);
}

}  // namespace
}  // namespace muster::bmc
