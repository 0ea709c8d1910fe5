// SPDX-License-Identifier: Apache-2.0
// firmware retry by the command alone: what the inventory asks of a run holds for it, too.
#include "app/firmware/firmware_baselines.h"

#include "base/io/crypto.h"
#include "firmware/files.h"
#include "tests/app/site_folder.h"

#include <gmock/gmock.h>

namespace muster::app {
namespace {

using ::testing::HasSubstr;

const lifecycle::Subject kNode{NodeName("gpu001")};

/// A BIOS of which 1.5.0 is declared, 1.4.0 runs, and 1.5.0 has failed.
class FailedBios : public ::testing::Test {
 protected:
  void declare(const std::string& rules) {
    const std::string image = "{\"component\": \"BIOS\", \"version\": \"1.5.0\"}\n";
    site_.write("bios.fw", image);
    auto inventory = std::string(SiteFolder::kInventory);
    inventory.replace(inventory.find("image: bookworm}"), 16,
                      "image: bookworm, firmware: base, pool: batch}");
    site_.write("slurm.conf", "slurm.conf");
    site_.write("munge.key", "munge.key");
    site_.write("cluster.yaml",
                inventory +
                    "firmware:\n  base: {components: {BIOS: {version: 1.5.0, file: bios.fw, "
                    "sha256: " +
                    io::sha256Hex(image) +
                    "}}}\n"
                    "pools:\n  batch: {slurm: {partition: gpu}}\n" +
                    rules);
  }
  void fail() {
    const auto store = site_.store();
    ASSERT_TRUE(store->putFacts({
        {kNode, FacetName("firmware.BIOS"), "1.4.0", WallTime(std::chrono::minutes(1)), "bmc", {}},
        {kNode,
         firmware::failedFacet("BIOS"),
         "1.5.0 image verification failed",
         WallTime(std::chrono::minutes(2)),
         "muster",
         {}},
    }));
  }
  bool isBlocked() {
    const auto facts = *site_.store()->facts();
    return facts.find(kNode, firmware::failedFacet("BIOS")) != nullptr;
  }
  SiteFolder site_;
};

TEST_F(FailedBios, isLiftedForTheNextApplyWhereNobodyIsAsked) {
  declare("");
  fail();
  const auto lifted = retryFirmware(site_.options(), "gpu[001-002]", "reseated");
  ASSERT_TRUE(lifted) << lifted.error().str();
  ASSERT_EQ(lifted->size(), 2u);
  EXPECT_EQ(lifted->at(0).components, 1u);
  EXPECT_EQ(lifted->at(1).components, 0u);
  EXPECT_FALSE(isBlocked());
}

TEST_F(FailedBios, staysBlockedWhereOthersHaveToAgree) {
  declare("approvals:\n  - {disruption: reset, approvals: 1}\n");
  fail();
  const auto refused = retryFirmware(site_.options(), "gpu001", "reseated");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied) << refused.error().str();
  EXPECT_THAT(refused.error().str(), HasSubstr("asks for 1 approvals"));
  EXPECT_TRUE(isBlocked());
  EXPECT_TRUE(retryFirmware(site_.options(), "gpu002", "nothing has failed there"));
}

TEST_F(FailedBios, needsAReason) {
  declare("");
  fail();
  const auto refused = retryFirmware(site_.options(), "gpu001", "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
  EXPECT_TRUE(isBlocked());
}

}  // namespace
}  // namespace muster::app
