// SPDX-License-Identifier: Apache-2.0
#include "discovery/csv_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::discovery {
namespace {

using ::testing::HasSubstr;

const std::vector<CsvFields> kRows = {{{"name", "gpu002"},
                                       {"mac", "52:54:00:00:00:02"},
                                       {"address", "10.0.0.2"},
                                       {"bmc", "https://10.1.0.2"},
                                       {"serial", "A,\"B\""}}};

TEST(CsvRows, whatIsThereStaysByteForByte) {
  const std::string before =
      "# hall 2\r\nbmc , serial,name,mac,address\r\n# first rack\r\n  https://10.1.0.1,, gpu001 "
      ",52:54:00:00:00:01,10.0.0.1\r\n\r\n# end\r\n";
  const auto after = withRows(before, "racks.csv", kRows);
  ASSERT_TRUE(after) << after.error().str();
  EXPECT_TRUE(after->starts_with(before));
  EXPECT_EQ(after->substr(before.size()),
            "https://10.1.0.2,\"A,\"\"B\"\"\",gpu002,52:54:00:00:00:02,10.0.0.2\r\n");
}

TEST(CsvRows, semicolonsAndAMissingLineEndAreKept) {
  const auto after = withRows("name;mac;address;bmc\ngpu001;1;2;3", "racks.csv", kRows);
  ASSERT_TRUE(after) << after.error().str();
  EXPECT_EQ(
      *after,
      "name;mac;address;bmc\ngpu001;1;2;3\ngpu002;52:54:00:00:00:02;10.0.0.2;https://10.1.0.2\n");
}

TEST(CsvRows, anEmptyFileGetsAHeader) {
  const auto after = withRows("", "racks.csv", kRows);
  ASSERT_TRUE(after);
  EXPECT_THAT(*after,
              HasSubstr("name,rack,unit,mac,address,bmc,serial\ngpu002,,,52:54:00:00:00:02,"));
}

TEST(CsvRows, aColumnThatRowsMustNotLoseIsAskedFor) {
  EXPECT_THAT(withRows("name,mac,address,bmc\n", "racks.csv", kRows, {"bmc_pin"}).error().str(),
              HasSubstr("no column \"bmc_pin\""));
  EXPECT_TRUE(withRows("name,mac,address,bmc,bmc_pin\n", "racks.csv", kRows, {"bmc_pin"}));
  EXPECT_THAT(*withRows("", "racks.csv", kRows, {"bmc_pin"}),
              HasSubstr("name,rack,unit,mac,address,bmc,serial,bmc_pin\n"));
}

TEST(CsvRows, badFilesAndNamesThatAreTakenAreRefused) {
  EXPECT_THAT(withRows("name,mac,address\n", "racks.csv", kRows).error().str(),
              HasSubstr("\"bmc\""));
  EXPECT_THAT(withRows("name,mac,address,bmc\n\"gpu", "racks.csv", kRows).error().str(),
              HasSubstr("racks.csv:2:1"));
  EXPECT_EQ(withRows("name,mac,address,bmc\ngpu002,1,2,3\n", "racks.csv", kRows).error().code(),
            ErrorCode::Conflict);
  EXPECT_FALSE(withRows("name,mac,address,bmc\n", "racks.csv", {kRows[0], kRows[0]}));
  EXPECT_FALSE(withRows("name,mac,address,bmc\n", "racks.csv", {{{"mac", "x"}}}));
}

TEST(CsvRows, aListNeedsSomethingThatTellsMachines) {
  const auto list = parseList("serial,unit\nSN-1,3\n# spare\nSN-2,\n", "list.csv");
  ASSERT_TRUE(list) << list.error().str();
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[1].line, 4);
  EXPECT_FALSE((*list)[1].fields.contains("unit"));
  const auto bad = parseList("seral,unit\nSN-1,3\n", "list.csv");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().str(), HasSubstr("list.csv:1:1"));
  EXPECT_THAT(bad.error().str(), HasSubstr("nothing tells the machines"));
  EXPECT_FALSE(parseList("serial,unit\n,3\n", "list.csv"));
  EXPECT_FALSE(parseList("", "list.csv"));
  const auto foreign = parseList("root:hash:1\nbin:hash:2\n", "shadow");
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().str(),
              testing::AllOf(HasSubstr("no list of machines"), testing::Not(HasSubstr("hash"))));
}

}  // namespace
}  // namespace muster::discovery
