// SPDX-License-Identifier: Apache-2.0
// What machines say, made fit for people's eyes: nothing that a BMC, a node, a switch or a file
// says can move a cursor, hide or turn round other words, or begin a line of its own in a terminal,
// the log, a CSV or a page.
//
// What does not show is written as JSON writes it: \u001b, \u202e. So the same writing is right
// within printed JSON.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>

namespace muster {

/// One line: control characters (C0, DEL, C1), line ends, signs that turn the direction of writing,
/// and signs without width become visible; bytes that are no UTF-8 become U+FFFD. A text that shows
/// as it is stays as it is.
std::string printable(std::string_view text);

/// The same for text of several lines: line feeds and tabs stay.
std::string printableLines(std::string_view text);

/// Whether a spreadsheet would take this text for a formula: it begins with = + - @ or a control
/// character, and is no number.
bool isFormula(std::string_view text);

/// A field of a CSV (RFC 4180): one printable line, quoted where it must be. What a spreadsheet
/// would take for a formula gets an apostrophe in front.
std::string csvField(std::string_view text);

/// As long as it lives, everything that is written to the stream goes through printableLines first,
/// whoever writes it: the last thing before a terminal. Lives in main, for std::cout and
/// std::cerr.
class PrintableStream {
 public:
  explicit PrintableStream(std::ostream& stream);
  ~PrintableStream();
  PrintableStream(const PrintableStream&) = delete;
  PrintableStream& operator=(const PrintableStream&) = delete;

 private:
  friend void writeRaw(std::ostream& stream, std::string_view bytes);

  class Buffer;
  std::ostream& stream_;
  std::streambuf* before_;
  std::unique_ptr<Buffer> buffer_;
};

/// Writes bytes as they are, past a PrintableStream: the program's own cursor movements, and bytes
/// that a person asked for raw.
void writeRaw(std::ostream& stream, std::string_view bytes);

}  // namespace muster
