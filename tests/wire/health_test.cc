// SPDX-License-Identifier: Apache-2.0
#include "wire/health.h"
#include "wire/messages.h"

#include <gmock/gmock.h>

namespace muster::wire {
namespace {

TEST(HealthReport, travelsWithThePollAndIsReadStrictly) {
  const HealthReport report{{{"xid.79", "0000:18:00.0", 2, "fallen \xff off"}}, {{"gpu", "ok"}}};
  const auto back = parseHealthReport(toJson(report));
  ASSERT_TRUE(back) << back.error().str();
  EXPECT_EQ(back->symptoms[0].count, 2u);
  EXPECT_FALSE(parseHealthReport(R"({"symptoms": [{"device": "x", "count": 1}], "sources": {}})"));
  EXPECT_FALSE(parseHealthReport(R"({"symptoms": [{"id": "x", "count": -1}], "sources": {}})"));
  PollRequest poll;
  poll.boot_id = "b";
  poll.health = toJson(report);
  EXPECT_EQ(parsePollRequest(toJson(poll))->health, poll.health);
  poll.health.clear();
  EXPECT_TRUE(parsePollRequest(toJson(poll))->health.empty()) << "an older agent says nothing";
}

}  // namespace
}  // namespace muster::wire
