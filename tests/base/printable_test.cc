// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include "base/log.h"
#include "base/main_guard.h"
#include "base/markup.h"
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace muster {
namespace {

TEST(Printable, leavesWhatShowsAsItIs) {
  for (const auto* text : {"", "gpu001", "naïve – 機械 🚀", "C:\\new {\"a\": 1}"})
    EXPECT_EQ(printable(text), text);
}

struct Hostile {
  const char* bytes;
  const char* shown;
};

TEST(Printable, makesVisibleWhatDoesNotShow) {
  for (const auto& [bytes, shown] : {
           Hostile{"\x1b[2J\x1b]0;owned\x07", "\\u001b[2J\\u001b]0;owned\\u0007"},
           Hostile{"ok\r\nfail\ttab\x7f", "ok\\u000d\\u000afail\\u0009tab\\u007f"},
           Hostile{"\xC2\x9B"
                   "31m",
                   "\\u009b31m"},  // CSI of C1
           Hostile{"\xE2\x80\xAE"
                   "elif\xE2\x81\xA9",
                   "\\u202eelif\\u2069"},  // right-to-left override, end of isolate
           Hostile{"a\xE2\x80\xA8"
                   "b\xE2\x80\xA9",
                   "a\\u2028b\\u2029"},
           Hostile{"a\xE2\x80\x8B"
                   "b\xEF\xBB\xBF\xD8\x9C",
                   "a\\u200bb\\ufeff\\u061c"},
           Hostile{"\xF3\xA0\x80\xA1", "\\udb40\\udc21"},  // a tag character
           Hostile{"\xFFx\xC0\xAF\xED\xA0\x80",
                   "\xEF\xBF\xBDx\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
           Hostile{"cut\xE6\xA9", "cut\xEF\xBF\xBD\xEF\xBF\xBD"},
       })
    EXPECT_EQ(printable(bytes), shown);
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\u0000b");
  EXPECT_EQ(printableLines("a\n\tb\r\x1b"), "a\n\tb\\u000d\\u001b");
}

TEST(Utf8, isCutBetweenCodePoints) {
  EXPECT_EQ(cutToBytes("aé機🚀", 0), "");
  EXPECT_EQ(cutToBytes("aé機🚀", 2), "a");
  EXPECT_EQ(cutToBytes("aé機🚀", 3), "aé");
  EXPECT_EQ(cutToBytes("aé機🚀", 5), "aé");
  EXPECT_EQ(cutToBytes("aé機🚀", 9), "aé機");
  EXPECT_EQ(cutToBytes("aé機🚀", 10), "aé機🚀");
  EXPECT_EQ(shortened("aé機🚀", 9), "aé機…");
  EXPECT_EQ(shortened("aé", 3), "aé");
  EXPECT_EQ(cutToBytes("\x80\x80\x80\x80\x80\x80", 4).size(),
            4u);  // no UTF-8 at all: cut where asked
}

TEST(Utf8, isRepairedWhereverTheOddByteLies) {
  for (std::size_t size = 0; size < 20; ++size) {
    const std::string plain(size, 'a');
    EXPECT_EQ(validUtf8(plain), plain);
    for (std::size_t at = 0; at < size; ++at) {
      auto odd = plain, letter = plain, repaired = plain;
      odd[at] = '\xFF';
      letter.replace(at, 1, "é");
      repaired.replace(at, 1, kReplacement);
      EXPECT_EQ(validUtf8(odd), repaired);
      EXPECT_EQ(validUtf8(letter), letter);
    }
  }
}

TEST(Csv, aFieldIsNeitherFormulaNorTwoFields) {
  EXPECT_EQ(csvField("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
  EXPECT_EQ(csvField("@SUM(A1,A2)"), "\"'@SUM(A1,A2)\"");
  EXPECT_EQ(csvField("+1+1"), "'+1+1");
  EXPECT_EQ(csvField("-x"), "'-x");
  EXPECT_EQ(csvField("-12.5"), "-12.5");
  EXPECT_EQ(csvField("+3"), "+3");
  EXPECT_EQ(csvField("a\"b,c\nd"), "\"a\"\"b,c\\u000ad\"");
}

TEST(Markup, isPrintable) {
  EXPECT_EQ(escapedMarkup("<\x1b\xE2\x80\xAE\n&>"), "&lt;\\u001b\\u202e\n&amp;&gt;");
}

TEST(PrintableStream, filtersWhoeverWritesAndLetsTheProgramMoveTheCursor) {
  std::ostringstream out;
  {
    const PrintableStream filter(out);
    out << "serial \x1b[2J" << 7 << '\n' << "{\"a\": \"\xE2\x80\xAE\"}";
    for (const char byte : std::string("機\xC2\x9B")) out << byte;  // written a byte at a time
    writeRaw(out, "\x1b[1A");
    out << "\xE6\xA9";  // never completed
  }
  EXPECT_EQ(out.str(),
            "serial \\u001b[2J7\n{\"a\": \"\\u202e\"}機\\u009b\x1b[1A\xEF\xBF\xBD\xEF\xBF\xBD");
  out.str("");
  writeRaw(out, "\x1b[1A");
  out << "\x1b";
  EXPECT_EQ(out.str(), "\x1b[1A\x1b");
}

TEST(Log, oneRecordIsOneLine) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "muster-log-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  startLog(folder / "muster.log", LogLevel::Info);
  logInfo("bmc", "gpu001 says {}", "ok\n2026-01-01T00:00:00 info bmc: forged\x1b[2J");
  startLog({}, LogLevel::Warning);
  std::ifstream file(folder / "muster.log");
  std::string first, second;
  std::getline(file, first);
  EXPECT_TRUE(
      first.ends_with("bmc: gpu001 says ok\\u000a2026-01-01T00:00:00 info bmc: forged\\u001b[2J"))
      << first;
  EXPECT_FALSE(std::getline(file, second)) << second;
  std::filesystem::remove_all(folder);
}

TEST(GuardedMain, anExceptionIsAnExitCode) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(guardedMain("muster", []() -> int { throw std::runtime_error("no\nway"); }),
            kBrokenExit);
  EXPECT_TRUE(
      testing::internal::GetCapturedStderr().starts_with("muster: internal error: no\\u000away"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(guardedMain("muster", []() -> int { throw 7; }), kBrokenExit);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("without words"), std::string::npos);
  EXPECT_EQ(guardedMain("muster", [] { return 3; }), 3);
}

TEST(CodeOnceWritten, whatCouldNotBeWrittenIsNoSuccess) {
  constexpr int kNoPipe = -1;
  std::ofstream full("/dev/full");
  full << "a plan";
  testing::internal::CaptureStderr();
  EXPECT_EQ(codeOnceWritten("muster", 0, full, kNoPipe), 1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("of the output could be written"),
            std::string::npos);
  testing::internal::CaptureStderr();
  EXPECT_EQ(codeOnceWritten("muster", 3, full, kNoPipe), 3);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("of the output could be written"),
            std::string::npos);
  std::ostringstream good;
  good << "a plan";
  EXPECT_EQ(codeOnceWritten("muster", 0, good, kNoPipe), 0);
}

TEST(CodeOnceWritten, aReaderThatWantsNoMoreIsNoFailure) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  std::ostringstream failed;
  failed.setstate(std::ios::badbit);
  testing::internal::CaptureStderr();
  EXPECT_EQ(codeOnceWritten("muster", 0, failed, ends[1]), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ::close(ends[1]);
}

}  // namespace
}  // namespace muster
