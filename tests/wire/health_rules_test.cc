// SPDX-License-Identifier: Apache-2.0
#include "wire/health_rules.h"

#include <gmock/gmock.h>

namespace muster::wire {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

HealthReport seen(std::string id, std::uint64_t count = 1, std::string text = "",
                  std::optional<std::uint64_t> last_hour = {}) {
  return {{{std::move(id), "dev0", count, std::move(text), last_hour}}, {{"kernel", "ok"}}};
}

HealthRules rules(std::vector<HealthRule> all, bool expects_gpus = false) {
  return {std::move(all), expects_gpus};
}

TEST(HealthRules, theFirstThatFitsCounts) {
  const auto table = rules({{"xid.79", "", 1, 0, false}, {"xid.*", "", 1, 0, true}});
  EXPECT_FALSE(whyUnfit(seen("xid.79"), table)) << "watched only";
  EXPECT_THAT(whyUnfit(seen("xid.48", 1, "double bit error"), table),
              Optional(HasSubstr("xid.48 at dev0: double bit error")));
  EXPECT_FALSE(whyUnfit(seen("disk.worn"), table)) << "what nobody knows takes no node out";
}

TEST(HealthRules, countsAndRates) {
  const auto table = rules({{"network.link-flaps", "", 10, 5, true}});
  EXPECT_FALSE(whyUnfit(seen("network.link-flaps", 9), table));
  EXPECT_TRUE(whyUnfit(seen("network.link-flaps", 10), table));
  EXPECT_FALSE(whyUnfit(seen("network.link-flaps", 1000, "", 4), table)) << "long ago";
  EXPECT_TRUE(whyUnfit(seen("network.link-flaps", 6, "", 5), table));
}

TEST(HealthRules, ofAChangeOfStateTheOutcomeCounts) {
  const auto table = rules({{"xid.154", "Reset", 1, 0, true}});
  EXPECT_TRUE(whyUnfit(seen("xid.154", 1, "changed from 0x0 (None) to 0x1 (GPU Reset)"), table));
  EXPECT_FALSE(whyUnfit(seen("xid.154", 1, "changed from 0x1 (GPU Reset) to 0x0 (None)"), table));
}

TEST(HealthRules, whatCannotBeWatchedIsASymptomWhereItMustBeThere) {
  const std::vector<HealthRule> all{{"system.blind.gpu", "", 1, 0, true},
                                    {"system.blind.*", "", 1, 0, false}};
  for (const auto* state : {"absent", "NVML does not answer"}) {
    const HealthReport blind{{}, {{"gpu", state}, {"disk", "absent"}}};
    EXPECT_TRUE(whyUnfit(blind, rules(all, true))) << state;
    EXPECT_FALSE(whyUnfit(blind, rules(all, false))) << state;
  }
  EXPECT_FALSE(whyUnfit({{}, {{"gpu", "starting"}}}, rules(all, true)));
}

TEST(HealthRules, travelAndAreReadStrictly) {
  const auto table = rules({{"xid.*", "Reset \"now\"", 3, 5, true}, {"a", "", 1, 0, false}}, true);
  const auto back = parseHealthRules(toJson(table));
  ASSERT_TRUE(back) << back.error().str();
  EXPECT_EQ(*back, table);
  EXPECT_FALSE(parseHealthRules(""));
  EXPECT_FALSE(parseHealthRules("{}"));
  EXPECT_FALSE(parseHealthRules(R"({"rules": [{"symptom": ""}]})"));
  EXPECT_FALSE(parseHealthRules(R"({"rules": [{"symptom": "x", "at_least": -1}]})"));
  EXPECT_NE(digestOfHealthRules("a"), digestOfHealthRules("b"));
  EXPECT_NE(digestOfHealthRules("a"), kNoHealthRules);
}

}  // namespace
}  // namespace muster::wire
