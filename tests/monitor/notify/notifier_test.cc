// SPDX-License-Identifier: Apache-2.0
#include "monitor/notify/notifier.h"
#include "tests/monitor/notify/receiver_fixture.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <map>
#include <random>

namespace muster::monitor {
namespace {

using inventory::NotifiedEvent;
using lifecycle::EventKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Notifier : public ::muster::test::Notifications {
 protected:
  std::vector<std::string> typesTaken() const {
    std::vector<std::string> out;
    for (const auto& request : outside_.taken)
      out.push_back(nlohmann::json::parse(request.body)["type"].get<std::string>());
    return out;
  }
  std::unique_ptr<Delivery> delivery(const std::string& name = "oncall") {
    return makeDelivery(services(), name, cluster_.notifications.at(name));
  }
};

TEST_F(Notifier, tellsANewReceiverWhatIsOpenAndWhatHappensFromNowOn) {
  declare("oncall");
  addEvent(EventKind::ActionFailed, "long ago");
  ASSERT_TRUE(store_.addFinding(finding("health.gpu", "GPU 3 is gone")));
  auto first = delivery();
  ASSERT_TRUE(deliver(*first));
  EXPECT_THAT(typesTaken(), ElementsAre("finding.raised"));
  addEvent(EventKind::ActionFailed, "now");
  addEvent(EventKind::ActionDone, "nobody asked for it");
  ASSERT_TRUE(deliver(*first));
  ASSERT_TRUE(store_.clearFindings(finding("health.gpu", "").facet));
  ASSERT_TRUE(deliver(*first));
  ASSERT_TRUE(deliver(*first));
  EXPECT_THAT(typesTaken(), ElementsAre("finding.raised", "action.failed", "finding.over"));
  const auto raised = nlohmann::json::parse(outside_.taken[0].body)["data"],
             over = nlohmann::json::parse(outside_.taken[2].body)["data"];
  EXPECT_EQ(raised["what_to_do"], "do this");
  EXPECT_EQ(over["subject"], "gpu001");
  EXPECT_EQ(over["facet"], "health.gpu");
  EXPECT_EQ(over["raised_by"], outside_.taken[0].headers.at("webhook-id"));
}

TEST_F(Notifier, leavesOutWhatIsNotGraveEnough) {
  declare("oncall").least_severity = inventory::NotifiedSeverity::Error;
  ASSERT_TRUE(store_.addFinding(finding("health.gpu", "a warning", Severity::Warning)));
  ASSERT_TRUE(deliver(*delivery()));
  EXPECT_THAT(outside_.taken, IsEmpty());
}

/// Events at random, a receiver that refuses at random, a process that dies at random: in the end
/// each message was taken, none before an earlier one, and one that came twice has its old id.
TEST_F(Notifier, everythingArrivesInOrderWhateverDies) {
  declare("oncall").events = {NotifiedEvent::Failed, NotifiedEvent::Note};
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    outside_.taken.clear();
    outside_.answer = [&random](const io::HttpRequest&) -> Result<io::HttpResponse> {
      switch (random() % 6) {
        case 0:
          return io::HttpResponse{503, {}, "later"};
        case 1:
          return fail(ErrorCode::Timeout, "no answer");
        default:
          return io::HttpResponse{200, {}, ""};
      }
    };
    auto running = delivery();
    (void)deliver(*running);
    std::vector<std::string> expected;
    for (int step = 0; step < 60; ++step) {
      const auto kind = random() % 3 == 0 ? EventKind::ActionDone
                        : random() % 2    ? EventKind::ActionFailed
                                          : EventKind::Note;
      const auto text = "event " + std::to_string(step);
      addEvent(kind, text);
      if (kind != EventKind::ActionDone) expected.push_back(text);
      if (random() % 2) (void)deliver(*running);
      if (random() % 5 == 0) running = delivery();  // another process, with what the store says
    }
    outside_.answer = [](const io::HttpRequest&) -> Result<io::HttpResponse> {
      return io::HttpResponse{200, {}, ""};
    };
    ASSERT_TRUE(deliver(*running));
    std::vector<std::string> order;
    std::map<std::string, std::string> id_of;
    for (const auto& request : outside_.taken) {
      const auto text = nlohmann::json::parse(request.body)["data"]["text"].get<std::string>();
      const auto id = request.headers.at("webhook-id");
      const auto [known, is_new] = id_of.emplace(text, id);
      EXPECT_EQ(known->second, id);
      if (is_new) order.push_back(text);
    }
    EXPECT_EQ(order, expected);
  }
}

/// A death after a receiver's yes and before the store has it: once more, with the same id.
TEST_F(Notifier, aYesThatWasNotWrittenDownIsAskedForAgain) {
  declare("oncall").events = {NotifiedEvent::Failed};
  ASSERT_TRUE(deliver(*delivery()));
  const auto before = *store_.getValue("notify.oncall");
  addEvent(EventKind::ActionFailed, "once");
  ASSERT_TRUE(deliver(*delivery()));
  ASSERT_TRUE(store_.putValue("notify.oncall", before.value_or("")));
  ASSERT_TRUE(deliver(*delivery()));
  ASSERT_EQ(outside_.taken.size(), 2u);
  EXPECT_EQ(outside_.taken[0].headers.at("webhook-id"), outside_.taken[1].headers.at("webhook-id"));
}

TEST_F(Notifier, aReceiverThatRefusesIsAFindingAndHoldsNobodyUp) {
  declare("oncall").events = {NotifiedEvent::Failed};
  cluster_.notifications["oncall"].url += "?token=hidden";
  declare("other").events = {NotifiedEvent::Failed};
  ASSERT_TRUE(
      store_.addFinding({{lifecycle::Subject::cluster(), FacetName("notify.gone")},
                         Severity::Warning,
                         "the receiver gone takes no messages",
                         "",
                         "",
                         loop_.clock.now(),
                         lifecycle::kMonitorSource}));  // of a receiver that is declared no more
  bool refuses = true;
  outside_.answer = [&refuses](const io::HttpRequest& request) -> Result<io::HttpResponse> {
    if (refuses && request.url.target.starts_with("/oncall"))
      return io::HttpResponse{500, {}, "out of order\nstack"};
    return io::HttpResponse{200, {}, ""};
  };
  loop_.spawn(notifyReceivers(services()));
  loop_.settle();
  addEvent(EventKind::ActionFailed, "it failed");
  const auto wait = [this](std::chrono::minutes time) {
    const auto end = loop_.clock.steady() + time;
    loop_.run([](Clock& clock, auto until) -> Task<bool> {
      while (clock.steady() < until) co_await clock.sleep(std::chrono::seconds(1));
      co_return true;
    }(loop_.clock, end));
  };
  wait(std::chrono::minutes(2));
  EXPECT_EQ(outside_.taken.size(), 1u) << "the other one";
  EXPECT_THAT(*store_.findings(nullptr), IsEmpty()) << "not at the first refusal";
  wait(std::chrono::minutes(10));
  const auto findings = *store_.findings(nullptr);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_THAT(findings[0].text, HasSubstr("http://127.0.0.1:1 answered 500: out of order"));
  EXPECT_THAT(findings[0].what_to_do, HasSubstr("notifications.oncall"));
  EXPECT_THAT(findings[0].text, ::testing::Not(HasSubstr("hidden")));
  EXPECT_LT(outside_.refused.size(), 12u) << "ever longer pauses";
  const auto waiting = backlogOf(store_, cluster_, "oncall");
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->waiting, 1u);
  EXPECT_NE(waiting->trouble, "");
  refuses = false;
  wait(std::chrono::minutes(10));
  EXPECT_EQ(outside_.taken.size(), 2u);
  EXPECT_THAT(*store_.findings(nullptr), IsEmpty());
  EXPECT_EQ(backlogOf(store_, cluster_, "oncall")->waiting, 0u);
}

