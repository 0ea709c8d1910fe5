// SPDX-License-Identifier: Apache-2.0
// Power over the API: an emulated BMC over real HTTPS, and what is refused before one is asked.
#include "app/site/actor.h"
#include "tests/api/api_site.h"
#include "tests/cli/emulated_bmc.h"

#include <future>
#include <thread>

namespace muster::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ApiPower : public ApiSite {
 protected:
  ApiPower() {
    site_.write("bmc-password", test::EmulatedBmc::kPassword);
    declare("");
  }
  /// The site, with gpu001 behind the emulated BMC.
  void declare(const std::string& rules) {
    std::string site(kSite);
    const std::string bmc = "https://10.20.250.1\"";
    site.replace(site.find(bmc), bmc.size(), bmc_.url() + "\"");
    site_.write("cluster.yaml", rules + site);
  }
  nlohmann::json order(const std::string& action) {
    return {{"action", action}, {"reason", "loose cable"}, {"confirm_node", "gpu001"}};
  }
  /// What came of the last order.
  Said outcome() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    Said said;
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      said = get("/nodes/gpu001/power");
    } while (said.json["state"] == "asking" && std::chrono::steady_clock::now() < until);
    return said;
  }

  test::EmulatedBmc bmc_;
};

TEST_F(ApiPower, isSwitchedByTheBmcAndTheLogSaysWhoAskedWhy) {
  start();
  EXPECT_EQ(get("/nodes/gpu001/power").json["state"], "unknown");
  ASSERT_EQ(post("/nodes/gpu001/power", {{"action", "on"}}).status, 202);
  auto said = outcome();
  EXPECT_EQ(said.json["state"], "done") << said.body;
  EXPECT_EQ(said.json["power"], "on") << said.body;
  EXPECT_TRUE(bmc_.on());
  ASSERT_EQ(post("/nodes/gpu001/power", order("off")).status, 202);
  said = outcome();
  EXPECT_EQ(said.json["state"], "done") << said.body;
  EXPECT_EQ(said.json["action"], "off");
  EXPECT_FALSE(bmc_.on());
  const auto events = site_.store()->lastEvents(100, nullptr);
  ASSERT_TRUE(events);
  std::string log;
  for (const auto& event : *events) log += event.text + "\n";
  EXPECT_THAT(log, AllOf(HasSubstr("bmc power off: loose cable"), HasSubstr("API, Unix socket")));
  EXPECT_TRUE(site_.store()->claims()->empty()) << "the node is free again";
  EXPECT_EQ(get("/nodes/gpu002/power").json["state"], "unknown");
}

TEST_F(ApiPower, anOrderThatLosesWorkNamesTheMachineTwiceAndSaysWhy) {
  start();
  const auto refused = [&](const nlohmann::json& body) {
    const auto said = post("/nodes/gpu001/power", body);
    EXPECT_EQ(said.status, 400) << body << said.body;
    return said.body;
  };
  for (const auto* action : {"shutdown", "off", "restart", "ac-cycle", "nmi", "reset"}) {
    refused({{"action", action}, {"reason", "test"}});
    refused({{"action", action}, {"reason", "test"}, {"confirm_node", "gpu002"}});
    EXPECT_THAT(refused({{"action", action}, {"confirm_node", "gpu001"}}),
                AllOf(HasSubstr(R"(\"reason\" is missing)"), Not(HasSubstr("--reason"))));
  }
  EXPECT_THAT(refused(order("explode")), HasSubstr("explode"));
  refused({{"reason", "test"}});
  EXPECT_EQ(post("/nodes/nothere/power", order("off")).status, 404);
  EXPECT_TRUE(bmc_.requests().empty()) << "no BMC was asked";
}

