// SPDX-License-Identifier: Apache-2.0
#include "monitor/notify/webhook.h"
#include "tests/monitor/notify/receiver_fixture.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::monitor {
namespace {

using inventory::webhookKey;

using ::testing::HasSubstr;

/// As the reference library of Standard Webhooks (npm standardwebhooks 1.0.0) signs it.
TEST(Webhook, isSignedAsTheReferenceLibraryDoes) {
  const auto key = webhookKey(Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
  ASSERT_TRUE(key) << key.error().str();
  const WebhookMessage message{"msg_p5jXN8AQM9LWM0D4loKWxJek", R"({"test": 2432232314})"};
  const auto headers = webhookHeaders(message, WallTime(std::chrono::seconds(1614265330)), *key);
  EXPECT_EQ(headers.at("webhook-id"), message.id);
  EXPECT_EQ(headers.at("webhook-timestamp"), "1614265330");
  EXPECT_EQ(headers.at("webhook-signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(Webhook, aKeyThatIsNoneSaysHowToMakeOne) {
  for (const auto* text : {"", "secret", "whsec_", "whsec_%%%%", "whsec_c2hvcnQ="}) {
    const auto key = webhookKey(Secret(text));
    ASSERT_FALSE(key) << text;
    EXPECT_THAT(key.error().str(), HasSubstr("muster notify secret"));
    EXPECT_THAT(key.error().str(), ::testing::Not(HasSubstr("c2hvcnQ")));
  }
  const auto made = newWebhookSecret();
  EXPECT_TRUE(webhookKey(made));
  EXPECT_NE(made, newWebhookSecret());
}

class WebhookMessages : public ::muster::test::Notifications {};

TEST_F(WebhookMessages, tellOfWhatWasAskedForOnly) {
  auto& receiver = declare("oncall");
  const lifecycle::Event failed{7,
                                loop_.clock.now(),
                                lifecycle::EventKind::ActionFailed,
                                lifecycle::Subject(NodeName("gpu001")),
                                "gpu001/image",
                                "the disk is full"};
  const auto message = messageOf(failed, receiver, "c1");
  ASSERT_TRUE(message);
  const auto body = nlohmann::json::parse(message->body);
  EXPECT_EQ(body["type"], "action.failed");
  EXPECT_EQ(body["data"]["subject"], "gpu001");
  EXPECT_EQ(body["data"]["action"], "gpu001/image");
  EXPECT_EQ(body["data"]["text"], "the disk is full");
  EXPECT_EQ(body["data"]["sequence"], 7);
  EXPECT_EQ(messageOf(failed, receiver, "c1")->id, message->id);
  EXPECT_NE(messageOf(failed, receiver, "c2")->id, message->id) << "two sites, one receiver";
  receiver.events = {inventory::NotifiedEvent::Note};
  EXPECT_FALSE(messageOf(failed, receiver, "c1"));
}

TEST_F(WebhookMessages, aFindingThatComesBackIsAnotherOne) {
  const auto before = finding("health.gpu", "GPU 3 has fallen off the bus");
  loop_.clock.advance(std::chrono::minutes(1));
  const auto again = finding("health.gpu", "GPU 3 has fallen off the bus");
  EXPECT_NE(findingId(before, "c1"), findingId(again, "c1"));
  EXPECT_EQ(findingId(before, "c1"), findingId(before, "c1"));
}

/// Words of BMCs and nodes may be anything; the body stays JSON.
TEST_F(WebhookMessages, foreignWordsStayJson) {
  auto harmful = finding("health.gpu", std::string("\x1b[2J\xff\xfe\"}]\n\0", 11));
  harmful.evidence = std::string(100'000, '\xc3');
  const auto body = raisedMessage(harmful, "c1").body;
  const auto read = nlohmann::json::parse(body, nullptr, false);
  EXPECT_FALSE(read.is_discarded());
  EXPECT_LT(body.size(), 64u << 10);
}

}  // namespace
}  // namespace muster::monitor
