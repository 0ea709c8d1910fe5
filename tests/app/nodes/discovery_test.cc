// SPDX-License-Identifier: Apache-2.0
// Deciding about machines that were seen; nothing is scanned.
#include "app/nodes/discovery.h"

#include "tests/app/site_folder.h"

#include <gmock/gmock.h>

namespace muster::app {
namespace {

class NobodyApproves final : public CertificateReviewer {
 public:
  bool approve(const std::vector<discovery::Contact>&, Policy) override { return false; }
};

TEST(Discovery, beginsWithNothing) {
  SiteFolder site;
  const auto discovered = discoveredMachines(site.options());
  ASSERT_TRUE(discovered) << discovered.error().str();
  EXPECT_TRUE(discovered->machines.empty());
}

TEST(Discovery, aScanNeedsAddresses) {
  SiteFolder site;
  NobodyApproves reviewer;
  const auto refused = scanForBmcs(site.options(), {}, reviewer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::InvalidInput);
}

TEST(Discovery, approvalNamesMachinesOrMatchesThem) {
  SiteFolder site;
  ApproveRequest request;
  EXPECT_EQ(approveMachines(site.options(), request).error().code(), ErrorCode::InvalidInput);
  request.machines = {"SERIAL1"};
  EXPECT_FALSE(approveMachines(site.options(), request)) << "it was never seen";
  request.machines = {"SERIAL1", "SERIAL2"};
  request.as = "gpu003";
  EXPECT_EQ(approveMachines(site.options(), request).error().code(), ErrorCode::InvalidInput)
      << "one name for two machines";
}

TEST(Discovery, adoptingNeedsAFileToWrite) {
  SiteFolder site;
  AdoptRequest request;
  request.adopt = site / "list.csv";
  EXPECT_EQ(writeApprovedMachines(site.options(), request).error().code(), ErrorCode::InvalidInput);
}

TEST(Discovery, theListCanBeForgotten) {
  SiteFolder site;
  EXPECT_FALSE(forgetMachines(site.options(), {"SERIAL1"}));
  EXPECT_TRUE(forgetAllMachines(site.options()));
}

}  // namespace
}  // namespace muster::app