/// A client that did not see the answer asks again, of the server that runs by then.
TEST_F(ApiPower, anOrderGivenAgainIsAnsweredWithWhatCameOfIt) {
  start();
  const Ask on{.method = "POST",
               .target = "/api/v1/nodes/gpu001/power",
               .headers = {"Content-Type: application/json", "Idempotency-Key: k1"},
               .body = R"({"action": "on"})"};
  ASSERT_EQ(ask(on).json["state"], "asking");
  const auto done = outcome();
  ASSERT_EQ(done.json["state"], "done") << done.body;
  const auto requests = bmc_.requests().size();
  EXPECT_EQ(ask(on).json["state"], "done");
  server_.reset();
  start();  // nothing is known but by the store
  auto again = ask(on);
  EXPECT_EQ(again.status, 202) << again.body;
  EXPECT_EQ(again.json["state"], "done") << again.body;
  EXPECT_EQ(again.json["power"], "on") << again.body;
  EXPECT_EQ(get("/nodes/gpu001/power").json, done.json);
  EXPECT_EQ(bmc_.requests().size(), requests) << "nothing is done again";
  ASSERT_EQ(post("/nodes/gpu001/power", order("off")).status, 202);
  EXPECT_EQ(outcome().json["state"], "done");
  again = ask(on);
  EXPECT_EQ(again.json["state"], "unknown") << again.body;
  EXPECT_EQ(again.json["action"], "on");
  EXPECT_THAT(again.json["text"].get<std::string>(), HasSubstr("another order was given"));
}

TEST_F(ApiPower, anOrderWhoseServerDiedIsUnknownAndNotAskingForEver) {
  ASSERT_TRUE(site_.store()->putValue(
      "api.power.gpu001",
      R"({"state": "asking", "action": "off", "power": "", "text": "", "by": "anna",
          "at": "2026-11-20T10:00:00Z", "asked_at": "2026-11-20T10:00:00Z"})"));
  start();
  const auto said = get("/nodes/gpu001/power");
  EXPECT_EQ(said.json["state"], "unknown") << said.body;
  EXPECT_EQ(said.json["action"], "off");
  EXPECT_THAT(said.json["text"].get<std::string>(), HasSubstr("ended before it could say"));
  const auto other = site_.store();
  ASSERT_TRUE(other->signOn("bmc power of gpu001 at ctl2", std::chrono::minutes(5)));
  ASSERT_TRUE(other->claim(lifecycle::Subject(NodeName("gpu001")))->ours);
  EXPECT_EQ(get("/nodes/gpu001/power").json["state"], "asking") << "by another host";
  ASSERT_TRUE(other->release(lifecycle::Subject(NodeName("gpu001"))));
  ASSERT_EQ(post("/nodes/gpu001/power", order("off")).status, 202);
  EXPECT_EQ(outcome().json["state"], "done");
}

TEST_F(ApiPower, aNodeThatMayRunJobsIsLeftAloneUnlessForced) {
  fill();
  start();
  const auto said = post("/nodes/gpu001/power", order("off"));
  EXPECT_EQ(said.status, 409) << said.body;
  EXPECT_THAT(said.body, HasSubstr("may be running jobs"));
  EXPECT_THAT(said.body, HasSubstr(R"(or add \"force\")")) << "as this order has it";
  EXPECT_TRUE(bmc_.requests().empty());
  auto forced = order("off");
  forced["force"] = true;
  EXPECT_EQ(post("/nodes/gpu001/power", forced).status, 202);
  EXPECT_EQ(outcome().json["state"], "done");
}

TEST_F(ApiPower, aNodeThatSomebodyWorksOnIsLeftAlone) {
  const auto other = site_.store();
  ASSERT_TRUE(other->signOn("another host", std::chrono::minutes(5)));
  ASSERT_TRUE(other->claim(lifecycle::Subject(NodeName("gpu001"))));
  start();
  const auto said = post("/nodes/gpu001/power", order("off"));
  EXPECT_EQ(said.status, 409) << said.body;
  EXPECT_THAT(said.body, HasSubstr("another host"));
  // Not disruptive, so the store is not asked first: the claim is what refuses it.
  ASSERT_EQ(post("/nodes/gpu001/power", {{"action", "on"}}).status, 202);
  const auto on = outcome();
  EXPECT_EQ(on.json["state"], "failed") << on.body;
  EXPECT_THAT(on.body, HasSubstr("another host works on gpu001"));
  EXPECT_TRUE(bmc_.requests().empty());
}

