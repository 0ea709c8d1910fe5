// SPDX-License-Identifier: Apache-2.0
#include "bmc/console/ansi_strip.h"

#include <cstdint>
#include <optional>

namespace muster::bmc {
namespace {

constexpr char kEsc = 0x1b, kBell = 0x07, kCancel = 0x18, kSubstitute = 0x1a;
constexpr std::size_t kMaxSequenceBytes =
    4096;  ///< an OSC or DCS that never ends swallows no more than this

/// What one step over the bytes has found.
struct Step {
  std::size_t bytes = 1;
  enum class What { Text, NewLine, Overwrite, Nothing } what = Step::What::Nothing;
};

bool turnsOrHides(char32_t letter) {
  return (letter >= 0x80 && letter <= 0x9f) || (letter >= 0x200b && letter <= 0x200f) ||
         (letter >= 0x2028 && letter <= 0x202e) || (letter >= 0x2060 && letter <= 0x206f) ||
         letter == 0xfeff || letter == 0xad || letter == 0x61c ||
         (letter >= 0xfff9 && letter <= 0xfffb) || (letter >= 0xe0000 && letter <= 0xe0fff);
}

/// The letter at the front and its length. nullopt: no UTF-8.
std::optional<std::pair<char32_t, std::size_t>> letterOf(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xc2 && first < 0xe0 ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return std::nullopt;
  char32_t letter = length == 1 ? first : first & (0xff >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return std::nullopt;
    letter = (letter << 6) | (next & 0x3f);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (letter < kLeast[length] || letter > 0x10ffff || (letter >= 0xd800 && letter <= 0xdfff))
    return std::nullopt;
  return std::pair(letter, length);
}

/// ESC [ parameters final.
Step controlSequence(std::string_view text) {
  std::size_t at = 2;
  while (at < text.size() && at < kMaxSequenceBytes && text[at] >= 0x20 && text[at] <= 0x3f) ++at;
  if (at >= text.size()) return {text.size()};
  const char last = text[at];
  if (last < 0x40 || last > 0x7e) return {at};  // broken off; what broke it is looked at anew
  const bool jumps =
      last == 'H' || last == 'f' || last == 'J' || last == 'E' || last == 'F' || last == 'd';
  return {at + 1, jumps ? Step::What::NewLine : Step::What::Nothing};
}

/// OSC, DCS, APC, PM, SOS: up to ESC \ or BEL.
Step stringSequence(std::string_view text) {
  for (std::size_t at = 2; at < text.size(); ++at) {
    if (at >= kMaxSequenceBytes || text[at] == kCancel || text[at] == kSubstitute ||
        text[at] == '\n')
      return {at};
    if (text[at] == kBell) return {at + 1};
    if (text[at] == kEsc) return {at + 1 < text.size() && text[at + 1] == '\\' ? at + 2 : at};
  }
  return {text.size()};
}

Step escape(std::string_view text) {
  if (text.size() < 2) return {1};
  switch (text[1]) {
    case '[':
      return controlSequence(text);
    case ']':
    case 'P':
    case '_':
    case '^':
    case 'X':
      return stringSequence(text);
    case 'c':
    case 'D':
    case 'E':
    case 'M':
      return {2, Step::What::NewLine};
    default:
      break;
  }
  std::size_t at = 1;  // intermediates, then one final
  while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x2f) ++at;
  if (at < text.size() && text[at] >= 0x30 && text[at] <= 0x7e) ++at;
  return {at};
}

Step stepOver(std::string_view text) {
  const char first = text[0];
  if (first == kEsc) return escape(text);
  if (first == '\n') return {1, Step::What::NewLine};
  if (first == '\r')
    return {1, text.size() > 1 && text[1] == '\n' ? Step::What::Nothing : Step::What::Overwrite};
  if (first >= 0 && (first < 0x20 || first == 0x7f))
    return {1};  // a tab is a space: see the caller
  const auto letter = letterOf(text);
  if (!letter || turnsOrHides(letter->first)) return {letter ? letter->second : 1};
  return {letter->second, Step::What::Text};
}

/// Lines as they grow; only the last ones are kept.
class Lines {
 public:
  explicit Lines(std::size_t max) : max_(max) {}
  void add(std::string_view letter) {
    if (overwrite_) line_.clear();
    overwrite_ = false;
    if (line_.size() + letter.size() <= kConsoleLineBytes) line_ += letter;
  }
  /// What comes next overwrites; the end of the text does not.
  void overwrite() { overwrite_ = true; }
  void end() {
    overwrite_ = false;
    while (!line_.empty() && line_.back() == ' ') line_.pop_back();
    if (!line_.empty()) lines_.push_back(std::move(line_));
    line_.clear();
    if (lines_.size() > 2 * max_)
      lines_.erase(lines_.begin(), lines_.end() - static_cast<std::ptrdiff_t>(max_));
  }
  std::vector<std::string> take() {
    end();
    if (lines_.size() > max_)
      lines_.erase(lines_.begin(), lines_.end() - static_cast<std::ptrdiff_t>(max_));
    return std::move(lines_);
  }

 private:
  std::size_t max_;
  std::string line_;
  bool overwrite_ = false;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> plainLines(std::string_view raw, std::size_t max_lines) {
  Lines lines(max_lines);
  while (!raw.empty()) {
    if (raw[0] == '\t') {
      lines.add(" ");
      raw.remove_prefix(1);
      continue;
    }
    const auto step = stepOver(raw);
    switch (step.what) {
      case Step::What::Text:
        lines.add(raw.substr(0, step.bytes));
        break;
      case Step::What::NewLine:
        lines.end();
        break;
      case Step::What::Overwrite:
        lines.overwrite();
        break;
      case Step::What::Nothing:
        break;
    }
    raw.remove_prefix(step.bytes);
  }
  return lines.take();
}

}  // namespace muster::bmc
