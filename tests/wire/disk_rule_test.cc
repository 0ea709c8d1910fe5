// SPDX-License-Identifier: Apache-2.0
#include "wire/disk_rule.h"
#include "wire/messages.h"

#include <gmock/gmock.h>

namespace muster::wire {
namespace {

TEST(DiskRule, knowsSizesInTheUnitsOfVendors) {
  const std::vector<Disk> disks{{.path = "/dev/a", .serial = "A", .size_bytes = 480'103'981'056},
                                {.path = "/dev/b", .serial = "B", .size_bytes = 3'840'755'982'336}};
  const auto fits = [&disks](const char* text) {
    std::string names;
    for (const auto* disk : DiskRule::parse(text)->fitting(disks)) names += disk->serial;
    return names;
  };
  EXPECT_EQ(fits("size:400GB-500GB"), "A");
  EXPECT_EQ(fits("size:3.8TB-"), "B");
  EXPECT_EQ(fits("size:1GiB-4TiB"), "AB");
  EXPECT_EQ(fits("smallest"), "A");
  EXPECT_EQ(fits("serial:B"), "B");
  EXPECT_EQ(fits(""), "AB");
  for (const char* wrong : {"size:", "size:3TB", "size:5TB-3TB", "size:3-4", "size:-1TB-3TB", "sda",
                            "serial:", "size:nanTB-"})
    EXPECT_FALSE(DiskRule::parse(wrong)) << wrong;
}

}  // namespace
}  // namespace muster::wire
