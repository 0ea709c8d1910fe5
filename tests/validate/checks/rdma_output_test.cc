// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/rdma_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::validate {
namespace {

constexpr std::string_view kTable =
    R"(---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      200              1.75               1.52   		   0.002905
---------------------------------------------------------------------------------------
)";

constexpr WriteTest kAsked{65536, 200, "mlx5_0"};

std::string whyRefused(std::string_view text, const WriteTest& asked = kAsked) {
  const auto read = parseWriteBandwidth(text, asked);
  return read ? "" : read.error().text();
}
/// The table with one of its texts changed.
std::string with(std::string_view from, std::string_view to,
                 std::string text = std::string(kTable)) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(RdmaOutput, readsTheRow) {
  const auto rate = parseWriteBandwidth(kTable, kAsked);
  ASSERT_TRUE(rate) << rate.error().str();
  EXPECT_EQ(rate->iterations, 200);
  EXPECT_DOUBLE_EQ(rate->average_gbits, 1.52);
}

/// perftest's own layout, as public outputs of release 4.5 to 6 show it; above 20,000 iterations
/// it measures no peak.
TEST(RdmaOutput, readsAWholeRunOfManyIterations) {
  const std::string text =
      " WARNING: BW peak won't be measured in this run.\n"
      "---------------------------------------------------------------------------------------\n"
      "                    RDMA_Write BW Test\n"
      " Dual-port       : OFF\t\tDevice         : mlx5_0\n"
      " Number of qps   : 1\t\tTransport type : IB\n"
      " local address: LID 0x0f QPN 0x0127 PSN 0x7a1c64 RKey 0x1fdd00 VAddr 0x007f2b2a7f9000\n"
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
      " 65536      380000           0.00               197.03 \t\t   0.375805\n"
      "---------------------------------------------------------------------------------------\n";
  const auto rate = parseWriteBandwidth(text, {65536, 380000, "mlx5_0"});
  ASSERT_TRUE(rate) << rate.error().str();
  EXPECT_DOUBLE_EQ(rate->average_gbits, 197.03);
  const WriteTest asked{65536, 380000, "mlx5_0"};
  EXPECT_THAT(whyRefused(with("RDMA_Write BW", "RDMA_Read BW", text), asked),
              testing::HasSubstr("another test: RDMA_Read BW Test"));
  EXPECT_THAT(whyRefused(with("RDMA_Write BW", "RDMA_Write Bidirectional BW", text), asked),
              testing::HasSubstr("another test"));
  EXPECT_THAT(whyRefused(text, {65536, 380000, "mlx5_9"}),
              testing::HasSubstr("over mlx5_0 instead of mlx5_9"));
  EXPECT_THAT(
      whyRefused(text + " Completion with error at client\n Failed status 12: wr_id 0\n", asked),
      testing::HasSubstr("it met an error"));
}

TEST(RdmaOutput, aTableThatIsNotOneRowOfTheTestIsRefused) {
  const std::string table(kTable), row = table.substr(table.find(" 65536"));
  EXPECT_THAT(whyRefused(table + table), testing::HasSubstr("two tables"));
  EXPECT_THAT(whyRefused(table + row), testing::HasSubstr("two rows"));
  EXPECT_THAT(whyRefused(with("200 ", "5 ")), testing::HasSubstr("5 iterations, 200 were asked"));
  EXPECT_THAT(whyRefused(with("1.52   ", "1,52   ")), testing::HasSubstr("is \"1,52\""));
  EXPECT_THAT(whyRefused(table.substr(0, table.find("1.52") + 3)),
              testing::HasSubstr("a row of 4 values under 5 columns"));
  EXPECT_THAT(whyRefused(with("1.52", "99999999")), testing::HasSubstr("a bandwidth that is none"));
  EXPECT_THAT(whyRefused(with("1.75", "1.00")), testing::HasSubstr("above its peak"));
}

