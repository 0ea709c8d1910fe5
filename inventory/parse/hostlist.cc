// SPDX-License-Identifier: Apache-2.0
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace muster::inventory {

namespace {

constexpr std::size_t kMaxNumberDigits = 18;  ///< fits std::uint64_t with room
constexpr std::size_t kMaxNameLength = 255;

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameChar(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == '.';
}

struct Range {
  std::uint64_t low = 0, high = 0;
  std::size_t width = 0;  ///< least digits, zero-padded
};
/// A piece of a name: literal text, then ranges (none: only text).
struct Piece {
  std::string text;
  std::vector<Range> ranges;
  std::size_t count() const {
    std::size_t sum = 0;
    for (const Range& range : ranges) {
      std::uint64_t size = range.high - range.low + 1;
      if (size > kMaxHostlistNames) return kMaxHostlistNames + 1;
      sum = std::min(sum + static_cast<std::size_t>(size), kMaxHostlistNames + 1);
    }
    return ranges.empty() ? 1 : sum;
  }
};

std::string padded(std::uint64_t value, std::size_t width) {
  return fmt::format("{:0{}}", value, width);
}

/// Recursive descent over "name[ranges]name,…". Columns count from 1.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> run() {
    std::vector<std::string> names;
    skipSpace();
    if (atEnd()) return wrong("the hostlist is empty", "gpu[001-128]");
    while (true) {
      skipSpace();
      TRY(pieces, name());
      TRY_OK(multiply(pieces, names));
      skipSpace();
      if (atEnd()) return names;
      if (peek() != ',') return wrong("a space inside a name", "separate names by commas");
      ++at_;
      skipSpace();
      if (atEnd()) return wrong("nothing after the last comma", "remove the comma");
    }
  }

 private:
  std::unexpected<Error> wrong(std::string what, std::string hint) const {
    return fail(ErrorCode::InvalidInput, fmt::format("column {}: {}; {}", at_ + 1, what, hint));
  }
  bool atEnd() const { return at_ >= text_.size(); }
  char peek() const { return text_[at_]; }
  void skipSpace() {
    while (!atEnd() && peek() == ' ') ++at_;
  }

  Result<std::vector<Piece>> name() {
    std::vector<Piece> pieces;
    std::size_t start = at_;
    while (!atEnd() && peek() != ',' && peek() != ' ') {
      Piece piece;
      while (!atEnd() && isNameChar(peek())) piece.text += text_[at_++];
      if (!atEnd() && peek() == '[') {
        TRY(ranges, bracket());
        piece.ranges = std::move(ranges);
      } else if (!atEnd() && peek() == ']') {
        return wrong("']' without '['", "write gpu[001-128]");
      } else if (!atEnd() && peek() != ',' && peek() != ' ') {
        return wrong("a character that names cannot have", "use letters, digits, '-', '_' and '.'");
      }
      pieces.push_back(std::move(piece));
    }
    if (at_ == start) return wrong("a name is missing", "remove one comma");
    return pieces;
  }

  Result<std::vector<Range>> bracket() {
    std::size_t open = at_++;
    std::vector<Range> ranges;
    while (true) {
      TRY(next, range());
      ranges.push_back(next);
      if (atEnd()) {
        at_ = open;
        return wrong("'[' is never closed", "add ']'");
      }
      char c = text_[at_];
      if (c == ']') {
        ++at_;
        return ranges;
      }
      if (c != ',')
        return wrong(fmt::format("unexpected '{}' in a range",
                                 isNameChar(c) || c == '[' || c == ' ' ? c : '?'),
                     "write [001-003,007]");
      ++at_;
    }
  }

  Result<std::string_view> digits(std::string_view what) {
    std::size_t start = at_;
    while (!atEnd() && isDigit(peek())) ++at_;
    if (at_ == start) return wrong(fmt::format("{} is missing", what), "write [001-003,007]");
    if (at_ - start > kMaxNumberDigits) {
      at_ = start;
      return wrong(fmt::format("a number of more than {} digits", kMaxNumberDigits), "shorten it");
    }
    return text_.substr(start, at_ - start);
  }

  static std::uint64_t number(std::string_view text) {
    std::uint64_t value = 0;
    for (char c : text) value = value * 10 + static_cast<std::uint64_t>(c - '0');
    return value;
  }

  Result<Range> range() {
    std::size_t start = at_;
    TRY(low, digits("a number"));
    std::string_view high = low;
    if (!atEnd() && peek() == '-') {
      ++at_;
      TRY(end, digits("the end of the range"));
      high = end;
    }
    bool low_padded = low.size() > 1 && low[0] == '0';
    bool high_padded = high.size() > 1 && high[0] == '0';
    Range range{number(low), number(high), low_padded ? low.size() : 0};
    if (range.high < range.low) {
      at_ = start;
      return wrong(fmt::format("the range {}-{} runs backwards", low, high),
                   fmt::format("write {}-{}", high, low));
    }
    if ((low_padded && high.size() < low.size()) || (high_padded && high.size() != low.size())) {
      std::size_t width = std::max(low.size(), high.size());
      at_ = start;
      return wrong(fmt::format("{}-{} mixes two paddings", low, high),
                   fmt::format("write {}-{}", padded(range.low, width), padded(range.high, width)));
    }
    return range;
  }

  /// All combinations, the last range varying fastest.
  Result<void> multiply(const std::vector<Piece>& pieces, std::vector<std::string>& out) const {
    std::size_t total = 1;
    for (const Piece& piece : pieces) {
      std::size_t count = piece.count();
      if (count > kMaxHostlistNames || total > kMaxHostlistNames / count) return tooMany();
      total *= count;
    }
    if (out.size() + total > kMaxHostlistNames) return tooMany();
    std::vector<std::string> names{""};
    for (const Piece& piece : pieces) {
      std::vector<std::string> longer;
      longer.reserve(names.size() * piece.count());
      for (const std::string& name : names) {
        if (piece.ranges.empty()) longer.push_back(name + piece.text);
        for (const Range& range : piece.ranges)
          for (std::uint64_t value = range.low; value <= range.high; ++value)
            longer.push_back(name + piece.text + padded(value, range.width));
      }
      names = std::move(longer);
    }
    if (names.front().size() > kMaxNameLength)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("a name of more than {} characters", kMaxNameLength));
    std::move(names.begin(), names.end(), std::back_inserter(out));
    return {};
  }
  std::unexpected<Error> tooMany() const {
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("column {}: more than {} names; split the list", at_ + 1, kMaxHostlistNames));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// A name while it is folded: literals around numbers; each number is text or, once folded, "[…]".
struct Folding {
  std::vector<std::string> literals;  ///< one more than numbers
  std::vector<std::string> numbers;
};

