// SPDX-License-Identifier: Apache-2.0
#include "monitor/notify/alertmanager.h"
#include "tests/monitor/notify/receiver_fixture.h"

#include <gmock/gmock.h>

namespace muster::monitor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AlertmanagerDelivery : public ::muster::test::Notifications {
 protected:
  void SetUp() override { declare("alerts", inventory::NotificationFormat::Alertmanager); }
  std::unique_ptr<Delivery> delivery() {
    return makeDelivery(services(), "alerts", cluster_.notifications.at("alerts"));
  }
  nlohmann::json newest() const { return nlohmann::json::parse(outside_.taken.back().body); }
};

TEST_F(AlertmanagerDelivery, saysWhatIsOpenAgainAndAgainAndOnceThatItIsOver) {
  auto running = delivery();
  ASSERT_TRUE(deliver(*running));
  EXPECT_THAT(outside_.taken, IsEmpty()) << "nothing is open";
  const auto gone = finding("health.gpu", "GPU 3 is gone");
  ASSERT_TRUE(store_.addFinding(gone));
  ASSERT_TRUE(deliver(*running));
  ASSERT_TRUE(deliver(*running));
  ASSERT_EQ(outside_.taken.size(), 1u) << "not at every look";
  EXPECT_EQ(outside_.taken[0].url.target, "/alerts/api/v2/alerts");
  const auto alert = newest().at(0);
  EXPECT_EQ(alert["labels"], (nlohmann::json{{"alertname", "MusterFinding"},
                                             {"cluster", "c1"},
                                             {"subject", "gpu001"},
                                             {"facet", "health.gpu"},
                                             {"severity", "critical"},
                                             {"rack", "r1"},
                                             {"pool", "batch"}}));
  EXPECT_EQ(alert["annotations"]["summary"], "GPU 3 is gone");
  EXPECT_EQ(alert["annotations"]["what_to_do"], "do this");
  loop_.clock.advance(std::chrono::minutes(2));
  ASSERT_TRUE(deliver(*running));
  EXPECT_EQ(outside_.taken.size(), 2u) << "before Alertmanager takes it for over";
  EXPECT_GT(newest().at(0)["endsAt"], muster::toString(loop_.clock.now()));
  EXPECT_EQ(newest().at(0)["startsAt"], alert["startsAt"]);
  ASSERT_TRUE(store_.clearFindings(gone.facet));
  ASSERT_TRUE(deliver(*running));
  EXPECT_EQ(newest().at(0)["endsAt"], muster::toString(loop_.clock.now()));
  const auto sent = outside_.taken.size();
  loop_.clock.advance(std::chrono::minutes(2));
  ASSERT_TRUE(deliver(*running));
  EXPECT_EQ(outside_.taken.size(), sent);
}

TEST_F(AlertmanagerDelivery, severalFindingsOfOneFacetAreOneAlertWithTheNewestWords) {
  ASSERT_TRUE(store_.addFinding(finding("health.gpu", "first")));
  loop_.clock.advance(std::chrono::seconds(3));
  ASSERT_TRUE(store_.addFinding(finding("health.gpu", "second")));
  ASSERT_TRUE(deliver(*delivery()));
  ASSERT_EQ(newest().size(), 1u);
  EXPECT_EQ(newest().at(0)["annotations"]["summary"], "second");
}

TEST_F(AlertmanagerDelivery, whatWasNotTakenIsSentAgain) {
  ASSERT_TRUE(store_.addFinding(finding("health.gpu", "GPU 3 is gone")));
  auto running = delivery();
  outside_.answer = [](const io::HttpRequest&) -> Result<io::HttpResponse> {
    return io::HttpResponse{400, {}, "bad label name"};
  };
  const auto refused = deliver(*running);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), HasSubstr("answered 400: bad label name"));
  outside_.answer = [](const io::HttpRequest&) -> Result<io::HttpResponse> {
    return io::HttpResponse{200, {}, ""};
  };
  ASSERT_TRUE(deliver(*running));
  EXPECT_EQ(outside_.taken.size(), 1u);
}

}  // namespace
}  // namespace muster::monitor
