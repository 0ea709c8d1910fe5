// SPDX-License-Identifier: Apache-2.0
// What a BMC was told in confidence does not come back in its words, whichever way they take.
#include "bmc/withheld_words.h"

#include "bmc/redfish/basic_authentication.h"
#include "bmc/redfish/event_stream.h"
#include "bmc/redfish/message_registry.h"
#include "bmc/redfish/tasks.h"
#include "tests/bmc/redfish_rig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPassword = "Ra\"ck%7 of hall-2";
constexpr const char* kToken = "5b21c9e2f0d34b77a1";

/// The words of a service that answers with what it was sent.
class EchoingBmc : public testing::Test {
 protected:
  EchoingBmc() {
    rig.password = kPassword;
    net.handle = [this](io::HttpRequest request) { return answer(std::move(request)); };
  }
  Async<io::HttpResponse> answer(io::HttpRequest request) {
    const auto& target = request.url.target;
    if (request.method == "POST" && target.ends_with("Sessions"))
      co_return test::FakeHttp::json(
          201, "{}", {{"X-Auth-Token", kToken}, {"Location", "/redfish/v1/SessionService/1"}});
    if (target == "/redfish/v1/") co_return test::FakeHttp::json(200, root.dump());
    co_return test::FakeHttp::json(status, said.dump());
  }
  std::string errorAfter(json words) {
    said = std::move(words);
    const auto answered = loop.run(session->get("/redfish/v1/Systems/1"));
    return answered ? "(no error)" : answered.error().str();
  }
  static json error(const std::string& message) {
    return {{"error", {{"@Message.ExtendedInfo", {{{"Message", message}}}}}}};
  }

  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  std::unique_ptr<RedfishSession> session = rig.session();
  json root = json::object(), said;
  int status = 400;
};

TEST_F(EchoingBmc, anErrorComesWithoutThePasswordInAnyOfItsSpellings) {
  for (const std::string& spelling :
       {std::string(kPassword), std::string("Ra\\\"ck%7 of hall-2"),
        std::string("Ra%22ck%257%20of%20hall-2"), std::string("%52a%22ck%257%20of%20hall%2d2"),
        std::string("Ra&quot;ck%7 of hall-2"), std::string("Ra&#34;ck%7 of hall&#x2d;2"),
        std::string("Ra\\u0022ck%7 of hall-2"),
        std::string("\\u0052a\\u0022ck\\u00257 of hall\\u002D2")}) {
    const auto why = errorAfter(error("cannot parse Password=" + spelling + ", sorry"));
    EXPECT_THAT(why, Not(HasSubstr("hall-2"))) << spelling;
    EXPECT_THAT(why, HasSubstr("cannot parse Password=(withheld), sorry")) << spelling;
  }
}

TEST_F(EchoingBmc, anErrorComesWithoutTheToken) {
  EXPECT_THAT(errorAfter(error("X-Auth-Token: 5b21c9e2f0d34b77a1 is not known")),
              HasSubstr("X-Auth-Token: (withheld) is not known"));
  EXPECT_THAT(errorAfter({{"error", {{"message", std::string("token ") + kToken}}}}),
              Not(HasSubstr(kToken)));
}

TEST_F(EchoingBmc, anErrorComesWithoutTheBasicHeader) {
  root = {{"RedfishVersion", "1.6.0"}};  // no SessionService: Basic
  status = 200;
  said = {{"Id", "1"}};
  ASSERT_TRUE(loop.run(session->get("/redfish/v1/Systems/1")));
  status = 500;
  const auto header = basicToken("admin", kPassword);
  const auto why = errorAfter(error("bad header Authorization: " + header));
  EXPECT_THAT(why, Not(HasSubstr(header.substr(header.find(' ') + 1))));
  EXPECT_THAT(why, HasSubstr("Authorization: Basic (withheld)"));
}

TEST_F(EchoingBmc, withSessionsAnErrorComesWithoutTheBasicHeaderToo) {
  status = 200;
  said = {{"Id", "1"}};
  ASSERT_TRUE(loop.run(session->get("/redfish/v1/Systems/1")));  // logs in
  status = 400;
  auto credentials = basicToken("admin", kPassword);
  credentials.erase(0, credentials.find(' ') + 1);
  auto bare = credentials;
  while (bare.ends_with('=')) bare.pop_back();
  for (const auto& said_as : {credentials, bare})
    EXPECT_THAT(errorAfter(error("login of " + said_as + " refused")),
                HasSubstr("login of (withheld) refused"));
}

TEST_F(EchoingBmc, aTaskAndALogEntryComeWithoutThePassword) {
  status = 200;
  said = {{"Id", "9"},
          {"TaskState", "Exception"},
          {"Messages",
           {{{"MessageId", "Update.1.0.Failed"},
             {"MessageArgs", {std::string("admin:") + kPassword}},
             {"Resolution", std::string("check ") + kPassword},
             {"Message", std::string("upload by ") + kPassword + " failed"}}}},
          {"Message", std::string("login ") + kPassword},
          {"SerialNumber", kPassword}};
  const auto answered = loop.run(session->get("/redfish/v1/TaskService/Tasks/9"));
  ASSERT_TRUE(answered) << answered.error().str();
  const auto task = taskStatusOf(*answered, "");
  EXPECT_EQ(task.message, "upload by (withheld) failed");
  EXPECT_EQ(task.resolution, "check (withheld)");
  EXPECT_EQ(textsAt(answered->body["Messages"][0], "MessageArgs"),
            std::vector<std::string>{"admin:(withheld)"});
  EXPECT_EQ(textAt(answered->body, "Message"), "login (withheld)");
  EXPECT_EQ(textAt(answered->body, "SerialNumber"), kPassword)
      << "by which the machine is known: a default password may be its serial number";
}

