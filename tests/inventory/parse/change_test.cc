// SPDX-License-Identifier: Apache-2.0
// Change files: what they may say, and what they are told when they are wrong.
#include "inventory/parse/change.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/firmware.h"
#include "inventory/model/profile.h"
#include "inventory/model/rollout_policy.h"
#include "tests/inventory/inventory_fixture.h"

#include <fmt/format.h>

namespace muster::inventory {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ChangeTest : public InventoryTest {
 protected:
  void SetUp() override {
    InventoryTest::SetUp();
    auto text = std::string(kSmall);
    auto loaded = loadYaml(text);
    ASSERT_TRUE(loaded.cluster);
    cluster_ = *loaded.cluster;
    for (const auto* version : {"570", "575"})
      cluster_.drivers[fmt::format("nvidia-{}", version)] = {
          .name = fmt::format("nvidia-{}", version),
          .packages = {fmt::format("nvidia-driver={}.1", version)},
          .verify = {{"nvml.driver", fmt::format("{}.*", version)}}};
    cluster_.drivers["ofed"] = {
        .name = "ofed", .packages = {"mlnx-ofed=24"}, .verify = {{"package.mlnx-ofed", "24*"}}};
    cluster_.firmware["old"] = {
        .name = "old", .components = {{"BMC", "1.0", "", ""}}, .order = {"BMC"}};
    name_ = cluster_.profiles.begin()->first;
    cluster_.profiles.begin()->second.drivers = {"nvidia-570", "ofed"};
    cluster_.profiles.begin()->second.firmware = "old";
  }
  LoadedChange change(const std::string& yaml) const {
    return loadChangeText(yaml, "change.yaml", cluster_);
  }
  std::vector<std::string> complaints(const std::string& yaml) const {
    std::vector<std::string> out;
    const auto loaded = change(yaml);
    for (const auto& one : loaded.diagnostics.all())
      if (one.severity == Severity::Error) out.push_back(one.str());
    return out;
  }
  Cluster cluster_;
  std::string name_;
};

/// It would be written over a disk that cannot start it.
TEST_F(ChangeTest, anImageForAnotherProcessorIsRefused) {
  const auto image = [](const char* arch) {
    return fmt::format("images: {{new: {{arch: {}, build: {{suite: noble}}}}}}\n", arch);
  };
  const auto profile = "profiles: {" + name_ + ": {image: new}}\n";
  EXPECT_THAT(complaints(profile + image("amd64")), IsEmpty());
  EXPECT_THAT(complaints(profile + image("arm64")),
              ElementsAre(HasSubstr("image new is for arm64, profile " + name_ + " is of amd64")));
  cluster_.profiles.at(name_).arch = Architecture::Arm64;
  EXPECT_THAT(complaints(profile + image("arm64")), IsEmpty());
}

TEST_F(ChangeTest, saysWhatBecomesDifferentAndHowCarefully) {
  const auto loaded =
      change("profiles: {" + name_ + R"(: {drivers: [nvidia-575, ofed], firmware: new}}
firmware: {new: {components: {BMC: {version: "2.0"}}}}
rollout:
  canary: {racks: 1}
  waves: [25, 100]
  max_unavailable: {pool: {nodes: 4}, rack: {percent: 20}}
  regression: {tolerated_percent: 5, confidence_percent: 99, on_inconclusive: continue}
  on_failure: roll-back
)");
  ASSERT_TRUE(loaded.change) << loaded.diagnostics.all().front().str();
  EXPECT_EQ(*loaded.change->profiles.at(name_).firmware, "new");
  EXPECT_FALSE(loaded.change->profiles.at(name_).image);
  const auto& policy = *loaded.change->policy;
  EXPECT_EQ(policy.canary.racks, 1);
  EXPECT_THAT(policy.waves, ElementsAre(25, 100));
  EXPECT_EQ(policy.max_unavailable.pool.nodes, 4);
  EXPECT_FALSE(policy.max_unavailable.pool.percent) << "what is said replaces the default";
  EXPECT_EQ(policy.max_unavailable.rack.percent, 20);
  EXPECT_EQ(policy.regression.on_inconclusive, OnInconclusive::Continue);
  EXPECT_EQ(policy.on_failure, OnFailure::RollBack);
}

TEST_F(ChangeTest, mistakesAreToldTogetherWithTheirPlaces) {
  EXPECT_THAT(complaints("profiles:\n  nobody: {drivers: [nvidia-576]}\nrollout: {waves: [50, 50], "
                         "canarys: {}}\n"),
              testing::UnorderedElementsAre(
                  HasSubstr("change.yaml:2:3: error: the inventory has no profile \"nobody\""),
                  HasSubstr("change.yaml:2:22: error: \"nvidia-576\" is declared under drivers "
                            "neither here nor in the inventory"),
                  HasSubstr("change.yaml:3:28: error: rollout: unknown key \"canarys\"")));
  EXPECT_THAT(
      complaints("profiles: {" + name_ + ": {drivers: [ofed]}}\nrollout: {waves: [50, 50]}\n"),
      ElementsAre(
          HasSubstr("change.yaml:2:23: error: each wave goes further than the one before")));
  EXPECT_THAT(complaints("profiles: {" + name_ + ": {}}\n"),
              ElementsAre(HasSubstr("changes nothing")));
  EXPECT_THAT(complaints("images: {}\n"),
              ElementsAre(HasSubstr("the key \"profiles\" is missing")));
  EXPECT_THAT(complaints("profiles: {" + name_ + ": {kernel_args: [x]}}\n"),
              ElementsAre(HasSubstr("unknown key \"kernel_args\"")));
  EXPECT_THAT(complaints("profiles: [\n"), testing::Not(IsEmpty()));
}

/// --change /etc/shadow: where it is wrong, and nothing that stands in it.
TEST_F(ChangeTest, nothingIsShownOfAFileThatIsAnothers) {
  for (const char* foreign : {"root:$6$secret:19000:0:99999:7:::\nbin:*secret:\n", "secret\n",
                              "secret: [hidden, {secret: 1}]\n", "user: *secret\n", "- secret\n"}) {
    const auto loaded = loadChangeText(foreign, "/etc/foreign", cluster_);
    EXPECT_FALSE(loaded.change);
    EXPECT_TRUE(loaded.diagnostics.hasErrors());
    for (const auto& one : loaded.diagnostics.all())
      EXPECT_THAT(one.str(), testing::Not(testing::HasSubstr("secret"))) << foreign;
  }
}

TEST_F(ChangeTest, aNameCannotStandForTwoThings) {
  const std::string profiles = "profiles: {" + name_ + ": {drivers: [nvidia-575]}}\n";
  EXPECT_THAT(complaints(profiles + "drivers: {nvidia-575: {packages: [nvidia-driver=575.2], "
                                    "verify: {nvml.driver: \"575.*\"}}}\n"),
              ElementsAre(HasSubstr("change.yaml:2:11: error: drivers: \"nvidia-575\" is in the "
                                    "inventory already, and says something else there")));
  EXPECT_THAT(complaints(profiles + "drivers: {nvidia-575: {packages: [nvidia-driver=575.1], "
                                    "verify: {nvml.driver: \"575.*\"}}}\n"),
              IsEmpty())
      << "the same entry is no mistake: it may be in the inventory by now";
}

TEST_F(ChangeTest, oneDriverTakesThePlaceOfItsKind) {
  const auto text = changeToDriver(cluster_, "nvidia-575", {name_, name_});
  ASSERT_TRUE(text) << text.error().str();
  EXPECT_EQ(*text, "profiles:\n  " + name_ + ": {drivers: [nvidia-575, ofed]}\n");
  EXPECT_TRUE(change(*text).change);
  EXPECT_THAT(changeToDriver(cluster_, "nvidia-580", {name_}).error().text(),
              HasSubstr("the inventory has no driver \"nvidia-580\""));
  cluster_.profiles.at(name_).drivers = {"ofed"};
  EXPECT_THAT(changeToDriver(cluster_, "nvidia-575", {name_}).error().text(),
              HasSubstr("none has a package, a module or a probe in common"));
}

TEST_F(ChangeTest, saysBeforehandWhatARollbackCannotBring) {
  auto from = cluster_.profiles.at(name_), to = from;
  to.drivers = {"nvidia-575", "ofed"};
  EXPECT_THAT(irreversible(cluster_, from, to), IsEmpty());
  cluster_.drivers["extra"] = {
      .name = "extra", .packages = {"extra"}, .verify = {{"package.extra", "*"}}};
  to.drivers.push_back("extra");
  cluster_.firmware["new"] = {
      .name = "new",
      .components = {{"BMC", "2.0", "bmc.bin", "00"}, {"BIOS", "3.0", "bios.bin", "00"}},
      .order = {}};
  to.firmware = "new";
  to.image = "other";
  EXPECT_THAT(
      irreversible(cluster_, from, to),
      ElementsAre(
          HasSubstr("the disk is wiped again to bring back image"),
          "firmware BMC stays at 2.0: the baseline old names no file of 1.0",
          "firmware BIOS stays at 3.0: the inventory named no version of it before",
          "driver extra stays installed: it replaces none, and muster removes no packages"));
  cluster_.drivers["nvidia-570"].packages = {"nvidia-driver"};
  EXPECT_THAT(irreversible(cluster_, from, to),
              testing::Contains(HasSubstr("driver nvidia-570 pins no version of it")));
}

}  // namespace
}  // namespace muster::inventory
