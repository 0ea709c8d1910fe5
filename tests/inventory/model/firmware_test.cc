// SPDX-License-Identifier: Apache-2.0
// Baselines as they are written: constraints, intermediate versions, signatures.
#include "tests/inventory/inventory_fixture.h"

#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <compare>

namespace muster::inventory {
namespace {

class FirmwareInventory : public InventoryTest {
 protected:
  /// The small inventory with one more baseline in front of its own.
  /// Apart: where GCC 12 knows the length it warns of copies that cannot happen.
  [[gnu::noinline]] static std::string components() { return std::string(kComponents); }
  static std::string withBaseline(const std::string& body) {
    return with("firmware:\n", "firmware:\n  b:\n" + body);
  }
  static constexpr const char* kComponents = R"(    components:
      BIOS: {version: "2.0", file: bios.fw, sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}
      System ROM: {version: U54, activation: power-cycle}
)";
};

TEST_F(FirmwareInventory, constraintsAndNamesWithBlanksAreRead) {
  const auto loaded = loadYaml(withBaseline(
      components() +
      "    order: [System ROM]\n    constraints: [BIOS >= 2.0 needs System ROM >= U50]\n"));
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  const auto& baseline = loaded.cluster->firmware.at("b");
  EXPECT_EQ(baseline.order, (std::vector<std::string>{"System ROM", "BIOS"}));
  EXPECT_EQ(baseline.declared_order, 1u);
  ASSERT_EQ(baseline.constraints.size(), 1u);
  EXPECT_EQ(baseline.constraints[0].str(), "BIOS >= 2.0 needs System ROM >= U50");
  EXPECT_EQ(baseline.find("System ROM")->activation, FirmwareActivation::PowerCycle);
}

TEST_F(FirmwareInventory, whatIsWrongIsNamedWithItsPlace) {
  const auto loaded = loadYaml(withBaseline(components() + "    constraints: [BIOS needs CPLD]\n"));
  EXPECT_FALSE(loaded.cluster);
  const auto text = checkText(loaded);
  EXPECT_THAT(text, testing::HasSubstr(":18:"));
  EXPECT_THAT(text, testing::HasSubstr("is no constraint; write COMPONENT >= VERSION needs"));
}

TEST_F(FirmwareInventory, aBaselineThatBreaksItsOwnConstraintIsRefused) {
  const std::string versions = R"yaml(    components:
      BIOS: {version: "2.0"}
      CPLD_0: {version: "0x12"}
      NIC: {version: "28.*"}
      ROM: {version: "GB200Nvl-24.10", pattern: "Nvl-([0-9.]+)"}
)yaml";
  for (const auto& [constraint, told] : std::vector<std::pair<std::string, std::string>>{
           {"BIOS >= 2.0 needs CPLD_* >= 0x14", "BIOS 2.0 and CPLD_0 0x12"},
           {"BIOS >= 2 excludes ROM < 24.11", "BIOS 2.0 and ROM GB200Nvl-24.10"}}) {
    const auto loaded =
        loadYaml(withBaseline(versions + "    constraints: [" + constraint + "]\n"));
    EXPECT_FALSE(loaded.cluster) << constraint;
    EXPECT_THAT(checkText(loaded),
                testing::AllOf(testing::HasSubstr("this baseline breaks it"),
                               testing::HasSubstr(told), testing::HasSubstr("change one of")));
  }
  for (const char* kept : {"BIOS >= 3.0 needs CPLD_* >= 0x14", "BIOS >= 2.0 needs NIC >= 29",
                           "BIOS < 2 needs ROM > 99", "BIOS >= 2.0 needs nvml.driver >= 999",
                           "ROM >= 24.10 needs BIOS = 2.0"})
    EXPECT_TRUE(
        loadYaml(withBaseline(versions + "    constraints: [" + std::string(kept) + "]\n")).cluster)
        << kept;
}

TEST_F(FirmwareInventory, aWrongOrderAndAWrongConstraintAreBothTold) {
  const auto loaded = loadYaml(
      withBaseline(components() + "    order: [NIC]\n    constraints: [BIOS needs CPLD]\n"));
  EXPECT_FALSE(loaded.cluster);
  EXPECT_THAT(checkText(loaded),
              testing::AllOf(testing::HasSubstr("\"NIC\" is no component of this baseline"),
                             testing::HasSubstr("is no constraint; write")));
}