/// What a server that was killed in the midst has left holds up nobody on the same host.
TEST_F(ApiPower, aClaimOfAnEarlierSwitchFromHereIsFree) {
  const auto earlier = site_.store();
  ASSERT_TRUE(earlier->signOn("bmc power of gpu001 at " + app::hostName(), std::chrono::hours(1)));
  ASSERT_TRUE(earlier->claim(lifecycle::Subject(NodeName("gpu001")))->ours);
  start();
  ASSERT_EQ(post("/nodes/gpu001/power", order("off")).status, 202);
  const auto said = outcome();
  EXPECT_EQ(said.json["state"], "done") << said.body;
}

TEST_F(ApiPower, whatCameOfAnOrderIsInTheLog) {
  bmc_.goDark();
  start();
  ASSERT_EQ(post("/nodes/gpu001/power", order("off")).status, 202);
  EXPECT_EQ(outcome().json["state"], "failed");
  std::string log;
  const auto events = site_.store()->lastEvents(100, nullptr);
  ASSERT_TRUE(events);
  for (const auto& event : *events) log += event.text + "\n";
  EXPECT_THAT(log,
              AllOf(HasSubstr("bmc power off: loose cable"), HasSubstr("bmc power off: failed")));
  auto blank = order("off");
  blank["reason"] = "   ";
  EXPECT_EQ(post("/nodes/gpu001/power", blank).status, 400);
}

TEST_F(ApiPower, theInventorysApprovalsHoldAndAnOverrideIsAnAdminsAndLoud) {
  declare("approvals:\n  - {disruption: reset, approvals: 1}\n");
  const auto store = site_.store();
  start("127.0.0.1:0");
  const auto refused = post("/nodes/gpu001/power", order("off"));
  EXPECT_EQ(refused.status, 403) << refused.body;
  EXPECT_THAT(refused.body, HasSubstr("asks for 1 approvals"));
  EXPECT_THAT(refused.body, AllOf(HasSubstr(R"(or add \"override\")"), Not(HasSubstr("--override")),
                                  HasSubstr("muster quarantine add gpu001 --reason")));
  auto over = order("off");
  over["override"] = true;
  const auto token = post("/tokens", {{"name", "op"}, {"role", "operator"}, {"owner", "otto"}});
  ASSERT_EQ(token.status, 200) << token.body;
  const auto by_operator = ask({.method = "POST",
                                .target = "/api/v1/nodes/gpu001/power",
                                .headers = {"Content-Type: application/json"},
                                .body = jsonText(over),
                                .token = token.json["token"],
                                .over_https = true});
  EXPECT_EQ(by_operator.status, 403) << by_operator.body;
  EXPECT_TRUE(store->findings(nullptr)->empty());
  ASSERT_EQ(post("/nodes/gpu001/power", over).status, 202);
  EXPECT_EQ(outcome().json["state"], "done");
  ASSERT_EQ(store->findings(nullptr)->size(), 1u);
  EXPECT_THAT(store->findings(nullptr)->front().text,
              AllOf(HasSubstr("OVERRIDE"), HasSubstr("loose cable")));
}

TEST_F(ApiPower, aBmcThatDoesNotAnswerIsSaid) {
  bmc_.goDark();
  start();
  ASSERT_EQ(post("/nodes/gpu001/power", order("off")).status, 202);
  const auto said = outcome();
  EXPECT_EQ(said.json["state"], "failed") << said.body;
  EXPECT_NE(said.json["text"], "");
}

TEST_F(ApiPower, oneOrderAtATimeIsGivenToABmc) {
  std::promise<void> has_asked_twice;
  bmc_.rewrite([may_answer = has_asked_twice.get_future().share()](
                   const std::string&, io::ServerResponse&) { may_answer.wait(); });
  start();
  ASSERT_EQ(post("/nodes/gpu001/power", order("off")).status, 202);
  EXPECT_EQ(post("/nodes/gpu001/power", order("off")).status, 409) << "it is asked already";
  has_asked_twice.set_value();
  EXPECT_EQ(outcome().json["state"], "done");
}

}  // namespace
}  // namespace muster::api
