// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/site_questions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

struct Asked {
  bool all = false;
  app::SiteAnswers answers;
  std::string shown;
};

Asked typed(const std::string& lines, app::SiteAnswers answers = {}) {
  std::istringstream in(lines);
  std::ostringstream out;
  Asked asked;
  asked.all = askForAnswers(in, out, answers);
  asked.answers = answers;
  asked.shown = out.str();
  return asked;
}

TEST(SiteQuestions, twoAnswersAndDefaultsAreAnInventory) {
  const auto asked = typed("hall-2\n10.20.0.0/16\n\n\n\n\n\n\n\n");
  ASSERT_TRUE(asked.all);
  EXPECT_EQ(asked.answers.name, "hall-2");
  EXPECT_EQ(asked.answers.dhcp, "authoritative");
  EXPECT_TRUE(app::newInventory(asked.answers));
}

TEST(SiteQuestions, anAnswerThatCannotBeIsAskedForAgainAtOnce) {
  const auto asked = typed(
      "\nhall 2; x\nhall-2\nnonsense\n10.20.0.0/30\n10.20.0.0/16\n10.99.0.1\n10.20.0.5\nmaybe\n"
      "proxy\nx\n10.21.0.0/24\nad min\n\n\nBookworm!\ntrixie\npbs\nslurm\n");
  ASSERT_TRUE(asked.all) << asked.shown;
  EXPECT_EQ(asked.answers.name, "hall-2");
  EXPECT_EQ(asked.answers.network, "10.20.0.0/16");
  EXPECT_EQ(asked.answers.controller, "10.20.0.5");
  EXPECT_EQ(asked.answers.dhcp, "proxy");
  EXPECT_EQ(asked.answers.bmc_network, "10.21.0.0/24");
  EXPECT_EQ(asked.answers.bmc_user, "admin");
  EXPECT_EQ(asked.answers.suite, "trixie");
  EXPECT_EQ(asked.answers.scheduler, "slurm");
  for (const auto* why : {"\"hall 2; x\": lower-case", "\"10.20.0.0/30\": a prefix of",
                          "\"10.99.0.1\": an address in 10.20.0.0/16", "\"pbs\": none or slurm"})
    EXPECT_THAT(asked.shown, HasSubstr(why));
}

TEST(SiteQuestions, whatOptionsSayIsOfferedAndVerifiedInItsTurn) {
  app::SiteAnswers given;
  given.network = "10.30.0.0/16";
  given.scheduler = "pbs";
  const auto asked = typed("hall-3\n\n\n\n\n\n\n\n\nnone\n", given);
  ASSERT_TRUE(asked.all) << asked.shown;
  EXPECT_EQ(asked.answers.network, "10.30.0.0/16");
  EXPECT_EQ(asked.answers.scheduler, "none");
}

TEST(SiteQuestions, anEndBeforeAllIsAnsweredChangesNothing) {
  const auto asked = typed("hall-2\n10.20.0.0/16\n");
  EXPECT_FALSE(asked.all);
  EXPECT_TRUE(asked.answers.name.empty());
}

}  // namespace
}  // namespace muster::cli
