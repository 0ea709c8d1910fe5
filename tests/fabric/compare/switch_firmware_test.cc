// SPDX-License-Identifier: Apache-2.0
// Firmware of switches: what a vendor MAD tells, and what differs from the declaration.
#include "fabric/compare/switch_firmware.h"

#include "fabric/discovery/general_info.h"
#include "fabric/discovery/tools.h"
#include "fabric/fabric_diff.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

/// The data as firmware lays them out: chip, the three short numbers, board, the three wide ones.
VendorData general(unsigned chip, std::array<unsigned char, 3> low, const std::string& psid,
                   std::array<unsigned, 3> wide) {
  VendorData data{};
  data[10] = static_cast<unsigned char>(chip >> 8), data[11] = static_cast<unsigned char>(chip);
  std::copy(low.begin(), low.end(), data.begin() + 41);
  std::copy(psid.begin(), psid.end(), data.begin() + 56);
  for (std::size_t i = 0; i < wide.size(); ++i)
    for (std::size_t byte = 0; byte < 4; ++byte)
      data[76 + 4 * i + byte] = static_cast<unsigned char>(wide[i] >> (24 - 8 * byte));
  return data;
}

TEST(GeneralInfo, readsTheWideNumbersOfEveryChipButTheOldest) {
  const auto quantum2 = readGeneralInfo(
      general(0xd2f2, {31, 2012 & 0xff, 1024 & 0xff}, "MT_0000000630", {31, 2012, 1024}));
  ASSERT_TRUE(quantum2);
  EXPECT_EQ(quantum2->firmware, "31.2012.1024") << "a chip that Debian's vendstat does not know";
  EXPECT_EQ(quantum2->psid, "MT_0000000630");
  EXPECT_EQ(readGeneralInfo(general(0xd2f0, {0, 0, 0}, "", {27, 2010, 4036}))->firmware,
            "27.2010.4036");
  EXPECT_EQ(readGeneralInfo(general(0xb924, {1, 0, 5}, "", {9, 9, 9}))->firmware, "1.0.5")
      << "InfiniScale III has software's numbers there";
}

TEST(GeneralInfo, knowsWhenNothingIsTold) {
  EXPECT_FALSE(readGeneralInfo(VendorData{}));
  EXPECT_FALSE(readGeneralInfo(general(0xd2f2, {31, 220, 0}, "MT_1", {0, 0, 0})))
      << "the short numbers alone are cut off";
  EXPECT_FALSE(readGeneralInfo(general(0xd2f2, {31, 220, 0}, "MT_1", {31, 0x01020304, 1})))
      << "no version";
  EXPECT_EQ(readGeneralInfo(general(0xd2f2, {}, "MT 1\n", {1, 2, 3}))->psid, "MT") << "one word";
}

TEST(ParseSwitchFirmware, wantsAnAnswerForEachLid) {
  const auto told =
      parseSwitchFirmware("7 31.2012.1024 MT_0000000630\n9 -\n11 27.1.2\n", {7, 9, 11});
  ASSERT_TRUE(told) << told.error().str();
  EXPECT_EQ(told->at(7).version, "31.2012.1024");
  EXPECT_EQ(told->at(7).psid, "MT_0000000630");
  EXPECT_EQ(told->at(9).version, "");
  EXPECT_EQ(told->at(11).psid, "");
  for (const char* bad :
       {"7 31.2012.1024\n", "7 31.2012\n9 -\n11 -\n", "7 fw\n9 -\n11 -\n", "x\n"}) {
    const auto refused = parseSwitchFirmware(bad, {7, 9, 11});
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code(), ErrorCode::Corrupt);
  }
}

TEST(Patience, endsSoonWhereNobodyTellsAndLaterWhereSomeDo) {
  Patience nobody, some;
  int asked = 0;
  for (; asked < 100 && !nobody.isOver(); ++asked) nobody.saw(false);
  EXPECT_EQ(asked, 4);
  some.saw(true);
  for (asked = 0; asked < 100 && !some.isOver(); ++asked) some.saw(false);
  EXPECT_EQ(asked, 16);
}

class SwitchFirmware : public ::testing::Test {
 protected:
  SwitchFirmware() { fabric().switch_firmware = "31.2012.1024"; }
  inventory::Fabric& fabric() { return cluster_.fabrics["ib"]; }
  std::map<std::string, std::string> wanted() {
    return declaredFirmware(fabric(), *declaredTopology(cluster_, fabric()));
  }
  Comparison compared(const std::map<std::string, ReportedFirmware>& told) {
    Comparison out;
    compareFirmware(wanted(), told, fabric().exclude, out);
    return out;
  }
  inventory::Cluster cluster_ = railCluster(3);
};

