// SPDX-License-Identifier: Apache-2.0
// The action table against the traps of the field.
#include "monitor/symptoms.h"
#include "inventory/model/monitor.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::monitor::test {
namespace {

using inventory::SymptomRule;

HealthAction actionOf(std::string id, std::uint64_t count = 1, int boots_before = 0,
                      std::string text = "") {
  return assess({std::move(id), "0000:18:00.0", count, std::move(text)}, boots_before, {}).action;
}

TEST(Symptoms, anApplicationsXidBlamesNoHardware) {
  for (int xid : {8,   11,  13,  31,  32,  39,  40,  41,  68,  69, 94,
                  126, 127, 128, 129, 130, 131, 132, 133, 134, 135})
    EXPECT_EQ(actionOf(fmt::format("xid.{}", xid), 1000, 5), HealthAction::Watch) << xid;
}

TEST(Symptoms, informationIsNoFault) {
  for (int xid : {43, 44, 63, 92, 93, 106, 107, 121, 137, 141})
    EXPECT_EQ(actionOf(fmt::format("xid.{}", xid)), HealthAction::Watch) << xid;
}

TEST(Symptoms, whatTheCatalogueResetsOrReboots) {
  for (int xid : {46, 48, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158})
    EXPECT_EQ(actionOf(fmt::format("xid.{}", xid)), HealthAction::Reset) << xid;
  for (int xid : {79, 151, 168})
    EXPECT_EQ(actionOf(fmt::format("xid.{}", xid)), HealthAction::Reboot) << xid;
  for (int xid : {54, 74, 144, 145, 146, 147, 148, 149, 150})
    EXPECT_EQ(actionOf(fmt::format("xid.{}", xid)), HealthAction::Drain) << xid;
}

TEST(Symptoms, whatComesBackAfterAResetGoesBackToTheVendor) {
  for (int xid : {48, 64, 79, 95, 140})
    EXPECT_EQ(actionOf(fmt::format("xid.{}", xid), 1, 1), HealthAction::Rma) << xid;
  EXPECT_EQ(actionOf("xid.119", 1, 3), HealthAction::Reset)
      << "the catalogue says nothing about its repeats";
  EXPECT_EQ(actionOf("gpu.remap-failure"), HealthAction::Rma) << "at once";
  EXPECT_EQ(actionOf("gpu.remap-pending"), HealthAction::Reset);
}

TEST(Symptoms, xid154MeansWhatItsWordsSayTheChangeHasLedTo) {
  EXPECT_EQ(actionOf("xid.154", 1, 0,
                     "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
            HealthAction::Reset);
  EXPECT_EQ(actionOf("xid.154", 1, 0,
                     "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x2 (Node "
                     "Reboot Required)"),
            HealthAction::Reboot);
  EXPECT_EQ(
      actionOf("xid.154", 1, 0, "GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)"),
      HealthAction::Drain);
  EXPECT_EQ(actionOf("xid.154", 1, 0,
                     "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"),
            HealthAction::Watch);
}

TEST(Symptoms, countsBelowTheLimitAreOnlyWatched) {
  EXPECT_EQ(actionOf("gpu.rows-remapped", 511), HealthAction::Watch);
  EXPECT_EQ(actionOf("gpu.rows-remapped", 512), HealthAction::Rma);
  EXPECT_EQ(actionOf("network.link-flaps", 9), HealthAction::Watch);
  EXPECT_EQ(actionOf("network.link-flaps", 10), HealthAction::Drain);
}

TEST(Symptoms, anUnknownOneIsWatchedAndSaysThatItIsUnknown) {
  const auto verdict = assess({"xid.9999", "", 1, ""}, 0, {});
  EXPECT_EQ(verdict.action, HealthAction::Watch);
  EXPECT_FALSE(verdict.known);
}

TEST(Symptoms, theInventorysRowsComeFirstAndExactOnesBeforeThoseWithAStar) {
  const std::vector<SymptomRule> rules = {{"xid.*", HealthAction::Drain, 1, {}, "all XIDs"},
                                          {"xid.13", HealthAction::Quarantine, 3, {}, "ours"}};
  EXPECT_EQ(assess({"xid.13", "", 3, ""}, 0, rules).action, HealthAction::Quarantine);
  EXPECT_EQ(assess({"xid.13", "", 2, ""}, 0, rules).action, HealthAction::Watch);
  EXPECT_EQ(assess({"xid.31", "", 1, ""}, 0, rules).action, HealthAction::Drain);
  EXPECT_EQ(assess({"disk.read-only", "", 1, ""}, 0, rules).action, HealthAction::Drain);
}

TEST(Symptoms, everyRowHasAdviceASourceAndAGroupAndNoRowHidesAnother) {
  std::set<std::string> seen;
  for (const auto& row : symptomRows()) {
    EXPECT_FALSE(row.advice.empty()) << row.symptom;
    EXPECT_FALSE(row.source.empty()) << row.symptom;
    EXPECT_GE(row.at_least, 1u) << row.symptom;
    EXPECT_TRUE(seen.insert(std::string(row.symptom) + "|" + std::string(row.text)).second)
        << row.symptom << " occurs twice";
  }
  EXPECT_EQ(groupOf("xid.79"), "gpu");
  EXPECT_EQ(groupOf("disk.read-only"), "disk");
  EXPECT_EQ(groupOf("link"), "system");
}

/// Ten flaps since a boot two years ago are none; five within the hour are a bad cable.
TEST(Symptoms, portsAreEvaluatedByTheirRateWhereTheAgentTellsIt) {
  const auto action = [](const char* id, std::uint64_t total,
                         std::optional<std::uint64_t> last_hour,
                         const std::vector<SymptomRule>& rules = {}) {
    return assess({id, "mlx5_0/1", total, "", last_hour}, 0, rules).action;
  };
  EXPECT_EQ(action("network.link-flaps", 500, 4), HealthAction::Watch);
  EXPECT_EQ(action("network.link-flaps", 5, 5), HealthAction::Drain);
  EXPECT_EQ(action("network.link-flaps", 500, std::nullopt), HealthAction::Drain)
      << "an older agent tells no rate";
  SymptomRule rule;
  rule.name = "network.*";
  rule.action = HealthAction::Drain;
  rule.per_hour = 50;
  EXPECT_EQ(action("network.errors", 1'000'000, 49, {rule}), HealthAction::Watch);
  EXPECT_EQ(action("network.errors", 1'000'000, 50, {rule}), HealthAction::Drain);
}

}  // namespace
}  // namespace muster::monitor::test
