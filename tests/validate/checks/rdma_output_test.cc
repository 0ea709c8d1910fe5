// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/rdma_output.h"

#include <gtest/gtest.h>

namespace muster::validate {
namespace {

constexpr std::string_view kTable =
    R"(---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      200              1.75               1.52   		   0.002905
---------------------------------------------------------------------------------------
)";

TEST(RdmaOutput, readsTheRow) {
  const auto rate = parseWriteBandwidth(kTable, 65536);
  ASSERT_TRUE(rate) << rate.error().str();
  EXPECT_EQ(rate->iterations, 200);
  EXPECT_DOUBLE_EQ(rate->average_gbits, 1.52);
}

TEST(RdmaOutput, anotherUnitIsRefused) {
  std::string text(kTable);
  while (text.find("Gb/sec") != std::string::npos) text.replace(text.find("Gb/sec"), 6, "MB/sec");
  EXPECT_EQ(parseWriteBandwidth(text, 65536).error().code(), ErrorCode::Corrupt);
}

TEST(RdmaOutput, aMissingRowOrTableOrZeroIsNoResult) {
  EXPECT_FALSE(parseWriteBandwidth(kTable, 4096));
  EXPECT_FALSE(parseWriteBandwidth("", 65536));
  std::string zero(kTable);
  zero.replace(zero.find("1.52"), 4, "0.00");
  EXPECT_FALSE(parseWriteBandwidth(zero, 65536));
  std::string nan(kTable);
  nan.replace(nan.find("1.52"), 4, "-nan");
  EXPECT_FALSE(parseWriteBandwidth(nan, 65536));
}

}  // namespace
}  // namespace muster::validate
