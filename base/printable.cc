// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

namespace muster {

namespace {

struct Range {
  char32_t first, last;
};

/// Characters that do not show, or that change how their neighbours show. Source: Unicode 15.1,
/// general categories Cc and Cf, the Bidi_Control and Default_Ignorable_Code_Point properties, UAX
/// #9, and the line and paragraph separators.
constexpr std::array<Range, 17> kHidden{{
    {0x0000, 0x001F},
    {0x007F, 0x009F},
    {0x00AD, 0x00AD},
    {0x034F, 0x034F},
    {0x061C, 0x061C},
    {0x115F, 0x1160},
    {0x17B4, 0x17B5},
    {0x180B, 0x180F},
    {0x200B, 0x200F},
    {0x2028, 0x202E},
    {0x2060, 0x206F},
    {0x3164, 0x3164},
    {0xFEFF, 0xFEFF},
    {0xFFA0, 0xFFA0},
    {0xFFF9, 0xFFFB},
    {0x1D173, 0x1D17A},
    {0xE0000, 0xE0FFF},
}};

bool hidden(char32_t value) {
  return std::ranges::any_of(
      kHidden, [value](const Range& range) { return value >= range.first && value <= range.last; });
}

enum class LineEnds { Escaped, Kept };

void appendVisible(std::string& out, char32_t value) {
  if (value < 0x10000) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(value));
    return;
  }
  const auto rest =
      static_cast<unsigned>(value - 0x10000);  // JSON writes it as a pair of surrogates
  fmt::format_to(std::back_inserter(out), "\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10),
                 0xDC00 + (rest & 0x3FF));
}

/// Answers how many bytes were taken: all, or fewer when the text may end within a code point and
/// `more` may follow.
std::size_t appendPrintable(std::string& out, std::string_view text, LineEnds ends, bool more) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto point = codePointAt(text, at);
    if (point.cut && more) return at;
    if (!point.valid) {
      out += kReplacement;
    } else if (hidden(point.value) &&
               !(ends == LineEnds::Kept && (point.value == U'\n' || point.value == U'\t'))) {
      appendVisible(out, point.value);
    } else {
      out += text.substr(at, point.bytes);
    }
    at += point.bytes;
  }
  return at;
}

std::string printed(std::string_view text, LineEnds ends) {
  std::string out;
  out.reserve(text.size());
  appendPrintable(out, text, ends, false);
  return out;
}

bool isNumber(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

}  // namespace

std::string printable(std::string_view text) { return printed(text, LineEnds::Escaped); }

std::string printableLines(std::string_view text) { return printed(text, LineEnds::Kept); }

bool isFormula(std::string_view text) {
  if (text.empty()) return false;
  return static_cast<unsigned char>(text.front()) < 0x20 ||
         (std::string_view("=+-@").contains(text.front()) && !isNumber(text));
}

std::string csvField(std::string_view text) {
  std::string out = printable(text);
  if (isFormula(out)) out.insert(out.begin(), '\'');
  if (out.find_first_of(",\";") == std::string::npos) return out;
  std::string quoted = "\"";
  for (const char c : out) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

/// Holds back the bytes of a code point whose end has not been written yet.
class PrintableStream::Buffer : public std::streambuf {
 public:
  explicit Buffer(std::streambuf& to) : to_(to) {}
  ~Buffer() override {
    pass({}, false);
    to_.pubsync();
  }

  void raw(std::string_view bytes) {
    pass({}, false);
    to_.sputn(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    return pass({&byte, 1}, true) ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    return pass({bytes, static_cast<std::size_t>(count)}, true) ? count : 0;
  }
  int sync() override { return to_.pubsync(); }

 private:
  bool pass(std::string_view bytes, bool more) {
    held_ += bytes;
    std::string out;
    held_.erase(0, appendPrintable(out, held_, LineEnds::Kept, more));
    const auto size = static_cast<std::streamsize>(out.size());
    return to_.sputn(out.data(), size) == size;
  }

  std::streambuf& to_;
  std::string held_;
};

PrintableStream::PrintableStream(std::ostream& stream)
    : stream_(stream), before_(stream.rdbuf()), buffer_(std::make_unique<Buffer>(*before_)) {
  stream_.rdbuf(buffer_.get());
}

PrintableStream::~PrintableStream() { stream_.rdbuf(before_); }

void writeRaw(std::ostream& stream, std::string_view bytes) {
  if (auto* filter = dynamic_cast<PrintableStream::Buffer*>(stream.rdbuf()))
    return filter->raw(bytes);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace muster
