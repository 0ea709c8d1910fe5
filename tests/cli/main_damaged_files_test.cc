// SPDX-License-Identifier: Apache-2.0
// Files that people hand to the program, damaged in every way: an error that names the file and
// what is wrong with it, never a signal, and nothing is begun.
#include "tests/cli/muster_folder.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kMostWords = 1'000;   ///< bytes of an error, whatever the file says
constexpr std::size_t kLarge = 12'000'000;  ///< bytes

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

class DamagedFiles : public ::testing::Test {
 protected:
  /// A good plan, saved.
  std::string plan() {
    EXPECT_EQ(folder_.muster({"wipe", "gpu002", "--reason", "makes the store"}).code, kOk);
    EXPECT_EQ(
        folder_.muster({"plan", "--no-refresh", "--out", (folder_ / "plan.json").string()}).code,
        kOk);
    return io::readFile(folder_ / "plan.json").value_or("");
  }
  void expectRefused(const std::string& text, const std::string& why) {
    folder_.write("plan.json", text);
    const auto ended = folder_.muster({"apply", (folder_ / "plan.json").string()});
    EXPECT_EQ(ended.code, kFailed) << why;
    EXPECT_THAT(ended.err, AllOf(HasSubstr("plan.json"), HasSubstr(why)));
    EXPECT_LT(ended.err.size(), kMostWords) << why;
    EXPECT_EQ(ended.out, "");
    EXPECT_FALSE(folder_.wasLocked()) << why;
  }
  MusterFolder folder_;
};

TEST_F(DamagedFiles, aPlanThatIsNestedDeepIsRefusedWithWords) {
  auto good = json::parse(plan());
  for (const std::size_t levels : {10'000u, 1'000'000u}) {
    expectRefused(nested(levels), "nested deeper than 128 levels");
    std::string objects;
    for (std::size_t i = 0; i < levels; ++i) objects += "{\"a\":";
    expectRefused(objects, "nested deeper than 128 levels");
    for (const char* key : {"actions", "facts", "policy", "hash", "other"}) {
      auto changed = good;
      changed[key] = "HERE";
      auto text = changed.dump();
      text.replace(text.find("\"HERE\""), 6, nested(levels));
      expectRefused(text, "nested deeper than 128 levels");
    }
  }
}

TEST_F(DamagedFiles, aPlanThatWasCutShortIsRefusedWhereverItWasCut) {
  const auto good = plan();
  ASSERT_GT(good.size(), 1'000u);
  for (std::size_t part = 0; part < 16; ++part)
    expectRefused(good.substr(0, good.size() * part / 16), "is not JSON at byte");
}

TEST_F(DamagedFiles, aPlanOfAHundredMegabytesIsRefusedWithFewWords) {
  const auto good = plan();
  auto of_format = json::parse(good), of_facts = of_format;
  of_format["format"] = std::string(kLarge, 'x');
  expectRefused(of_format.dump(), "its format is 'xxx");
  of_facts["facts"] = json::object({{std::string(kLarge, 'y'), 1}});
  expectRefused(of_facts.dump(), "the facts of 'yyy");
  std::string many = "[0";
  while (many.size() < 100'000'000) many += ",0";
  expectRefused(many + "]", "has more than");
  expectRefused(std::string(100'000'000, ' '), "is not JSON at byte");
  expectRefused(std::string(300'000'000, 'x'), "larger than");
}

TEST_F(DamagedFiles, aPlanThatIsNotUtf8IsRefused) {
  auto changed = json::parse(plan());
  changed["actions"][0]["reason"] = "HERE";
  for (const char* bytes : {"\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\xaf"}) {
    auto text = changed.dump();
    text.replace(text.find("HERE"), 4, bytes);
    expectRefused(text, "is not JSON at byte");
  }
  expectRefused(std::string(4'096, '\0'), "is not JSON at byte");
  expectRefused("\xff\xfe{\0}\0", "is not JSON at byte");
}

TEST_F(DamagedFiles, whatIsNoFileIsRefused) {
  plan();
  for (const char* what : {"/dev/null", "/dev/zero", "/proc/self/mem", "absent"}) {
    const auto ended = folder_.muster({"apply", what});
    EXPECT_EQ(ended.code, kFailed) << what;
    EXPECT_THAT(ended.err, HasSubstr(what));
  }
  const auto ended = folder_.muster({"apply", (folder_ / "state").string()});
  EXPECT_EQ(ended.code, kFailed);
  EXPECT_THAT(ended.err, HasSubstr("state"));
}

/// JSON is YAML: a baseline that a tool wrote.
TEST_F(DamagedFiles, aBaselineThatIsNestedDeepIsRefusedWithItsPlace) {
  for (const auto& bad : {nested(10'000), std::string(10'000, '['), std::string(10'000, '{')}) {
    folder_.write("cluster.yaml",
                  std::string(MusterFolder::kInventory) + "firmware:\n  a: " + bad + "\n");
    for (const auto& words : {std::vector<std::string>{"inventory", "check"},
                              {"plan", "--no-refresh"},
                              {"firmware", "plan"}}) {
      const auto ended = folder_.muster(words);
      EXPECT_EQ(ended.code, kFailed);
      EXPECT_THAT(ended.out + ended.err,
                  AllOf(HasSubstr("cluster.yaml:14:"), HasSubstr("nested deeper")));
    }
  }
}

TEST_F(DamagedFiles, certificatesAndSettingsOfSwitchesThatAreNestedDeepAreRefused) {
  ASSERT_EQ(folder_.muster({"wipe", "gpu002", "--reason", "makes the store"}).code, kOk);
  folder_.write("deep.json", nested(10'000));
  folder_.write("key.pem", folder_.muster({"key", "show", "certificates"}).out);
  const auto deep = (folder_ / "deep.json").string();
  for (const auto& words : {std::vector<std::string>{"cert", "verify", "--file", deep, "--key",
                                                     (folder_ / "key.pem").string()},
                            {"fabric", "marking", "--config", deep},
                            {"fabric", "marking", "--dcb-app", deep, "--dcb-pfc", deep},
                            {"audit", "verify", deep},
                            {"audit", "verify", "--head", deep}}) {
    const auto ended = folder_.muster(words);
    EXPECT_TRUE(ended.code == kFailed || ended.code == 2)
        << words[0] << " " << words[1] << ": " << ended.code << ended.out << ended.err;
    EXPECT_NE(ended.out + ended.err, "") << words[0];
    EXPECT_LT((ended.out + ended.err).size(), kMostWords) << words[0];
  }
}

}  // namespace
}  // namespace muster::test