Folding split(const std::string& name) {
  Folding out;
  out.literals.emplace_back();
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    while (end < name.size() && isDigit(name[end])) ++end;
    if (end == i) {
      out.literals.back() += name[i++];
    } else if (end - i > kMaxNumberDigits) {
      out.literals.back().append(name, i, end - i);
      i = end;
    } else {
      out.numbers.push_back(name.substr(i, end - i));
      out.literals.emplace_back();
      i = end;
    }
  }
  return out;
}

/// {"001","002","004"} → "[001-002,004]"; a single number stays bare.
std::string foldNumbers(std::vector<std::string> numbers) {
  if (numbers.size() == 1) return numbers.front();
  struct Run {
    std::string first, last, next;
    std::uint64_t next_value;
  };
  struct Entry {
    std::uint64_t value;
    const std::string* text;
  };
  std::vector<Entry> entries;
  for (const std::string& text : numbers) entries.push_back({std::stoull(text), &text});
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::make_pair(a.value, a.text->size()) < std::make_pair(b.value, b.text->size());
  });
  std::vector<Run> runs;
  std::vector<std::size_t>
      open;  // indices of runs that the next value may continue: at most one per padding
  for (const Entry& entry : entries) {
    std::erase_if(open, [&](std::size_t i) { return runs[i].next_value < entry.value; });
    auto fits = std::find_if(open.begin(), open.end(), [&](std::size_t i) {
      return runs[i].next_value == entry.value && runs[i].next == *entry.text;
    });
    std::size_t run = 0;
    if (fits != open.end()) {
      run = *fits;
    } else {
      run = runs.size();
      runs.push_back({*entry.text, {}, {}, 0});
      open.push_back(run);
    }
    Run& target = runs[run];
    target.last = *entry.text;
    target.next_value = entry.value + 1;
    std::size_t width = target.first.size() > 1 && target.first[0] == '0' ? target.first.size() : 0;
    target.next = padded(target.next_value, width);
  }
  std::string out = "[";
  for (const Run& run : runs) {
    if (out.size() > 1) out += ',';
    out += run.first;
    if (run.last != run.first) out += "-" + run.last;
  }
  return out + "]";
}

/// Merges the names that differ in number `index` only.
std::vector<Folding> foldDimension(std::vector<Folding> names, std::size_t index) {
  std::vector<Folding> out;
  std::map<std::vector<std::string>, std::size_t>
      groups;  // everything but that number → place in out
  std::vector<std::vector<std::string>> numbers;
  for (Folding& name : names) {
    std::vector<std::string> key = name.literals;
    key.insert(key.end(), name.numbers.begin(), name.numbers.end());
    if (index < name.numbers.size()) key[name.literals.size() + index].clear();
    auto [group, fresh] = groups.try_emplace(std::move(key), out.size());
    if (fresh) {
      out.push_back(name);
      numbers.emplace_back();
    }
    if (index < name.numbers.size()) numbers[group->second].push_back(name.numbers[index]);
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!numbers[i].empty()) out[i].numbers[index] = foldNumbers(std::move(numbers[i]));
  return out;
}

}  // namespace

Result<std::vector<std::string>> expandHostlist(std::string_view text) {
  return Parser(text).run();
}

std::string foldHostlist(std::vector<std::string> names) {
  std::sort(names.begin(), names.end(), naturalLess);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<Folding> parts;
  std::size_t dimensions = 0;
  for (const std::string& name : names) {
    parts.push_back(split(name));
    dimensions = std::max(dimensions, parts.back().numbers.size());
  }
  for (std::size_t index = dimensions; index-- > 0;) parts = foldDimension(std::move(parts), index);
  std::string out;
  for (const Folding& part : parts) {
    if (!out.empty()) out += ',';
    for (std::size_t i = 0; i < part.literals.size(); ++i) {
      out += part.literals[i];
      if (i < part.numbers.size()) out += part.numbers[i];
    }
  }
  return out;
}

bool naturalLess(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!isDigit(a[i]) || !isDigit(b[j])) {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i, ++j;
      continue;
    }
    while (i < a.size() && a[i] == '0') ++i;
    while (j < b.size() && b[j] == '0') ++j;
    std::size_t p = i, q = j;
    while (p < a.size() && isDigit(a[p])) ++p;
    while (q < b.size() && isDigit(b[q])) ++q;
    if (p - i != q - j) return p - i < q - j;
    if (int order = a.substr(i, p - i).compare(b.substr(j, q - j)); order != 0) return order < 0;
    i = p, j = q;
  }
  bool a_ends = i >= a.size(), b_ends = j >= b.size();
  if (a_ends != b_ends) return a_ends;
  return a < b;  // equal but for padding: 1 and 01
}

}  // namespace muster::inventory