/// Columns are found by their heading, whatever their order.
TEST(RdmaOutput, theAverageIsWhereTheHeadingSaysIt) {
  const auto rate =
      parseWriteBandwidth(with("BW peak[Gb/sec]    BW average[Gb/sec]",
                               "BW average[Gb/sec]    BW peak[Gb/sec]", with("1.75 ", "1.20 ")),
                          kAsked);
  ASSERT_TRUE(rate) << rate.error().str();
  EXPECT_DOUBLE_EQ(rate->average_gbits, 1.20);
}

TEST(RdmaOutput, anotherUnitIsRefused) {
  std::string text(kTable);
  while (text.find("Gb/sec") != std::string::npos) text.replace(text.find("Gb/sec"), 6, "MB/sec");
  EXPECT_EQ(parseWriteBandwidth(text, kAsked).error().code(), ErrorCode::Corrupt);
}

TEST(RdmaOutput, aMissingRowOrTableOrZeroIsNoResult) {
  EXPECT_THAT(whyRefused(kTable, {4096, 200, "mlx5_0"}),
              testing::HasSubstr("a row of 65536 bytes"));
  EXPECT_THAT(whyRefused(""), testing::HasSubstr("no table"));
  EXPECT_THAT(whyRefused(with("1.52", "0.00")), testing::HasSubstr("a bandwidth that is none"));
  EXPECT_NE(whyRefused(with("1.52", "-nan")), "");
}

// ---- ib_write_lat and its siblings. Each sample has the form of a public output, which is named.

constexpr std::string_view kRule =
    "------------------------------------------------------------------------------------\n";
constexpr std::string_view kColumns =
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
    "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n";

std::string table(std::string_view columns, std::string_view rows) {
  return std::string(kRule) + "                    RDMA_Write Latency Test\n" +
         " Dual-port       : OFF\t\tDevice         : mlx5_0\n" +
         " Number of qps   : 1\t\tTransport type : IB\n" + std::string(kRule) +
         " local address: LID 0x40 QPN 0x038e PSN 0x85d384\n" + std::string(kRule) +
         std::string(columns) + std::string(rows) + std::string(kRule);
}

struct LatencySample {
  const char* source;
  std::string text;
  int bytes;
  long iterations;
  double typical_us;  ///< 0: refused
  double average_us = 0;
  std::optional<double> p99_us = {};
  const char* because = "";
};