TEST_F(EchoingBmc, anEventComesWithoutThePassword) {
  status = 200;
  said = {{"Id", "1"}};
  ASSERT_TRUE(loop.run(session->get("/redfish/v1/Systems/1")));  // logs in
  json event = {{"Events", {{{"EventId", "1"}, {"Message", std::string("got ") + kPassword}}}}};
  session->withhold(event);
  EXPECT_EQ(entriesOf(event).front().message, "got (withheld)");
}

TEST_F(EchoingBmc, theNextPasswordIsWithheldAsSoonAsItIsRead) {
  rig.next_password = "tomorrow's secret";
  session = rig.session();
  ASSERT_TRUE(session->nextPassword());
  EXPECT_THAT(errorAfter(error("no tomorrow's secret please")), HasSubstr("no (withheld) please"));
}

TEST_F(EchoingBmc, aLinkThatIsNotFollowedIsShownWithoutTheToken) {
  status = 200;
  said = {{"Id", "1"}};
  ASSERT_TRUE(loop.run(session->get("/redfish/v1/Systems/1")));
  const auto away =
      loop.run(session->get(std::string("https://evil.example/redfish/v1?t=") + kToken));
  ASSERT_FALSE(away);
  EXPECT_THAT(away.error().str(), HasSubstr("?t=(withheld)"));
}

TEST(WithheldWords, ofAShortSecretNoWordIsLeftThatHoldsIt) {
  WithheldWords withheld;
  withheld.add(Secret("right"));
  EXPECT_EQ(withheld.without("Password right is too short"), "(withheld: its words hold a secret)");
  EXPECT_EQ(withheld.without("the user has no rights"), "the user has no rights");
  EXPECT_EQ(withheld.without("pw=%72ight&x=1"), "(withheld: its words hold a secret)");
  EXPECT_EQ(withheld.without("no &#114;ights"), "no &#114;ights");
  json path = {{"error", {{"MessageArgs", {"/redfish/v1/right/1"}}}}};
  withheld.takeOutOf(path, true);
  EXPECT_EQ(path["error"]["MessageArgs"][0], "/redfish/v1/right/1") << "it is followed";
}

TEST(WithheldWords, ofALongerOneThatHoldsAnotherNothingIsLeft) {
  WithheldWords withheld;
  withheld.add(Secret("spring-2026"));
  withheld.add(Secret("spring-2026-b"));
  EXPECT_EQ(withheld.without("spring-2026-b, spring-2026"), "(withheld), (withheld)");
}

TEST(WithheldWords, anErrorKeepsWhatIsDecidedBy) {
  WithheldWords withheld;
  withheld.addToken("Basic YWRtaW46c2VjcmV0");
  const auto out = withheld.without(Error(ErrorCode::Conflict, "see YWRtaW46c2VjcmV0")
                                        .because(ErrorCode::Denied)
                                        .retryable(true)
                                        .within("asking"));
  EXPECT_EQ(out.str(), "asking: see (withheld)");
  EXPECT_EQ(out.code(), ErrorCode::Conflict);
  EXPECT_TRUE(out.canRetry());
  EXPECT_TRUE(out.has(ErrorCode::Denied));
}

TEST(WithheldWords, theLatestAreKeptHoweverManyTokensThereWere) {
  WithheldWords withheld;
  withheld.add(Secret("password-1"));
  for (int i = 100; i < 1'100; ++i) {
    withheld.addToken("token-" + std::to_string(i) + "-x");
    withheld.add(Secret("password-1"));  // read at each login
  }
  EXPECT_EQ(withheld.without("password-1 token-1099-x"), "(withheld) (withheld)");
}

TEST(ImageWithoutSecrets, ofAUrlOnlyThePasswordAndTheQueryAreWithheld) {
  EXPECT_EQ(imageWithoutSecrets("https://10.0.0.1:8443/a@b/x.iso"),
            "https://10.0.0.1:8443/a@b/x.iso");
  EXPECT_EQ(imageWithoutSecrets("https://ops:hunter2@10.0.0.1/x.iso"),
            "https://(withheld)@10.0.0.1/x.iso");
  EXPECT_EQ(imageWithoutSecrets("smb://ops:hun/ter2@nas/share/x.iso"),
            "smb://(withheld)@nas/share/x.iso");
  EXPECT_EQ(imageWithoutSecrets("//ops:hunter2@nas/share/x.iso"), "//(withheld)@nas/share/x.iso");
  EXPECT_EQ(imageWithoutSecrets("\\\\ops:hunter2@nas\\share\\x.iso"),
            "\\\\(withheld)@nas\\share\\x.iso");
  EXPECT_EQ(imageWithoutSecrets("https://store/x.iso?signature=abc@1"),
            "https://store/x.iso?(withheld)");
  EXPECT_EQ(imageWithoutSecrets("x.iso"), "x.iso");
  EXPECT_EQ(imageWithoutSecrets(""), "");
}

}  // namespace
}  // namespace muster::bmc
