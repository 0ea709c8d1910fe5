// SPDX-License-Identifier: Apache-2.0
#include "wire/controllers.h"

#include <gmock/gmock.h>

namespace muster::wire {
namespace {

std::string present(const Controllers& controllers) { return controllers.present().host; }

TEST(Controllers, oneIsTriedAgainForEver) {
  Controllers one(*parseControllers("https://a:1"));
  EXPECT_TRUE(one.failed(false));
  one.answered();
  EXPECT_TRUE(one.failed(false));
  EXPECT_TRUE(one.failed(true));
  EXPECT_EQ(present(one), "a");
}

TEST(Controllers, areTriedInTurnAndTheOneThatAnswersStays) {
  Controllers three(*parseControllers("https://a:1,https://b:1,https://c:1"));
  EXPECT_FALSE(three.failed(false));
  EXPECT_EQ(present(three), "b");
  EXPECT_FALSE(three.failed(true));
  EXPECT_EQ(present(three), "c");
  EXPECT_TRUE(three.failed(false)) << "all have been tried";
  EXPECT_EQ(present(three), "a");
  EXPECT_FALSE(three.failed(false));
  three.answered();
  EXPECT_TRUE(three.proven());
  EXPECT_EQ(present(three), "b");
  for (int tries = 0; tries < kTriesOfTheSame; ++tries) {
    EXPECT_TRUE(three.failed(false));
    EXPECT_EQ(present(three), "b") << "it may only be starting anew";
    EXPECT_FALSE(three.proven());
  }
  EXPECT_FALSE(three.failed(false));
  EXPECT_EQ(present(three), "c");
}

TEST(Controllers, oneThatKeptSilentIsLeftAtOnce) {
  Controllers two(*parseControllers("https://a:1,https://b:1"));
  two.answered();
  EXPECT_FALSE(two.failed(true));
  EXPECT_EQ(present(two), "b");
}

TEST(Controllers, learnOfOthersAndStayWithWhoAnswers) {
  Controllers known(*parseControllers("https://b:1"));
  known.answered();
  EXPECT_FALSE(known.learn({})) << "nothing is no list";
  EXPECT_FALSE(known.learn(*parseControllers("https://b:1")));
  EXPECT_TRUE(known.learn(*parseControllers("https://a:1,https://b:1")));
  EXPECT_EQ(present(known), "b");
  EXPECT_TRUE(known.proven());
  EXPECT_TRUE(known.learn(*parseControllers("https://a:1,https://c:1")));
  EXPECT_EQ(toString(known.all()), "https://a:1,https://c:1,https://b:1")
      << "who answers stays, whatever is said";
  EXPECT_EQ(present(known), "b");
}

}  // namespace
}  // namespace muster::wire
