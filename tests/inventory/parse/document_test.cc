// SPDX-License-Identifier: Apache-2.0
#include "inventory/parse/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::inventory {
namespace {

using namespace std::string_view_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DocumentTest : public ::testing::Test {
 protected:
  std::optional<Value> parse(std::string_view text) {
    problems_ = {};
    return parseYaml(text, "f.yaml", problems_);
  }
  std::vector<std::string> complaints() const {
    std::vector<std::string> out;
    for (const auto& one : problems_.all()) out.push_back(one.str());
    return out;
  }
  Diagnostics problems_;
};

TEST_F(DocumentTest, knowsPlacesAndQuotes) {
  auto root = parse("a: 5\nb:\n  - \"x\"\n  - {c: d}\n");
  ASSERT_TRUE(root);
  EXPECT_THAT(complaints(), IsEmpty());
  const Value* a = root->find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->text, "5");
  EXPECT_EQ(a->style, Value::Style::Plain);
  const Value& x = root->find("b")->items.at(0);
  EXPECT_EQ(x.style, Value::Style::Quoted);
  EXPECT_EQ(x.line, 3);
  EXPECT_EQ(x.column, 5);
  EXPECT_EQ(root->find("b")->items.at(1).find("c")->column, 9);
}

TEST_F(DocumentTest, findsDuplicateKeysAndNamesTheFirst) {
  auto root = parse("a: 1\nb: {c: 1, c: 2}\na: 3\n");
  ASSERT_TRUE(root);
  EXPECT_THAT(complaints(), ElementsAre("f.yaml:2:11: error: duplicate key \"c\" (the first one is "
                                        "at f.yaml:2:5; keep one of them)",
                                        "f.yaml:3:1: error: duplicate key \"a\" (the first one is "
                                        "at f.yaml:1:1; keep one of them)"));
  EXPECT_EQ(root->find("a")->text, "1");
}

TEST_F(DocumentTest, findsDuplicateKeysInLargeMaps) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  auto root = parse(text + "key4999: 2\nkey3: 2\n");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->entries.size(), 5000u);
  EXPECT_THAT(
      complaints(),
      ElementsAre(
          HasSubstr(
              "f.yaml:5001:1: error: duplicate key \"key4999\" (the first one is at f.yaml:5000:1"),
          HasSubstr("f.yaml:5002:1: error: duplicate key \"key3\"")));
}

TEST_F(DocumentTest, copiesAliases) {
  auto root = parse("a: &x {b: [1, 2]}\nc: *x\n");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->find("c")->find("b")->items.size(), 2u);
}

TEST_F(DocumentTest, stopsAliasBombs) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int n = 0; n < 10; ++n) text += (n ? ", " : "") + ("*a" + std::to_string(i - 1)) + " ";
    text += "]\n";
  }
  EXPECT_FALSE(parse(text));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("4000000 values")));
}

TEST_F(DocumentTest, stopsAliasesThatContainThemselves) {
  EXPECT_FALSE(parse("&a [*a]"));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("f.yaml:1:5: error: an alias inside the value")));
}

TEST_F(DocumentTest, stopsDeepNesting) {
  EXPECT_FALSE(parse(std::string(100, '[')));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("nested deeper than 24")));
  EXPECT_FALSE(parse(std::string(100000, '[')));
  EXPECT_FALSE(parse("a: &a " + std::string(15, '[') + std::string(15, ']') +
                     "\nb: " + std::string(15, '[') + "*a " + std::string(15, ']')));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("nested deeper than 24")));
}

TEST_F(DocumentTest, refusesWhatReadersOfYamlDisagreeOn) {
  EXPECT_FALSE(parse("a:\n\tb: 1\n  \tc: 2\n"));
  EXPECT_THAT(complaints(),
              ElementsAre("f.yaml:2:1: error: a tab in the indentation (indent with spaces)",
                          "f.yaml:3:3: error: a tab in the indentation (indent with spaces)"));
  parse("a: !foo 1\n");
  EXPECT_THAT(complaints(),
              ElementsAre(HasSubstr("f.yaml:1:4: error: the tag !foo means nothing here")));
  parse("b: &x {c: 1}\na: {<<: *x}\n");
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("merge keys")));
  parse("? [k]\n: v\n");
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("a key must be text")));
  EXPECT_FALSE(parse("a: 1\n---\nb: 2\n"));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("f.yaml:2:1: error: a second document")));
}

TEST_F(DocumentTest, tabsInsideALineAreFine) {
  ASSERT_TRUE(parse("a:\t1\nb: 2 \t\n"));
  EXPECT_THAT(complaints(), IsEmpty());
}

TEST_F(DocumentTest, takesByteOrderMarkAndCarriageReturns) {
  auto root = parse(
      "\xef\xbb\xbf"
      "a: 1\r\nb: 2\r\n");
  ASSERT_TRUE(root);
  EXPECT_THAT(complaints(), IsEmpty());
  EXPECT_EQ(root->find("a")->text, "1");
  EXPECT_EQ(root->find("b")->text, "2");
}

