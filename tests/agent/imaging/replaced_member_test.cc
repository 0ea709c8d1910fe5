// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/replaced_member.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DiskInfo disk(const std::string& name) { return {"/dev/" + name, "SN-" + name, "", 1ull << 40}; }
Member blank(const std::string& name) { return {disk(name), wire::DiskUse::Empty, ""}; }
Member member(const std::string& name, int raid, int devices,
              const std::string& uuid = "aa:bb:cc:dd") {
  return {
      disk(name), wire::DiskUse::Other,
      fmt::format("MD_LEVEL=raid{}\nMD_DEVICES={}\nMD_NAME=any:home\nMD_UUID={}\nMD_EVENTS=17\n",
                  raid, devices, uuid)};
}

TEST(ReplacedMember, isToldWithItsArrayAndBothKindsOfDisks) {
  const auto words = replacedMember("home", 1, {member("sdb", 1, 2), blank("sdc")});
  ASSERT_TRUE(words);
  EXPECT_THAT(*words, AllOf(HasSubstr("home is RAID 1 with the UUID aa:bb:cc:dd"),
                            HasSubstr("a member of it was replaced"),
                            HasSubstr("its data is on /dev/sdb (serial SN-sdb"),
                            HasSubstr("empty is /dev/sdc (serial SN-sdc")));
}

TEST(ReplacedMember, isNotToldWhereTheDataIsNotWhole) {
  EXPECT_FALSE(replacedMember("home", 0, {member("sdb", 0, 2), blank("sdc")})) << "RAID 0";
  EXPECT_TRUE(replacedMember("home", 5, {member("sdb", 5, 3), member("sdc", 5, 3), blank("sdd")}));
  EXPECT_FALSE(replacedMember("home", 5, {member("sdb", 5, 3), blank("sdc"), blank("sdd")}));
  EXPECT_TRUE(replacedMember(
      "home", 6, {member("sda", 6, 4), member("sdb", 6, 4), blank("sdc"), blank("sdd")}));
  EXPECT_FALSE(replacedMember(
      "home", 10, {member("sda", 10, 4), member("sdb", 10, 4), blank("sdc"), blank("sdd")}))
      << "both may have been of one pair";
  EXPECT_FALSE(replacedMember("home", 1, {blank("sdb"), blank("sdc")}));
}

TEST(ReplacedMember, isNotGuessed) {
  EXPECT_FALSE(replacedMember("home", 1, {member("sdb", 1, 2), member("sdc", 1, 2)}))
      << "none is new";
  EXPECT_FALSE(replacedMember(
      "home", 5, {member("sdb", 5, 3), member("sdc", 5, 3, "11:22:33:44"), blank("sdd")}))
      << "of two arrays";
  EXPECT_FALSE(replacedMember("home", 1, {member("sdb", 5, 2), blank("sdc")})) << "another level";
  EXPECT_FALSE(replacedMember("home", 1, {member("sdb", 1, 3), blank("sdc")})) << "of three disks";
  EXPECT_FALSE(replacedMember("home", 1, {{disk("sdb"), wire::DiskUse::Other, ""}, blank("sdc")}))
      << "no member at all";
  EXPECT_FALSE(replacedMember(
      "home", 1,
      {{disk("sdb"), wire::DiskUse::Other, "XMD_UUID=aa\nMD_LEVEL=raid1\nMD_DEVICES=2\n"},
       blank("sdc")}));
}

}  // namespace
}  // namespace muster::agent