TEST_F(FirmwareInventory, aSteppingStoneMustLeadUpwards) {
  const auto loaded = loadYaml(withBaseline(R"(    components:
      BIOS: {version: "2.0", file: b.fw, sha256: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,
             intermediate: [{version: "2.1", file: v.fw, sha256: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb}]}
)"));
  EXPECT_FALSE(loaded.cluster);
  EXPECT_THAT(checkText(loaded), testing::HasSubstr("2.1 is not below 2.0"));
}

TEST_F(FirmwareInventory, aSignedBaselineIsAcceptedAndAChangedOneIsNot) {
  const auto plain = loadYaml(withBaseline(kComponents));
  ASSERT_TRUE(plain.cluster) << checkText(plain);
  const auto key = *io::SigningKey::generate();
  write("b.sig", *io::sign(key, plain.cluster->firmware.at("b").canonical()) + "\n");
  write("key.pem", key.public_pem);
  const std::string vouched = "    signature: b.sig\n    signer: key.pem\n";
  const auto good = loadYaml(withBaseline(kComponents + vouched));
  EXPECT_TRUE(good.cluster) << checkText(good);
  auto changed = components() + vouched;
  changed.replace(changed.find("U54"), 3, "U55");
  const auto bad = loadYaml(withBaseline(changed));
  EXPECT_FALSE(bad.cluster);
  EXPECT_THAT(checkText(bad), testing::HasSubstr("the signature does not fit"));
}

TEST_F(FirmwareInventory, versionsAreWrittenAsBmcsPrintThem) {
  const auto loaded = loadYaml(withBaseline(R"yaml(    components:
      FW_CPLD_0: {version: "0x00 0x0b 0x03 0x04"}
      HGX_FW_CPU_0: {version: "01.02.04         "}
      System ROM: {version: "A42 v2.42 (04/29/2021)"}
      FW_BMC_0: {version: GB200Nvl-24.12-8, pattern: "GB200Nvl-([0-9.-]+)"}
)yaml"));
  ASSERT_TRUE(loaded.cluster) << checkText(loaded);
  const auto& baseline = loaded.cluster->firmware.at("b");
  EXPECT_EQ(baseline.find("FW_CPLD_0")->version, "0x00 0x0b 0x03 0x04");
  EXPECT_EQ(baseline.find("HGX_FW_CPU_0")->version, "01.02.04");
  EXPECT_EQ(baseline.find("System ROM")->version, "A42 v2.42 (04/29/2021)");
  EXPECT_EQ(baseline.find("FW_BMC_0")->pattern, "GB200Nvl-([0-9.-]+)");
}

TEST_F(FirmwareInventory, aPatternThatFindsNothingOrIsNoneIsAMistake) {
  for (const auto& [pattern, wrong] : {std::pair{"GH200-(.*)", "finds nothing in the version"},
                                       std::pair{"(GB200", "is no regular expression"}}) {
    const auto loaded = loadYaml(withBaseline(fmt::format(
        "    components:\n      FW_BMC_0: {{version: GB200Nvl-24.12-8, pattern: \"{}\"}}\n",
        pattern)));
    EXPECT_FALSE(loaded.cluster);
    EXPECT_THAT(checkText(loaded), testing::HasSubstr(wrong));
  }
}

// A BMC may say anything for a version, and it is compared in the controller.
TEST(ComparablePart, isNotLookedForInAVersionWithoutEnd) {
  for (const std::string pattern : {"", "([0-9.]+)$"}) {
    const auto part = comparablePart(pattern, std::string(1'000'000, '1'));
    ASSERT_FALSE(part) << pattern;
    EXPECT_THAT(part.error().text(), testing::HasSubstr("has 1000000 bytes"));
    EXPECT_LT(part.error().text().size(), 200u);
  }
  const std::string longest(kMaxComparedBytes, '1');
  EXPECT_EQ(comparablePart("([0-9.]+)$", longest).value_or(""), longest);
}

TEST(ComparablePart, isFoundInALittleTimeByAnyPattern) {
  const std::string text(kMaxComparedBytes, 'a');
  EXPECT_FALSE(comparablePart("(a*)*b", text));
  EXPECT_FALSE(comparablePart("(a|aa)+b", text));
  EXPECT_EQ(comparablePart("(a|aa)+", text).value_or(""), "a");
}

TEST(ComparablePart, isThatOfTheFirstGroupAndTheLeftmost) {
  EXPECT_EQ(comparablePart("v?([0-9]+(\\.[0-9]+)*)", "x v1.2.3 4.5").value_or(""), "1.2.3");
  EXPECT_EQ(comparablePart("[0-9]+|[a-z]+", "ab 12").value_or(""), "ab");
  EXPECT_EQ(comparablePart("a(b)?", "a").value_or(""), "a");
  EXPECT_FALSE(comparablePart("(a)\\1", "aa"));
}

TEST(FirmwareVersionOrder, isOnlyThereWhereWordsAreTheSame) {
  const auto less = std::weak_ordering::less;
  EXPECT_EQ(comparedVersions("GB200Nvl-24.10-1", "GB200Nvl-24.12-8"), less);
  EXPECT_EQ(comparedVersions("0x00 0x0b 0x03 0x03", "0x00 0x0b 0x03 0x04"), less);
  EXPECT_EQ(comparedVersions("0x00 0x0b 0x03 0x03", "0x00.0x0b.0x03.0x04"), less);
  EXPECT_EQ(comparedVersions("01.03.0262.0000_n03", "01.03.0262.0000_n04"), less);
  EXPECT_EQ(comparedVersions("1.4", "1.4.1"), less);
  EXPECT_EQ(comparedVersions(" 1.4 ", "1.4"), std::weak_ordering::equivalent);
  for (const auto& [a, b] :
       {std::pair{"GB200Nvl-24.12-8", "24.10"}, std::pair{"GB200Nvl-24.12-8", "GH200-24.05-2"},
        std::pair{"1.2-rc1", "1.2"}, std::pair{"buildbrain-gcid-38635631", "2.0"},
        std::pair{"", "1"}}) {
    EXPECT_EQ(comparedVersions(a, b), std::nullopt) << a << " " << b;
    EXPECT_EQ(comparedVersions(b, a), std::nullopt) << b << " " << a;
  }
}

}  // namespace
}  // namespace muster::inventory