TEST_F(SwitchFirmware, isDeclaredForAllAndForSome) {
  EXPECT_THAT(wanted(), SizeIs(4));
  EXPECT_EQ(wanted()["leaf-su1-r0"], "31.2012.1024");
  inventory::FabricSwitches old_ones;
  old_ones.names = {"leaf-su1-r1"};
  old_ones.firmware = "27.2010.4036";
  fabric().switches.push_back(old_ones);
  EXPECT_EQ(wanted()["leaf-su1-r1"], "27.2010.4036");
  inventory::FabricSwitches others;
  others.names = {"spine-001"};
  others.firmware = "any";
  fabric().switches.push_back(others);
  EXPECT_EQ(wanted().count("spine-001"), 0u) << "another maker's, whose cables count";
  fabric().switch_firmware.clear();
  EXPECT_THAT(wanted(), ElementsAre(std::pair("leaf-su1-r1", "27.2010.4036")));
}

TEST_F(SwitchFirmware, differsByNumbersNotByText) {
  EXPECT_THAT(compared({{"leaf-su1-r0", {3, "31.2012.01024", "", ""}},
                        {"leaf-su1-r1", {4, "31.2012.1024", "", ""}}})
                  .deviations,
              IsEmpty());
  const auto wrong = compared({{"leaf-su1-r0", {3, "31.2012.1023", "MT_0000000630", ""}}});
  ASSERT_THAT(wrong.deviations, SizeIs(1));
  EXPECT_EQ(wrong.deviations[0].kind, DeviationKind::WrongFirmware);
  EXPECT_EQ(wrong.deviations[0].at, (Port{"leaf-su1-r0", 0}));
  EXPECT_EQ(wrong.deviations[0].declared, "31.2012.1024");
  EXPECT_EQ(wrong.deviations[0].found, "31.2012.1023");
  EXPECT_THAT(wrong.deviations[0].repair, AllOf(HasSubstr("31.2012.1024 on leaf-su1-r0"),
                                                HasSubstr("lid-3"), HasSubstr("MT_0000000630")));
  ASSERT_THAT(wrong.repairs, SizeIs(1));
  EXPECT_EQ(wrong.repairs[0].text, wrong.deviations[0].repair);
}

TEST_F(SwitchFirmware, thatIsNotToldIsNotAsDeclared) {
  const auto silent = compared({{"leaf-su1-r0", {3, "", "", ""}}});
  ASSERT_THAT(silent.deviations, SizeIs(1));
  EXPECT_EQ(silent.deviations[0].found, "not told");
  EXPECT_THAT(silent.deviations[0].repair,
              AllOf(HasSubstr("firmware: any"), Not(HasSubstr("exclude"))))
      << "that would excuse its cables too";
  const auto unasked = compared({{"leaf-su1-r0", {3, "", "", "denied: no port"}},
                                 {"leaf-su1-r1", {4, "", "", "denied: no port"}}});
  ASSERT_THAT(unasked.deviations, SizeIs(2));
  EXPECT_EQ(unasked.deviations[1].found, "not known: denied: no port");
  EXPECT_THAT(unasked.repairs, SizeIs(1)) << "one thing to do";
  EXPECT_THAT(compared({}).deviations, IsEmpty())
      << "a switch that is not there at all is the cabling's finding";
}

TEST_F(SwitchFirmware, ofAnExcusedSwitchDoesNotCount) {
  fabric().exclude.push_back({"leaf-su1-r0", 0, "waits for its board"});
  const auto out = compared({{"leaf-su1-r0", {3, "1.2.3", "", ""}}});
  EXPECT_THAT(out.deviations, IsEmpty());
  EXPECT_THAT(out.excluded, SizeIs(1));
}

TEST_F(SwitchFirmware, isNotInATextAndThatIsSaid) {
  const auto report = diff(cluster_, toIbsimNet(*declaredTopology(cluster_, fabric())));
  EXPECT_EQ(report.error, "");
  EXPECT_THAT(report.comparison.deviations, IsEmpty());
  EXPECT_THAT(toText(report), HasSubstr("firmware of the switches was not compared"));
  EXPECT_THAT(toJson(report), HasSubstr("\"note\""));
}

}  // namespace
}  // namespace muster::fabric::test
