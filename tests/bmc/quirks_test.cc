// SPDX-License-Identifier: Apache-2.0
#include "bmc/quirks.h"

#include <gtest/gtest.h>

namespace muster::bmc {
namespace {

TEST(Quirks, everyRowNamesItsSource) {
  for (const QuirkRow& row : quirkRows()) EXPECT_GT(row.source.size(), 20u) << row.vendor;
}

TEST(Quirks, narrowerRowsWinAndUnknownSendersGetTheDefaults) {
  EXPECT_TRUE(quirksOf({"Supermicro", "Supermicro", "SYS-821GE-TNHR", "11"}).boot_mode);
  EXPECT_FALSE(quirksOf({"Supermicro", "Supermicro", "SYS-X10DRT", "3"}).boot_mode);
  EXPECT_FALSE(quirksOf({"Dell", "Dell Inc.", "PowerEdge R750", "6"}).keeps_finished_tasks);
  EXPECT_TRUE(quirksOf({"AMI", "NVIDIA", "DGXH100", "23.11.20"}).boot_override_on_settings);
  EXPECT_TRUE(quirksOf({"Nobody", "Nobody", "", ""}).send_targets);
}

}  // namespace
}  // namespace muster::bmc
