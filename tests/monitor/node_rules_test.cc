// SPDX-License-Identifier: Apache-2.0
// What a node says of itself is what the controller's table says of it.
#include "monitor/node_rules.h"

#include "monitor/symptoms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace muster::monitor {
namespace {

bool takesOut(const wire::Symptom& symptom, const inventory::MonitorPolicy& policy) {
  return assess(symptom, 0, policy.symptoms).action != HealthAction::Watch;
}

/// Every symptom of the table and some that no row knows, with any count, rate and words, under
/// rules of the inventory at random.
TEST(NodeRules, agreeWithTheTable) {
  std::mt19937 random(7);
  const auto upTo = [&](std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(0, most)(random);
  };
  const std::vector<std::string> words{"",
                                       "Node Reboot",
                                       "changed from 0x0 (None) to 0x1 (GPU Reset Required)",
                                       "changed from 0x1 (GPU Reset Required) to 0x0 (None)",
                                       "uncorrectable error",
                                       "Drain P2P to nothing"};
  const auto rows = symptomRows();
  std::size_t unfit = 0, fit = 0;
  for (int round = 0; round < 300; ++round) {
    inventory::MonitorPolicy policy;
    for (auto left = upTo(4); left > 0; --left) {
      inventory::SymptomRule rule;
      rule.name = std::string(rows[upTo(rows.size() - 1)].symptom);
      if (upTo(2) == 0) rule.name = rule.name.substr(0, rule.name.find('.') + 1) + "*";
      rule.action = static_cast<HealthAction>(upTo(inventory::kHealthActions - 1));
      rule.min_count = static_cast<int>(1 + upTo(9));
      if (upTo(1)) rule.per_hour = static_cast<int>(1 + upTo(9));
      policy.symptoms.push_back(std::move(rule));
    }
    const auto rules = nodeRules(policy, true);
    const auto read = wire::parseHealthRules(toJson(rules));
    ASSERT_TRUE(read) << read.error().str();
    for (std::size_t i = 0; i <= rows.size(); ++i) {
      wire::Symptom symptom;
      symptom.id = i == rows.size() ? "fan.broken" : std::string(rows[i].symptom);
      if (symptom.id.ends_with('*')) symptom.id.replace(symptom.id.size() - 1, 1, "disk");
      symptom.device = "dev0";
      symptom.count = 1 + upTo(1200);
      if (upTo(1)) symptom.last_hour = upTo(12);
      symptom.text = words[upTo(words.size() - 1)];
      const bool taken_out = takesOut(symptom, policy);
      EXPECT_EQ(wire::whyUnfit({{symptom}, {}}, *read).has_value(), taken_out)
          << symptom.id << " x " << symptom.count << ": " << symptom.text;
      ++(taken_out ? unfit : fit);
    }
  }
  EXPECT_GT(unfit, 1'000u);
  EXPECT_GT(fit, 1'000u);
}

TEST(NodeRules, fitIntoAMessage) {
  inventory::MonitorPolicy policy;
  EXPECT_LT(toJson(nodeRules(policy, true)).size(), 64u << 10);
}

}  // namespace
}  // namespace muster::monitor