TEST_F(Notifier, aKeyThatIsGoneIsSaidAndNothingIsLost) {
  declare("oncall").events = {NotifiedEvent::Failed};
  auto running = delivery();
  ASSERT_TRUE(deliver(*running));
  addEvent(EventKind::ActionFailed, "it failed");
  std::filesystem::remove(folder_ / "key");
  EXPECT_FALSE(deliver(*running));
  std::ofstream(folder_ / "key") << kSecret << "\n";
  ASSERT_TRUE(deliver(*running));
  EXPECT_EQ(outside_.taken.size(), 1u);
}

/// A command may ask a person, a network or a token: not at each look.
TEST_F(Notifier, readsAKeyOnceAndThenWhenSomethingIsDue) {
  const auto counted = (folder_ / "counted").string();
  const auto reads = [&] {
    std::ifstream in(counted);
    return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
  };
  declare("oncall").secret =
      inventory::SecretRef{"echo read >> " + counted + "; cat " + (folder_ / "key").string(), ""};
  auto running = delivery();
  for (int look = 0; look < 5; ++look) ASSERT_TRUE(deliver(*running));
  EXPECT_EQ(reads(), 1) << "so that a bad one is said at once";
  addEvent(EventKind::ActionFailed, "one");
  addEvent(EventKind::ActionFailed, "two");
  ASSERT_TRUE(deliver(*running));
  EXPECT_EQ(outside_.taken.size(), 2u);
  EXPECT_EQ(reads(), 2) << "once for all that is due";
  for (int look = 0; look < 5; ++look) ASSERT_TRUE(deliver(*running));
  EXPECT_EQ(reads(), 2);
  auto& alerts = declare("alerts", inventory::NotificationFormat::Alertmanager);
  alerts.secret = cluster_.notifications.at("oncall").secret;
  auto second = delivery("alerts");
  for (int look = 0; look < 5; ++look) ASSERT_TRUE(deliver(*second));
  EXPECT_EQ(reads(), 3);
  ASSERT_TRUE(store_.addFinding(finding("health.gpu", "GPU 3 is gone")));
  for (int look = 0; look < 5; ++look) ASSERT_TRUE(deliver(*second));
  EXPECT_EQ(reads(), 4);
}

TEST_F(Notifier, saysAtTheFirstLookThatAKeyIsNone) {
  std::ofstream(folder_ / "key") << "hunter2\n";
  declare("oncall");
  const auto first = deliver(*delivery());
  ASSERT_FALSE(first);
  EXPECT_THAT(first.error().text(), HasSubstr("whsec_"));
}

TEST_F(Notifier, aTrialReachesWhoIsDeclaredOnly) {
  declare("oncall").least_severity = inventory::NotifiedSeverity::Error;
  EXPECT_TRUE(
      loop_.run(sendTrial(cluster_, loop_.clock, loop_.workers, outside_.factory(), "oncall")));
  EXPECT_THAT(outside_.taken.at(0).body, HasSubstr("a trial"));
  ASSERT_EQ(outside_.taken.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(outside_.taken[1].body)["data"]["raised_by"],
            outside_.taken[0].headers.at("webhook-id"));
  const auto nobody =
      loop_.run(sendTrial(cluster_, loop_.clock, loop_.workers, outside_.factory(), "nobody"));
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code(), ErrorCode::NotFound);
}

}  // namespace
}  // namespace muster::monitor
