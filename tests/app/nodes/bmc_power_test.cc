// SPDX-License-Identifier: Apache-2.0
// What is refused before any BMC is asked.
#include "app/nodes/bmc_power.h"

#include "app/nodes/bmc_credentials.h"
#include "app/nodes/bmc_trust.h"
#include "app/site/state_lock.h"
#include "tests/app/site_folder.h"

#include <gmock/gmock.h>

namespace muster::app {
namespace {

void ignore(const std::string&) {}

TEST(BmcPower, everyCommandIsFoundByItsWord) {
  for (const auto* word : {"on", "shutdown", "off", "restart", "ac-cycle", "nmi", "reset"}) {
    const auto command = parsePowerCommand(word);
    ASSERT_TRUE(command) << word;
    EXPECT_EQ(rowOf(*command).word, word);
  }
  EXPECT_FALSE(rowOf(PowerCommand::On).is_disruptive);
  EXPECT_EQ(parsePowerCommand("explode").error().code(), ErrorCode::InvalidInput);
}

TEST(BmcPower, aDisruptiveCommandNeedsAReasonOnceItIsConfirmed) {
  SiteFolder site;
  PowerRequest request{NodeName("gpu001"), PowerCommand::Off};
  request.confirmed = true;
  const auto refused = powerNode(site.options(), request, ignore);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
}

TEST(BmcPower, aNodeThatIsNotDeclaredIsRefused) {
  SiteFolder site;
  const auto refused = powerNode(site.options(), {NodeName("gpu003"), PowerCommand::On}, ignore);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
}

/// A switch cannot wait for others: it is refused, or an admin's word stays to be seen.
TEST(BmcPower, theInventorysApprovalsHoldForASwitch) {
  SiteFolder site;
  const auto inventory = std::string(SiteFolder::kInventory);
  site.write("cluster.yaml", "approvals:\n  - {disruption: reset, approvals: 1}\n" + inventory);
  const auto store = site.store();
  PowerRequest request{NodeName("gpu001"), PowerCommand::Off, "loose cable"};
  for (const auto command : {PowerCommand::Off, PowerCommand::Restart, PowerCommand::Shutdown,
                             PowerCommand::AcCycle, PowerCommand::Nmi})
    for (const bool confirmed : {true, false}) {
      request.command = command;
      request.confirmed = confirmed;
      const auto refused = powerNode(site.options(), request, ignore);
      ASSERT_FALSE(refused) << rowOf(command).word;
      EXPECT_EQ(refused.error().code(), ErrorCode::Denied) << refused.error().str();
      EXPECT_THAT(refused.error().str(), testing::HasSubstr("asks for 1 approvals"));
      EXPECT_THAT(refused.error().str(), testing::HasSubstr("--override"));
    }
  EXPECT_TRUE(store->findings(nullptr)->empty()) << "nothing was done";
  request.command = PowerCommand::Off;
  request.confirmed = request.override_inventory = true;
  const auto told = powerNode(site.options(), request, ignore);  // its BMC does not answer here
  ASSERT_FALSE(told);
  EXPECT_NE(told.error().code(), ErrorCode::Denied) << told.error().str();
  ASSERT_EQ(store->findings(nullptr)->size(), 1u);
  EXPECT_THAT(store->findings(nullptr)->front().text,
              testing::HasSubstr("bmc power off although the inventory asks for 1 approvals"));
  EXPECT_THAT(store->findings(nullptr)->front().text, testing::HasSubstr("loose cable"));
}

TEST(BmcPower, aUriIsForHttpBootAlone) {
  SiteFolder site;
  BootRequest request{NodeName("gpu001"), {}};
  request.boot.target = bmc::BootTarget::Pxe;
  request.boot.http_uri = "http://10.20.0.1/boot.efi";
  EXPECT_EQ(setBootDevice(site.options(), request).error().code(), ErrorCode::InvalidInput);
  request.boot.target = bmc::BootTarget::UefiHttp;
  request.boot.http_uri = "ftp://10.20.0.1/boot.efi";
  EXPECT_EQ(setBootDevice(site.options(), request).error().code(), ErrorCode::InvalidInput);
}

TEST(BmcBootOrder, putsAKindOrNamedOptionsToTheFrontAndKeepsTheRestsOrder) {
  using bmc::BootTarget;
  const bmc::BootOrder order{{{"Boot0000", "Linux", BootTarget::Disk, ""},
                              {"Boot0003", "PXE port 1", BootTarget::Pxe, ""},
                              {"Boot0001", "Shell", BootTarget::None, ""},
                              {"Boot0004", "PXE port 2", BootTarget::Pxe, ""}}};
  using Names = std::vector<std::string>;
  EXPECT_EQ(*orderWith(order, "network"), (Names{"Boot0003", "Boot0004", "Boot0000", "Boot0001"}));
  EXPECT_EQ(*orderWith(order, "disk"), (Names{"Boot0000", "Boot0003", "Boot0001", "Boot0004"}));
  EXPECT_EQ(*orderWith(order, "Boot0004,Boot0001"),
            (Names{"Boot0004", "Boot0001", "Boot0000", "Boot0003"}));
  EXPECT_EQ(*orderWith(order, "Boot0004,disk"),
            (Names{"Boot0004", "Boot0000", "Boot0003", "Boot0001"}));
  for (const char* none : {"http", "pxe", "Boot0009", "Boot0004,", "disk,", ""})
    EXPECT_EQ(orderWith(order, none).error().code(), ErrorCode::NotFound) << none;
}

/// A run, or the monitor, has the lock of the state folder, and need not make room for a glance.
TEST(BmcLooks, needNoLockOfTheStateFolder) {
  SiteFolder site;
  std::string inventory(SiteFolder::kInventory);
  const std::string bmc = "https://10.20.250.1";
  inventory.replace(inventory.find(bmc), bmc.size(), "https://127.0.0.1:9");  // refuses at once
  site.write("cluster.yaml", inventory);
  (void)site.store();
  const NodeName node("gpu001");
  const auto works = acquireLock(site.options().state);
  ASSERT_TRUE(works) << works.error().str();
  const auto code = [](const auto& result) {  // its BMC does not answer here
    return result ? ErrorCode::Internal : result.error().code();
  };
  EXPECT_EQ(code(bootOrder(site.options(), {node, "disk"})), ErrorCode::Conflict) << "a change";
  EXPECT_EQ(code(virtualMedia(site.options(), {node, "", true})), ErrorCode::Conflict);
  EXPECT_NE(code(bootOrder(site.options(), {node, ""})), ErrorCode::Conflict);
  EXPECT_NE(code(virtualMedia(site.options(), {node, "", false})), ErrorCode::Conflict);
  PowerRequest checked{node, PowerCommand::Off, "loose cable"};
  EXPECT_NE(code(powerNode(site.options(), checked, ignore)), ErrorCode::Conflict);
  checked.confirmed = true;
  EXPECT_EQ(code(powerNode(site.options(), checked, ignore)), ErrorCode::Conflict);
  EXPECT_EQ(code(rotateBmcPasswords(site.options(), "gpu001", {})), ErrorCode::Conflict);
  EXPECT_EQ(code(issueBmcCertificates(site.options(), "gpu001", {})), ErrorCode::Conflict);
  const auto known = bmcIdentities(site.options(), "gpu001");
  ASSERT_TRUE(known) << known.error().str();
  ASSERT_EQ(known->size(), 1u) << "looking is no change";
  EXPECT_FALSE(known->front().rotates);
  EXPECT_EQ(known->front().signer, "");
}

TEST(BmcTrust, resetsNamedNodesOrNone) {
  SiteFolder site;
  const auto reset = resetBmcTrust(site.options(), "gpu[001-002]");
  ASSERT_TRUE(reset) << reset.error().str();
  EXPECT_EQ(reset->size(), 2u);
  const auto refused = resetBmcAuth(site.options(), "gpu[002-003]");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), ::testing::HasSubstr("nothing was changed"));
}

}  // namespace
}  // namespace muster::app
