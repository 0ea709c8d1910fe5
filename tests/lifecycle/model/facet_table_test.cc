// SPDX-License-Identifier: Apache-2.0
// The table of facets is whole, and the only one.
#include "lifecycle/model/facet_table.h"

#include "tests/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

namespace muster::lifecycle {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
namespace test = muster::test;

std::string contentOf(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::string> matchesIn(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    out.push_back((*it)[1].str());
  return out;
}

TEST(FacetTable, theLongestNameThatFitsCounts) {
  EXPECT_EQ(findFacetRow("firmware.HGX_FW_BMC_0")->owner, "firmware");
  EXPECT_EQ(findFacetRow("health.bmc")->owner, "bmc-health");
  EXPECT_EQ(findFacetRow("health.gpu")->owner, "health");
  EXPECT_EQ(findFacetRow("bios")->stage, Stage::Bios);
  EXPECT_EQ(findFacetRow("biosphere"), nullptr);
  EXPECT_EQ(findFacetRow("image.x"), nullptr) << "a name is no family";
  EXPECT_EQ(findFacetRow(""), nullptr);
  EXPECT_EQ(stageOf(FacetName("storage.home")), Stage::Storage);
  EXPECT_EQ(stageOf(FacetName("hw.gpu.0")), Stage::None);
}

TEST(FacetTable, rowsAreWhole) {
  std::set<std::string_view> names;
  for (const auto& row : facetTable()) {
    EXPECT_TRUE(names.insert(row.facet).second) << row.facet << " twice";
    EXPECT_FALSE(row.owner.empty()) << row.facet;
    EXPECT_TRUE(row.stage == Stage::None || findStageRow(row.stage)) << row.facet;
    const bool acts = row.stage != Stage::None || row.expected.count() > 0;
    EXPECT_TRUE(!acts || row.stage == Stage::Certificate || !row.when_late.empty()) << row.facet;
    EXPECT_TRUE(!row.recoverable || acts) << row.facet;
  }
  Stage last = Stage::Enrollment;
  for (const auto& row : stageTable()) {
    EXPECT_LE(last, row.stage) << row.title;
    last = row.stage;
    EXPECT_FALSE(row.title.empty() || row.in_progress.empty() || row.reached.empty());
  }
}

/// What a node's certificate rests on (docs/architecture.md): no more, or certificates that are
/// signed already are void.
TEST(FacetTable, theCertificatesScope) {
  std::vector<std::string_view> bound, gates;
  for (const auto& row : facetTable()) {
    if (row.revalidation != Revalidation::None) bound.push_back(row.facet);
    if (row.revalidation == Revalidation::Gates) gates.push_back(row.facet);
  }
  EXPECT_THAT(bound,
              ElementsAre("firmware.", "image", "driver.", "storage.", "gate.", "hw.", "hw.part."));
  EXPECT_THAT(gates, ElementsAre("image", "hw."));
}

TEST(FacetTable, stagesBecomeNeedsOnWhateverGoalsTheyHave) {
  const Subject subject(NodeName("n1"));
  std::vector<Goal> goals(4);
  const char* names[] = {"driver.a", "firmware.NIC", "driver.b", "gate.burn-in"};
  for (std::size_t i = 0; i < goals.size(); ++i) goals[i].facet = {subject, FacetName(names[i])};
  goals[1].stage = Stage::InBandFirmware;
  goals[2].needs.push_back(goals[0].facet);
  goals[2].after = {Stage::Drivers};
  goals[3].after = {Stage::Drivers, Stage::Firmware, Stage::Fabric};
  std::vector<Goal*> all;
  for (auto& goal : goals) all.push_back(&goal);
  resolveStages(all);
  EXPECT_TRUE(goals[0].needs.empty());
  EXPECT_THAT(goals[2].needs, ElementsAre(goals[0].facet)) << "not itself, and each once";
  EXPECT_THAT(goals[3].needs, ElementsAre(goals[0].facet, goals[2].facet))
      << "in-band firmware is another stage, and nobody has a goal of fabric";
}

TEST(FacetTable, everyFacetOfTheDocumentationHasARow) {
  const auto text = contentOf(test::sourceFolder() / "docs/architecture.md");
  const auto from = text.find("| facet | owner |");
  ASSERT_NE(from, std::string::npos) << "the table of facets has moved";
  std::istringstream table(text.substr(from, text.find("\n\n", from) - from));
  const std::regex name(R"(`(\.?[a-z]+[a-zA-Z.-]*)`)");
  std::size_t found = 0;
  for (std::string line; std::getline(table, line);) {
    const auto cell = line.substr(0, line.find('|', 2));
    std::string family;
    for (auto facet : matchesIn(cell, name)) {
      if (facet.starts_with('.')) facet = family + facet.substr(1);  // `health.gpu`, `.disk`
      family = facet.substr(0, facet.find('.') + 1);
      EXPECT_NE(findFacetRow(facet), nullptr) << facet;
      ++found;
    }
  }
  EXPECT_GT(found, 20u);
}

/// Phases say what they need by stage: none names a facet of another one.
TEST(FacetTable, noPhaseNamesAnothersFacets) {
  const std::map<std::string, std::string> owner_of{
      {"enrolled", "provision"}, {"inspected", "provision"}, {"driver.", "provision"},
      {"storage.", "provision"}, {"firmware.", "firmware"},  {"fabric.", "fabric"},
      {"gate.", "validate"},     {"health.", "monitor"},     {"recovery.", "monitor"}};
  const std::regex literal(
      R"re("(enrolled|inspected|(?:driver|storage|firmware|fabric|gate|health|recovery)\.)[a-z0-9-]*")re");
  std::vector<std::string> foreign;
  for (const char* folder : {"provision", "firmware", "fabric", "validate", "pool"})
    for (const auto& entry : fs::recursive_directory_iterator(test::sourceFolder() / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      for (const auto& facet : matchesIn(contentOf(entry.path()), literal))
        if (owner_of.at(facet) != folder)
          foreign.push_back(entry.path().filename().string() + ": " + facet);
    }
  EXPECT_THAT(foreign, IsEmpty());
}

/// A second table would have to name several facets that a table names as families.
TEST(FacetTable, thereIsNoOther) {
  const std::regex literal(
      R"re("((?:driver|storage|firmware|fabric|gate|health|recovery|hw)\.)")re");
  std::vector<std::string> tables;
  for (const char* folder : {"lifecycle", "monitor", "provision", "firmware", "fabric", "validate",
                             "pool", "cli", "app", "gateway", "bmc"})
    for (const auto& entry : fs::recursive_directory_iterator(test::sourceFolder() / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      const auto all = matchesIn(contentOf(entry.path()), literal);
      if (std::set<std::string>(all.begin(), all.end()).size() > 2)
        tables.push_back(entry.path().filename().string());
    }
  EXPECT_THAT(tables, ElementsAre("facet_table.cc"));
}

TEST(ActionCause, aPoolsReasonIsReadAsItWasWritten) {
  const PoolReason reason{ActionCause::Admission, "health.gpu", "xid.79@0000:18:00.0 (reboot)"};
  EXPECT_EQ(print(reason), "admission (health.gpu): xid.79@0000:18:00.0 (reboot)");
  const auto read = parsePoolReason(print(reason));
  EXPECT_EQ(read.cause, reason.cause);
  EXPECT_EQ(read.about, reason.about);
  EXPECT_EQ(read.text, reason.text);
  EXPECT_EQ(parsePoolReason("admission: xid.79").cause, ActionCause::Admission);
  EXPECT_EQ(parsePoolReason("admission: xid.79").about, "");
  EXPECT_EQ(parsePoolReason("admission: its certificate is void: expired").about, "certificate")
      << "as older musters wrote it";
  for (const char* other : {"driver nvidia changes", "admission", "admission (x", "", "repairs: a"})
    EXPECT_EQ(parsePoolReason(other).cause, ActionCause::Declared) << other;
  EXPECT_EQ(print({ActionCause::Declared, {}, "driver nvidia changes"}), "driver nvidia changes");
}

}  // namespace
}  // namespace muster::lifecycle