std::vector<LatencySample> latencySamples() {
  const std::string row =
      " 2       1000          1.42           1.93         1.47                1.47             "
      "0.00  "
      "          1.57                    1.93\n";
  return {
      {"ib_write_lat between two DGX Sparks, -R (perftest 6)", table(kColumns, row), 2, 1000, 1.47,
       1.47, 1.57},
      {"ib_write_lat -a without -F: warnings of the clock between heading and row",
       table(kColumns,
             "Conflicting CPU frequency values detected: 3393.693000 != 1500.000000. CPU Frequency "
             "is not max.\nConflicting CPU frequency values detected: 2400.000000 != 1873.463000. "
             "CPU Frequency is not max.\n 2       1000          1.76           6.12         1.79   "
             "   "
             "          1.80             0.06            1.88                    6.12\n"),
       2, 1000, 1.79, 1.80, 1.88},
      {"ib_send_lat on ConnectX-3, perftest 5",
       table(kColumns,
             " 2       20000          1.02           11.76        1.07               1.11   "
             "         0.30             1.68                    5.00   \n"),
       2, 20000, 1.07, 1.11, 1.68},
      {"raw_ethernet_lat as a vendor's page shows it, spaces lost",
       "#bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec] 99% "
       "percentile[usec] 99.9% percentile[usec]\n64 1000 0.81 2.58 0.85 0.85 0.06 0.89 2.58\n",
       64, 1000, 0.85, 0.85, 0.89},
      {"rdma_lat of OFED 1.x: three columns",
       " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]\n"
       " 2        1000          1.21           8.70             1.25\n",
       2, 1000, 1.25, 1.25},
      {"soft-RoCE, ib_write_lat -n 5 -s 64",
       table(kColumns,
             " 64      5          185.81         230.11       190.20              198.00  "
             "         12.00           230.11                  230.11\n"),
       64, 5, 190.20, 198.00, 230.11},
      {"-D: by time",
       table(" #bytes        #iterations       t_avg[usec]    tps average\n",
             " 2             1000              0.85           588235.29\n"),
       2,
       1000,
       0,
       0,
       {},
       "t_min[usec]"},
      {"-C: in cycles",
       table(" #bytes #iterations    t_min[cycles]    t_max[cycles]  t_typical[cycles]\n",
             " 2        1000          2421           8700             2501\n"),
       2,
       1000,
       0,
       0,
       {},
       "cycles"},
      {"-a: all sizes",
       table(kColumns, row + " 4       1000          1.42           1.93         "
                             "1.47                1.47             0.00            "
                             "1.57                    1.93\n"),
       2,
       1000,
       0,
       0,
       {},
       "a row of 4 bytes"},
      {"two runs in one file",
       table(kColumns, row) + table(kColumns, row),
       2,
       1000,
       0,
       0,
       {},
       "two tables"},
      {"the same size twice", table(kColumns, row + row), 2, 1000, 0, 0, {}, "two rows"},
      {"killed before the row", table(kColumns, ""), 2, 1000, 0, 0, {}, "did not come to its end"},
      {"killed in the row",
       std::string(kColumns) + " 2       1000          1.42           1.93         1.4",
       2,
       1000,
       0,
       0,
       {},
       "5 values under 9 columns"},
      {"the server never answered",
       "Couldn't connect to 10.0.0.2:18516\n",
       2,
       1000,
       0,
       0,
       {},
       "no table"},
      {"", "", 2, 1000, 0, 0, {}, "no table"},
      {"another run's table", table(kColumns, row), 2, 5000, 0, 0, {}, "1000 iterations"},
      {"a clock that could not be calibrated",
       table(kColumns,
             " 2       1000          -nan           -nan         -nan                -nan  "
             "           -nan            -nan                    -nan\n"),
       2,
       1000,
       0,
       0,
       {},
       "t_min[usec] is \"-nan\""},
      {"a clock that stands still",
       table(kColumns,
             " 2       1000          0.00           0.00         0.00                0.00  "
             "           0.00            0.00                    0.00\n"),
       2,
       1000,
       0,
       0,
       {},
       "contradict"},
      {"a median above the highest",
       table(kColumns,
             " 2       1000          1.42           1.93         2.47                1.47  "
             "           0.00            1.57                    1.93\n"),
       2,
       1000,
       0,
       0,
       {},
       "contradict"},
      {"a column twice",
       " #bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_typical[usec]\n"
       " 2 1000 1.42 1.93 1.47 1.00\n",
       2,
       1000,
       0,
       0,
       {},
       "twice"},
  };
}

TEST(RdmaOutput, latenciesAreReadOrRefusedForTheirReason) {
  for (const auto& sample : latencySamples()) {
    SCOPED_TRACE(sample.source);
    const auto read = parseWriteLatency(sample.text, sample.bytes, sample.iterations);
    if (sample.typical_us == 0) {
      ASSERT_FALSE(read);
      EXPECT_EQ(read.error().code(), ErrorCode::Corrupt);
      EXPECT_NE(read.error().str().find(sample.because), std::string::npos) << read.error().str();
      continue;
    }
    ASSERT_TRUE(read) << read.error().str();
    EXPECT_DOUBLE_EQ(read->typical_us, sample.typical_us);
    EXPECT_DOUBLE_EQ(read->average_us, sample.average_us);
    EXPECT_EQ(read->p99_us, sample.p99_us);
  }
}

/// Cut anywhere it is refused, or says what the whole says.
TEST(RdmaOutput, aLatencyTableThatIsCutSaysNothingElse) {
  for (const auto& sample : latencySamples()) {
    if (sample.typical_us == 0) continue;
    for (std::size_t bytes = 0; bytes < sample.text.size(); ++bytes) {
      const auto read =
          parseWriteLatency(sample.text.substr(0, bytes), sample.bytes, sample.iterations);
      if (read) {
        EXPECT_DOUBLE_EQ(read->typical_us, sample.typical_us) << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace muster::validate
