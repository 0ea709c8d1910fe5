// SPDX-License-Identifier: Apache-2.0
#include "inventory/parse/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::inventory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> texts(const std::vector<Value>& cells) {
  std::vector<std::string> out;
  for (const Value& cell : cells) out.push_back(cell.text);
  return out;
}

class CsvTest : public ::testing::Test {
 protected:
  CsvTable parse(std::string_view text) { return parseCsv(text, "t.csv", problems_); }
  std::vector<std::string> complaints() const {
    std::vector<std::string> out;
    for (const auto& one : problems_.all()) out.push_back(one.str());
    return out;
  }
  Diagnostics problems_;
};

TEST_F(CsvTest, readsWhatSpreadsheetsWrite) {
  auto table = parse(
      "\xef\xbb\xbfname, rack\r\n\"gpu,1\" ,\"say \"\"hi\"\"\"\r\n\r\n# a comment\r\n gpu2\t, r 2 "
      "\r\n");
  EXPECT_THAT(complaints(), IsEmpty());
  EXPECT_THAT(texts(table.header), ElementsAre("name", "rack"));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_THAT(texts(table.rows[0].cells), ElementsAre("gpu,1", "say \"hi\""));
  EXPECT_THAT(texts(table.rows[1].cells), ElementsAre("gpu2", "r 2"));
  EXPECT_EQ(table.rows[1].line, 5);
  EXPECT_EQ(table.rows[1].cells[1].line, 5);
  EXPECT_EQ(table.rows[1].cells[1].column, 9);
}

TEST_F(CsvTest, takesSemicolonsWhenTheHeaderHasNoComma) {
  auto table = parse("name;rack\ngpu1;r1\n");
  EXPECT_THAT(complaints(), IsEmpty());
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_THAT(texts(table.rows[0].cells), ElementsAre("gpu1", "r1"));
}

TEST_F(CsvTest, theLastLineNeedsNoEnd) {
  auto table = parse("name,rack\ngpu1,");
  EXPECT_THAT(complaints(), IsEmpty());
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_THAT(texts(table.rows[0].cells), ElementsAre("gpu1", ""));
}

TEST_F(CsvTest, reportsEveryBadRowAndKeepsTheGoodOnes) {
  auto table = parse("name,rack\ngpu1\ngpu2,r1,x\ngpu3,\"r1\ngpu4,\"r\"1\ngpu5,r1\n");
  EXPECT_THAT(complaints(),
              ElementsAre(HasSubstr("t.csv:2:1: error: the row has 1 field, the header has 2"),
                          HasSubstr("t.csv:3:9: error: the row has 3 fields, the header has 2"),
                          HasSubstr("t.csv:4:6: error: a quoted field is not closed"),
                          HasSubstr("t.csv:5:9: error: text after the closing quote")));
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].cells[0].text, "gpu5");
}

TEST_F(CsvTest, refusesWhatIsNoText) {
  EXPECT_TRUE(parse("name\ngpu\xff\n").rows.empty());
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("t.csv:2:4: error: byte 0xff is not UTF-8")));
}

TEST_F(CsvTest, refusesAnEmptyFile) {
  parse("\n# nothing\n");
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("no header row")));
}

TEST_F(CsvTest, aRowOfAnotherKindOfFileIsNotReadToItsEnd) {
  parse("name,mac\n" + std::string(1'000'000, ',') + "\ngpu001,x\n");
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("t.csv:2:257: error: more than 256 columns")));
}

}  // namespace
}  // namespace muster::inventory
