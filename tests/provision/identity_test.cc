// SPDX-License-Identifier: Apache-2.0
// Which machine is enrolled: by serial, by MAC, by what the operator accepts; never by nothing.
#include "provision/identity.h"

#include "inventory/model/bmc_identity.h"
#include "inventory/model/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

using bmc::IdentityPlace;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kManagerUuid = "d82de395-0000-4000-8000-0000000000bb";

inventory::Node node(const std::string& accept = {}) {
  inventory::Node out;
  out.name = NodeName("gpu001");
  out.mac = *Mac::parse("52:54:00:20:00:01");
  out.bmc.url = "https://10.20.250.1";
  if (!accept.empty()) out.bmc.accept = *inventory::parseAcceptedIdentity(accept);
  return out;
}

/// As a Grace tray's BMC says it: nothing in the system.
bmc::SystemInfo grace() {
  bmc::SystemInfo out;
  out.model = "GB200 NVL";
  out.serial = "CARD-1";
  out.serial_place = IdentityPlace::Part;
  out.reported = {
      {IdentityPlace::Part, "/redfish/v1/Chassis/BMC_0", "NVIDIA", "GB200 NVL", "CARD-1"},
      {IdentityPlace::Manager, "/redfish/v1/Managers/BMC_0", "", "OpenBmc", "", kManagerUuid}};
  return out;
}

TEST(EnrolledIdentity, aMacAmongTheBootOptionsIsEnoughAndItsAbsenceSaysNothing) {
  auto system = grace();
  system.boot_macs = {"52:54:00:20:00:01"};
  EXPECT_EQ(identityOf(node(), system), "yes");
  system.boot_macs = {"52:54:00:20:00:99"};
  EXPECT_THAT(identityOf(node(), system), StartsWith("unknown: none of its boot options"));
}

TEST(EnrolledIdentity, theSerialOfAPartFitsButDoesNotContradict) {
  auto declared = node();
  declared.serial = "CARD-1";
  EXPECT_EQ(identityOf(declared, grace()), "yes");
  declared.serial = "TRAY-1";
  EXPECT_THAT(identityOf(declared, grace()), StartsWith("unknown: "));
  auto enclosed = grace();
  enclosed.serial = "TRAY-2";
  enclosed.serial_place = IdentityPlace::Chassis;
  EXPECT_THAT(identityOf(declared, enclosed), StartsWith("no: its serial is TRAY-2"));
}

TEST(EnrolledIdentity, whatTheOperatorAcceptsIsNamedAndFound) {
  EXPECT_EQ(identityOf(node("chassis-serial=CARD-1"), grace()), "yes");
  EXPECT_EQ(identityOf(node(std::string("manager-uuid=") + kManagerUuid), grace()), "yes");
  EXPECT_EQ(identityOf(node("manager-uuid=D82DE395-0000-4000-8000-0000000000BB"), grace()), "yes");
}

TEST(EnrolledIdentity, anythingElseThanWhatIsAcceptedIsRefused) {
  EXPECT_THAT(identityOf(node("chassis-serial=CARD-2"), grace()),
              StartsWith("no: the inventory accepts chassis-serial=CARD-2, the BMC reports CARD-1 "
                         "(/redfish/v1/Chassis/BMC_0)"));
  EXPECT_THAT(identityOf(node("system-uuid=d82de395-0000-4000-8000-0000000000bb"), grace()),
              StartsWith("no: "))
      << "the same value in another resource is another identity";
  EXPECT_THAT(
      identityOf(node(std::string("chassis-serial=CARD-2 manager-uuid=") + kManagerUuid), grace()),
      StartsWith("no: "))
      << "all of it must be found";
  EXPECT_THAT(identityOf(node("service-uuid=x"), {}), HasSubstr("the BMC reports none"));
}

TEST(EnrolledIdentity, acceptingDoesNotOverruleWhatContradicts) {
  auto system = grace();
  system.macs = {"52:54:00:20:00:99"};
  EXPECT_THAT(identityOf(node("chassis-serial=CARD-1"), system),
              StartsWith("no: none of its NICs"));
  auto declared = node("chassis-serial=CARD-1");
  declared.serial = "TRAY-1";
  auto enclosed = grace();
  enclosed.serial = "TRAY-2";
  enclosed.serial_place = IdentityPlace::Chassis;
  EXPECT_THAT(identityOf(declared, enclosed), StartsWith("no: its serial"));
}

TEST(EnrolledIdentity, theAdviceSaysWhatToWriteAndTheEvidenceWhatIsReportedWhere) {
  const auto system = grace();
  const auto identity = identityOf(node(), system);
  EXPECT_THAT(identity, StartsWith("unknown: "));
  EXPECT_THAT(identityAdvice(node(), system, identity),
              HasSubstr("bmc: {url: https://10.20.250.1, accept: chassis-serial=CARD-1}"));
  const auto evidence = identityEvidence(system);
  ASSERT_EQ(evidence["reported"].size(), 2u);
  EXPECT_EQ(evidence["reported"][1]["place"], "manager");
  EXPECT_EQ(evidence["reported"][1]["resource"], "/redfish/v1/Managers/BMC_0");
  EXPECT_EQ(evidence["reported"][1]["uuid"], kManagerUuid);
}

TEST(EnrolledIdentity, nothingAtAllIsUnknown) {
  EXPECT_THAT(identityOf(node(), {}), StartsWith("unknown: it reports no MAC, and no serial"));
}

}  // namespace
}  // namespace muster::provision