TEST_F(DocumentTest, namesAByteOrderMarkThatIsNotAtTheBeginning) {
  EXPECT_TRUE(
      parse("\xef\xbb\xbf\xef\xbb\xbf"
            "a: 1\n"))
      << "also one that an editor put before another";
  EXPECT_THAT(complaints(), IsEmpty());
  EXPECT_FALSE(
      parse("a: 1\n\xef\xbb\xbf"
            "b: 2\n"));
  EXPECT_THAT(complaints(), ElementsAre(AllOf(HasSubstr("f.yaml:2:1: error: a byte order mark"),
                                              HasSubstr("U+FEFF"), HasSubstr("remove it"))));
}

TEST_F(DocumentTest, refusesBytesThatAreNoText) {
  EXPECT_FALSE(parse("a: 1\x04\nb: \xff\n"));  // 0x04 means the end of the file to yaml-cpp
  EXPECT_THAT(complaints(),
              ElementsAre("f.yaml:1:5: error: control character 0x04 (remove it)",
                          "f.yaml:2:4: error: byte 0xff is not UTF-8 (save the file as UTF-8)"));
  EXPECT_FALSE(
      parse(std::string_view("\xff\xfe"
                             "a\0",
                             4)));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("UTF-16")));
  // `echo "a: 1" | iconv -t UTF-32`, and -t UTF-32BE behind its mark
  for (const auto& wide : {"\xff\xfe\0\0a\0\0\0:\0\0\0 \0\0\0001\0\0\0\n\0\0\0"sv,
                           "\0\0\xfe\xff\0\0\0a\0\0\0:\0\0\0 \0\0\0001\0\0\0\n"sv}) {
    EXPECT_FALSE(parse(wide));
    EXPECT_THAT(complaints(), ElementsAre(AllOf(HasSubstr("the file is UTF-32"),
                                                HasSubstr("iconv -f UTF-32 -t UTF-8"))));
  }
  parse("a: \"x\\ny\"\n");
  EXPECT_THAT(
      complaints(),
      ElementsAre(HasSubstr("f.yaml:1:4: error: the text holds a control character (0x0a)")));
  EXPECT_FALSE(parse("a: \xc0\xaf\n"));
  EXPECT_FALSE(parse("a: \xed\xa0\x80\n"));
  EXPECT_TRUE(parse("a: \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\n"));
}

TEST_F(DocumentTest, placesSyntaxErrors) {
  EXPECT_FALSE(parse("a: 1\nb: {c: [}\n"));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("f.yaml:2:9: error: not valid YAML")));
  EXPECT_FALSE(parse("a: b: c\n"));
  EXPECT_FALSE(parse("a: *nobody\n"));
  EXPECT_FALSE(parse(""));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("f.yaml:1:1: error: the file is empty")));
  EXPECT_FALSE(parse("# only a comment\n"));
}

TEST_F(DocumentTest, anUnclosedQuoteSwallowsNothing) {
  parse("a: \"abc\nb: 2\n");
  EXPECT_THAT(complaints(),
              ElementsAre(HasSubstr("f.yaml:1:4: error: the quote is not closed on its line")));
  parse("x: 1\na: 'abc''\n");
  EXPECT_THAT(complaints(),
              ElementsAre(HasSubstr("f.yaml:2:4: error: the quote is not closed on its line")));
  parse("\xef\xbb\xbf\xc3\xa9: {b: &x \"c\\\" }\n");
  EXPECT_FALSE(complaints().empty());
  parse("a: &x \"b\nc\"\n");
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("f.yaml:1:4: error: the quote is not closed")));
  EXPECT_FALSE(parse("a: 1\rb: 2\r"));
  EXPECT_TRUE(parse("\xef\xbb\xbf\xc3\xa9: {b: &x \"c\\\"'\", d: 'e''\"'}\nf: |\n  text\n"));
  EXPECT_THAT(complaints(), ElementsAre(HasSubstr("control character")));
}

TEST(Scalars, knowNumbersAndBooleans) {
  for (const char* number : {"0", "7", "-1", "+3", "0x7fff", "0o17", "1.5", "2.", ".5", "1e3",
                             "-1.5E-3", ".inf", "-.inf", ".nan", "570.10"})
    EXPECT_TRUE(looksLikeNumber(number)) << number;
  for (const char* text :
       {"", "-", ".", "1.2.3", "0x", "0xg", "1e", "e3", "1-2", "10.20.0.1", "gpu1", "1_000", "yes"})
    EXPECT_FALSE(looksLikeNumber(text)) << text;
  EXPECT_TRUE(looksLikeBoolean("true"));
  EXPECT_FALSE(looksLikeBoolean("yes"));
}

TEST(Shorten, cutsBetweenCharacters) {
  EXPECT_EQ(shorten("abcdef", 3), "abc…");
  EXPECT_EQ(shorten("a\xc3\xa9z", 2), "a…");
  EXPECT_EQ(shorten("abc", 3), "abc");
}

}  // namespace
}  // namespace muster::inventory
