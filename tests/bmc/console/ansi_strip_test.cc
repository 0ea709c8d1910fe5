// SPDX-License-Identifier: Apache-2.0
// What comes out of plainLines is safe to show to anybody, whatever a machine has written.
#include "bmc/console/ansi_strip.h"

#include <gmock/gmock.h>

#include <random>

namespace muster::bmc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(AnsiStrip, lastLinesThatAreNotEmpty) {
  EXPECT_THAT(plainLines("one\r\n\r\ntwo\nthree", 2), ElementsAre("two", "three"));
  EXPECT_THAT(plainLines("", 5), IsEmpty());
  EXPECT_THAT(plainLines("a\tb\r\n   \r\n", 5), ElementsAre("a b"));
}

TEST(AnsiStrip, terminalSequencesAreGone) {
  EXPECT_THAT(plainLines("\x1b[1;31mred\x1b[0m alert", 5), ElementsAre("red alert"));
  EXPECT_THAT(plainLines("\x1b]0;title of your window\x07ok", 5), ElementsAre("ok"));
  EXPECT_THAT(plainLines("\x1b]52;c;cm0gLXJmIC8=\x1b\\ok", 5), ElementsAre("ok"))
      << "the clipboard is the operator's";
  EXPECT_THAT(plainLines("\x1bP$q\"p\x1b\\ok", 5), ElementsAre("ok"));
  EXPECT_THAT(plainLines("a\x1b(Bb\x1b=c\x1b#8d", 5), ElementsAre("abcd"));
  EXPECT_THAT(plainLines("cut off \x1b[31", 5), ElementsAre("cut off"));
  EXPECT_THAT(plainLines("cut off \x1b", 5), ElementsAre("cut off"));
}

TEST(AnsiStrip, anUnfinishedSequenceHidesNothingForLong) {
  EXPECT_THAT(plainLines("\x1b]0;never ends\r\nKernel panic", 5), ElementsAre("Kernel panic"));
  const auto said = "\x1bP" + std::string(10'000, 'x') + "\nKernel panic";
  EXPECT_EQ(plainLines(said, 1).back(), "Kernel panic");
}

TEST(AnsiStrip, screensOfFirmwareAreLines) {
  EXPECT_THAT(plainLines("\x1b[2J\x1b[1;1HMain  Boot\x1b[3;1HSecure Boot  off\x1b[24;80H", 5),
              ElementsAre("Main  Boot", "Secure Boot  off"));
}

TEST(AnsiStrip, whatWasOverwrittenIsGone) {
  EXPECT_THAT(plainLines("10 %\r50 %\r100 %\r\ndone", 5), ElementsAre("100 %", "done"));
  EXPECT_THAT(plainLines("Kernel panic\r", 5), ElementsAre("Kernel panic"));
}

TEST(AnsiStrip, lettersStayAndWhatTurnsThemGoes) {
  EXPECT_THAT(plainLines("Gerät läuft ✓", 5), ElementsAre("Gerät läuft ✓"));
  EXPECT_THAT(plainLines("user\u202e\u2066gnp.exe\u200b", 5), ElementsAre("usergnp.exe"));
  EXPECT_THAT(plainLines("c1 \xc2\x9b"
                         "31m and \x9b"
                         "31m",
                         5),
              ElementsAre("c1 31m and 31m"));
  EXPECT_THAT(plainLines("\xff\xfe broken \xc0\xaf \xe2\x82", 5), ElementsAre(" broken"));
}

TEST(AnsiStrip, aLineWithoutEndIsCut) {
  const auto lines = plainLines(std::string(1'000'000, 'x'), 5);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].size(), kConsoleLineBytes);
}

TEST(AnsiStrip, nothingButLettersComesOutOfAnything) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string said;
    for (int i = 0; i < 2000; ++i) {
      static constexpr char kNasty[] = "\x1b[]P;?\\\x07\x9b\xc2\r\n\x00H1m";
      said += random() % 2 ? static_cast<char>(random()) : kNasty[random() % (sizeof kNasty - 1)];
    }
    const auto lines = plainLines(said, 10);
    ASSERT_LE(lines.size(), 10u);
    for (const auto& line : lines) {
      ASSERT_LE(line.size(), kConsoleLineBytes);
      for (std::size_t i = 0; i < line.size(); ++i) {
        const auto byte = static_cast<unsigned char>(line[i]);
        ASSERT_TRUE(byte >= 0x20 && byte != 0x7f) << "control character in round " << round;
        ASSERT_FALSE(byte == 0xc2 && static_cast<unsigned char>(line[i + 1]) < 0xa0)
            << "C1 character in round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace muster::bmc
