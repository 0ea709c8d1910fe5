// SPDX-License-Identifier: Apache-2.0
// `raid` of a profile and `modules` of an image: what is read, and what is refused with what to do.
#include "tests/inventory/inventory_fixture.h"

#include "inventory/model/cluster.h"
#include "inventory/model/hardware_raid.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"

namespace muster::inventory {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RaidTest : public InventoryTest {
 protected:
  static std::string yaml(std::string_view raid) {
    return with("drivers: [rdma]", "drivers: [rdma], raid: {" + std::string(raid) + "}");
  }
  std::vector<std::string> saying(std::string_view raid) { return lines(loadYaml(yaml(raid))); }
};

TEST_F(RaidTest, isReadWhole) {
  const auto loaded = loadYaml(
      yaml("volumes: {system: {controller: \"RAID.*\", raid: raid1, disks: \"size:400GB-500GB\", "
           "count: 2}, data: {raid: raid6, disks: \"size:3TB-\", count: 8}}, tool: {show: [r, "
           "\"{node}\"], create: [r, \"{node}\", \"{level}\", \"{drives}\"], remove: [r, "
           "\"{node}\", \"{volume}\"]}"));
  ASSERT_TRUE(loaded.cluster) << ::testing::PrintToString(lines(loaded));
  EXPECT_THAT(lines(loaded), IsEmpty());
  const auto& raid = *loaded.cluster->profiles.begin()->second.raid;
  ASSERT_EQ(raid.volumes.size(), 2u);
  const auto system = std::ranges::find(raid.volumes, "system", &HardwareVolume::name);
  ASSERT_NE(system, raid.volumes.end());
  EXPECT_EQ(system->controller, "RAID.*");
  EXPECT_EQ(system->level, RaidLevel::Raid1);
  EXPECT_THAT(raid.tool->remove, ElementsAre("r", "{node}", "{volume}"));
}

TEST_F(RaidTest, aLevelHasItsNumberOfDrives) {
  const auto says = [&](const char* level, int count) {
    return saying(
        fmt::format("volumes: {{v: {{raid: {}, disks: smallest, count: {}}}}}", level, count));
  };
  EXPECT_THAT(says("raid1", 2), IsEmpty());
  EXPECT_THAT(says("raid1", 3), ElementsAre(HasSubstr("RAID 1 has two drives")));
  EXPECT_THAT(says("raid5", 2), ElementsAre(HasSubstr("RAID 5 needs 3 drives at least")));
  EXPECT_THAT(says("raid6", 3), ElementsAre(HasSubstr("RAID 6 needs 4 drives at least")));
  EXPECT_THAT(says("raid10", 5), ElementsAre(HasSubstr("an even number of drives")));
  EXPECT_THAT(says("raid10", 6), IsEmpty());
  EXPECT_THAT(says("raid0", 1), IsEmpty());
  EXPECT_THAT(says("none", 1), ElementsAre(HasSubstr("has a level")));
}

TEST_F(RaidTest, whatDeclaresNothingOrNamesNoMachineIsRefused) {
  EXPECT_THAT(saying("volumes: {}"), ElementsAre(HasSubstr("declares nothing")));
  EXPECT_THAT(saying("volumes: {v: {raid: raid1, disks: /dev/sda, count: 2}}"),
              Contains(HasSubstr("a stable disk identity")));
  EXPECT_THAT(saying("volumes: {v: {raid: raid1, disks: smallest, count: 2}}, tool: {show: [r], "
                     "create: [r, \"{node}\", \"{level}\", \"{drives}\", \"{volume}\"], remove: "
                     "[r, \"{node}\", \"{volume}\"]}"),
              AllOf(Contains(HasSubstr("does not name {node}")),
                    Contains(HasSubstr("{volume} stands for nothing here"))));
}

}  // namespace
}  // namespace muster::inventory
