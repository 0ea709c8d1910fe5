// SPDX-License-Identifier: Apache-2.0
#include "base/control_signs.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace muster {
namespace {

TEST(ControlSigns, wordsOfAnyLanguageHaveNone) {
  for (const auto* text : {"", "coolant, ticket 12", "naïve – 機械 🚀", "שלום", "مرحبا",
                           "می\u200cخواهم", "a\u200fb", "\xff\xfe", "\xe2\x80"})
    EXPECT_FALSE(hasControlSigns(text)) << text;
}

TEST(ControlSigns, whatMovesACursorEndsALineOrTurnsWordsRoundIsOne) {
  for (const auto* text : {"a\nb", "a\rb", "a\tb", "\x1b[31m", "a\x7f", "a\u009b", "a\u2028b",
                           "a\u2029b", "gpj\u202eexe", "\u202a", "\u2066", "a\u2069"})
    EXPECT_TRUE(hasControlSigns(text)) << text;
  EXPECT_TRUE(hasControlSigns(std::string_view("a\0b", 3)));
}

TEST(ControlSigns, aTextOfLinesMayEndThemAndNothingElse) {
  EXPECT_FALSE(hasControlSigns("a:\r\n\tb\n", true));
  EXPECT_TRUE(hasControlSigns("a\x1b", true));
  EXPECT_TRUE(hasControlSigns("a\u202e\n", true));
}

}  // namespace
}  // namespace muster
