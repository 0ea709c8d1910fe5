// SPDX-License-Identifier: Apache-2.0
// Words that machines may say, made to do harm on their way to a terminal, a log or JSON; and what
// must hold of output whatever they said.
#pragma once

#include "base/io/process.h"
#include "base/printable.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace muster::test {

inline constexpr std::string_view kInjected =
    "INJECTED";  ///< begins a line only where a line end of a machine came through

/// Line ends of all kinds, sequences for terminals, marks of writing direction, NUL: all of it
/// UTF-8.
inline std::string harmfulWords() {
  using namespace std::string_literals;
  const std::string line(kInjected);
  return "A\0B\x1b[2J\x1b]0;root\x07\xc2\x9b"s +
         "31m\x7f\b\xe2\x80\xae\xe2\x81\xa6\xef\xbb\xbf\xe2\x80\x8b\r\n" + line + "\n" + line +
         "\r" + line + "\v" + line + "\f" + line + "\xc2\x85" + line + "\xe2\x80\xa8" + line +
         "\xe2\x80\xa9" + line;
}
/// The same with bytes that are no UTF-8: lone continuation, cut letters, overlong, surrogate,
/// beyond the last code point.
inline std::string brokenWords() {
  return "\x80\xff\xfe\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80" + harmfulWords() + "\xe6\xa9";
}

/// Letters of four bytes behind so many of one byte: whoever cuts at some byte cuts through a
/// letter for three of four paddings.
inline std::string longWords(std::size_t padding, std::size_t letters) {
  std::string text(padding, 'x');
  for (std::size_t i = 0; i < letters; ++i) text += "\xf0\x9f\x94\xa5";
  return text;
}

/// Nothing in it moves a cursor, hides or turns round words; no machine has begun a line.
inline void expectPrintableLines(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line, printable(line));
    EXPECT_FALSE(line.starts_with(kInjected)) << line;
  }
}

/// One JSON text, or one a line.
inline void expectJson(const std::string& text) {
  if (nlohmann::json::accept(text)) return;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
}

/// Ended by itself with a status that is documented: 0 done, 1 failed, 2 usage, 3 work is left.
inline void expectEnded(const io::ProcessExit& ended) {
  EXPECT_THAT(ended.code, ::testing::AnyOf(0, 1, 3)) << ended.err;
  EXPECT_EQ((ended.out + ended.err).find("terminate called"), std::string::npos);
}

}  // namespace muster::test
