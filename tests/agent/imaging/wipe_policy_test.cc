// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/wipe_policy.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A system disk, a set of two disks, and what they hold.
class WipePolicyTest : public testing::Test {
 protected:
  static DiskInfo disk(const std::string& name) {
    return {"/dev/" + name, "SN-" + name, "", 1ull << 40};
  }
  static StoragePlan planOf(bool guarded) {
    StoragePlan plan;
    for (const char* name : {"sdb", "sdc"}) {
      plan.wiped.push_back(disk(name));
      if (guarded) plan.guarded.push_back({"home", disk(name)});
    }
    return plan;
  }
  Result<void> guard(WipePolicy policy, bool guarded = true) {
    return guardDisks(
        {disk("sda")}, planOf(guarded), policy, [this](const DiskInfo& one) -> Result<DiskContent> {
          const auto found = holds_.find(one.path);
          if (found == holds_.end()) return fail(ErrorCode::Internal, "cannot look");
          return DiskContent{found->second == "none" ? wire::DiskUse::Empty : wire::DiskUse::Other,
                             found->second};
        });
  }

  std::map<std::string, std::string> holds_{
      {"/dev/sda", "none"}, {"/dev/sdb", "none"}, {"/dev/sdc", "none"}};
};

TEST_F(WipePolicyTest, emptyDisksNeedNoPermission) { EXPECT_TRUE(guard({})); }

TEST_F(WipePolicyTest, aPermissionForTheSystemCoversNoData) {
  holds_["/dev/sda"] = "a system installed by muster";
  holds_["/dev/sdb"] = "linux_raid_member on /dev/sdb1";
  const auto done = guard({.system = true});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::Denied);
  EXPECT_THAT(done.error().text(),
              AllOf(HasSubstr("disks of home: /dev/sdb (serial SN-sdb, 1024.0 GiB) holds "
                              "linux_raid_member on /dev/sdb1"),
                    Not(HasSubstr("/dev/sdc"))));
  EXPECT_THAT(done.error().reasons(), ElementsAre(ErrorReason(wire::TaskReason::DataWipeDenied)));
  EXPECT_TRUE(guard({.system = true, .data = true}));
}

TEST_F(WipePolicyTest, aPermissionForDataCoversNoSystem) {
  holds_["/dev/sdc"] = "xfs";
  EXPECT_TRUE(guard({.system = false, .data = true}))
      << "an order that goes on: its system disk is empty already";
  holds_["/dev/sda"] = "ext4";
  const auto done = guard({.system = false, .data = true});
  EXPECT_THAT(done.error().text(), HasSubstr("/dev/sda"));
  EXPECT_THAT(done.error().reasons(), ElementsAre(ErrorReason(wire::TaskReason::SystemWipeDenied)));
}

TEST_F(WipePolicyTest, whatIsMissingIsSaidAtOnce) {
  holds_["/dev/sda"] = holds_["/dev/sdb"] = "ext4";
  const auto done = guard({});
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().has(wire::TaskReason::SystemWipeDenied));
  EXPECT_TRUE(done.error().has(wire::TaskReason::DataWipeDenied));
  EXPECT_THAT(done.error().text(),
              AllOf(HasSubstr("did not say that this node may be wiped"),
                    HasSubstr("a permission to wipe the system disk does not cover data")));
}

TEST_F(WipePolicyTest, whatIsNotGuardedNeedsThePermissionForTheSystem) {
  holds_["/dev/sdb"] = "crypto_LUKS";
  EXPECT_TRUE(guard({}, false).error().has(wire::TaskReason::SystemWipeDenied));
  EXPECT_TRUE(guard({.system = true}, false));
}

TEST_F(WipePolicyTest, aDiskThatCannotBeLookedAtIsNoEmptyOne) {
  holds_.erase("/dev/sdc");
  EXPECT_FALSE(guard({.system = true, .data = true}));
}

}  // namespace
}  // namespace muster::agent
