// SPDX-License-Identifier: Apache-2.0
#include "app/site/settings_file.h"

#include "base/io/files.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

namespace muster::app {
namespace {

using ::testing::HasSubstr;

TEST(SettingsFile, readsKeysCommentsAndQuotes) {
  const auto read = parseSettings(
      "# a comment\n\n MUSTER_STATE = /srv/state \r\nMUSTER_STORE=\"postgresql://a@b/c?x=y\"\n"
      "MUSTER_CACHE=\n",
      "m.conf");
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_EQ(*read, (std::map<std::string, std::string>{{"MUSTER_STATE", "/srv/state"},
                                                       {"MUSTER_STORE", "postgresql://a@b/c?x=y"},
                                                       {"MUSTER_CACHE", ""}}));
}

TEST(SettingsFile, saysWhichLineIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"\nMUSTER_STAET=/x\n", "m.conf:2: there is no setting \"MUSTER_STAET\""},
      {"PATH=/evil\n", "there is no setting \"PATH\""},
      {"export\n", "m.conf:1: expected KEY=VALUE"},
      {"MUSTER_STATE=\"/x\n", "the quote is not closed"},
      {"MUSTER_STATE=\"\n", "the quote is not closed"},
      {"MUSTER_STATE=/x\x01\n", "control characters"}};
  for (const auto& [text, said] : wrong) {
    const auto read = parseSettings(text, "m.conf");
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().str(), HasSubstr(said));
  }
}

class AppliedSettings : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv(kSettingsFileVariable, (folder_ / "m.conf").c_str(), 1);
    ::unsetenv("MUSTER_STATE");
    ::setenv("MUSTER_STORE", "", 1);
  }
  void TearDown() override {
    for (const char* name : {kSettingsFileVariable, "MUSTER_STATE", "MUSTER_STORE"})
      ::unsetenv(name);
  }
  void write(std::string_view text, mode_t mode) {
    std::ofstream(folder_ / "m.conf") << text;
    ASSERT_EQ(::chmod((folder_ / "m.conf").c_str(), mode), 0);
  }
  test::TempFolder folder_;
};

TEST_F(AppliedSettings, givesWayToTheEnvironmentEvenWhereThatIsEmpty) {
  write("MUSTER_STATE=/srv/state\nMUSTER_STORE=postgresql://x\n", 0644);
  const auto applied = applySettingsFile();
  ASSERT_TRUE(applied) << applied.error().str();
  EXPECT_STREQ(std::getenv("MUSTER_STATE"), "/srv/state");
  EXPECT_STREQ(std::getenv("MUSTER_STORE"), "");
}

TEST_F(AppliedSettings, doesNotFollowAFileThatOthersCouldWrite) {
  for (const mode_t mode : {0666, 0664}) {
    write("MUSTER_STATE=/srv/state\n", mode);
    const auto applied = applySettingsFile();
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().code(), ErrorCode::Denied);
    EXPECT_EQ(std::getenv("MUSTER_STATE"), nullptr);
  }
}

TEST_F(AppliedSettings, aNamedFileThatIsMissingIsAnErrorAndAnEmptyNameIsNone) {
  const auto missing = applySettingsFile();
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().str(), HasSubstr("MUSTER_CONF"));
  ::setenv(kSettingsFileVariable, "", 1);
  EXPECT_TRUE(applySettingsFile());
}

}  // namespace
}  // namespace muster::app
