// SPDX-License-Identifier: Apache-2.0
// Baselines as they are written: constraints, intermediate versions, signatures.
#include "tests/inventory/inventory_fixture.h"

#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace muster::inventory
