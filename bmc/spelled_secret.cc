// SPDX-License-Identifier: Apache-2.0
#include "bmc/spelled_secret.h"

#include "base/utf8.h"

#include <array>
#include <charconv>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace muster::bmc {
namespace {

/// One way to read the text at a place: these bytes, from so many of the text.
struct Unit {
  std::string bytes;  ///< empty: passed over
  std::size_t length = 0;
};
using Units = std::vector<Unit>;

constexpr std::size_t kLongestEntity = 12;  ///< "#x0000000022"
constexpr int kMostNested = 4;              ///< of entities in entities
constexpr std::string_view kAmpersandAgain = "amp;";
constexpr std::array<std::pair<std::string_view, char>, 36> kEntities{
    {{"amp", '&'},    {"AMP", '&'},    {"lt", '<'},     {"LT", '<'},     {"gt", '>'},
     {"GT", '>'},     {"quot", '"'},   {"QUOT", '"'},   {"apos", '\''},  {"excl", '!'},
     {"num", '#'},    {"dollar", '$'}, {"percnt", '%'}, {"lpar", '('},   {"rpar", ')'},
     {"ast", '*'},    {"midast", '*'}, {"plus", '+'},   {"comma", ','},  {"period", '.'},
     {"sol", '/'},    {"colon", ':'},  {"semi", ';'},   {"equals", '='}, {"quest", '?'},
     {"commat", '@'}, {"lsqb", '['},   {"lbrack", '['}, {"bsol", '\\'},  {"rsqb", ']'},
     {"rbrack", ']'}, {"Hat", '^'},    {"lowbar", '_'}, {"grave", '`'},  {"lcub", '{'},
     {"rcub", '}'}}};
constexpr std::array<std::pair<char, char>, 5> kEscapes{
    {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'b', '\b'}, {'f', '\f'}}};

/// All of it, as a number.
std::optional<std::uint32_t> numberOf(std::string_view digits, int base) {
  std::uint32_t out = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), out, base);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return out;
}

std::string utf8Of(std::uint32_t code_point) {
  std::string out;
  appendUtf8(out, static_cast<char32_t>(code_point));
  return out;
}

/// "%26", "%2526"; `at`: behind the first percent sign.
void addPercent(std::string_view text, std::size_t begin, Units& out) {
  for (auto at = begin + 1; at + 2 <= text.size(); at += 2) {
    const auto value = numberOf(text.substr(at, 2), 16);
    if (!value) return;
    out.push_back({std::string(1, static_cast<char>(*value)), at + 2 - begin});
    if (*value != '%') return;
  }
}

std::string entityOf(std::string_view name) {
  if (name.starts_with("#x") || name.starts_with("#X")) {
    const auto number = numberOf(name.substr(2), 16);
    return number ? utf8Of(*number) : "";
  }
  if (name.starts_with('#')) {
    const auto number = numberOf(name.substr(1), 10);
    return number ? utf8Of(*number) : "";
  }
  for (const auto& [known, sign] : kEntities)
    if (known == name) return std::string(1, sign);
  return {};
}

/// "&quot;", "&amp;quot;"
void addEntity(std::string_view text, std::size_t begin, Units& out) {
  auto at = begin + 1;
  for (int nested = 0; nested < kMostNested; ++nested, at += kAmpersandAgain.size()) {
    const auto rest = text.substr(at, kLongestEntity + 1);
    const auto end = rest.find(';');
    if (end == rest.npos) return;
    if (auto bytes = entityOf(rest.substr(0, end)); !bytes.empty())
      out.push_back({std::move(bytes), at + end + 1 - begin});
    if (!rest.starts_with(kAmpersandAgain)) return;
  }
}

std::optional<std::uint32_t> hexAt(std::string_view text, std::size_t at, std::size_t digits) {
  return at + digits <= text.size() ? numberOf(text.substr(at, digits), 16) : std::nullopt;
}

/// "\u0022", "\ud83d\ude00", "\x22", "\n"; or a backslash before one of these or another byte.
void addEscape(std::string_view text, std::size_t begin, Units& out) {
  out.push_back({"", 1});
  const auto at = begin + 1;
  if (at == text.size()) return;
  for (const auto& [letter, sign] : kEscapes)
    if (text[at] == letter) out.push_back({std::string(1, sign), 2});
  if (text[at] == 'x')
    if (const auto value = hexAt(text, at + 1, 2))
      out.push_back({std::string(1, static_cast<char>(*value)), 4});
  if (text[at] != 'u') return;
  const auto unit = hexAt(text, at + 1, 4);
  if (!unit) return;
  const bool is_first = *unit >= 0xd800 && *unit < 0xdc00;
  const auto second =
      is_first && text.substr(at + 5).starts_with("\\u") ? hexAt(text, at + 7, 4) : std::nullopt;
  if (second && *second >= 0xdc00 && *second < 0xe000)
    out.push_back({utf8Of(0x10000 + ((*unit - 0xd800) << 10) + (*second - 0xdc00)), 12});
  else if (!is_first)
    out.push_back({utf8Of(*unit), 6});
}

Units unitsAt(std::string_view text, std::size_t at) {
  Units out{{std::string(1, text[at]), 1}};
  if (text[at] == '+') out.push_back({" ", 1});
  if (text[at] == '%') addPercent(text, at, out);
  if (text[at] == '&') addEntity(text, at, out);
  if (text[at] == '\\') addEscape(text, at, out);
  return out;
}

/// Whether the byte can be read in another way than as itself.
bool isSpecial(char c) { return c == '%' || c == '&' || c == '\\' || c == '+'; }

/// The end of the secret in the text, if it begins there; not with a backslash that is passed over.
std::optional<std::size_t> endOf(std::string_view text, std::size_t begin,
                                 std::string_view secret) {
  using State = std::pair<std::size_t, std::size_t>;  // bytes of the secret that were read; where
  std::vector<State> open{{0, begin}};
  std::set<State> seen;  // that branched
  while (!open.empty()) {
    auto [done, at] = open.back();
    open.pop_back();
    while (done < secret.size() && at < text.size() && !isSpecial(text[at]) &&
           secret[done] == text[at])
      ++done, ++at;
    if (done == secret.size()) return at;
    if (at == text.size() || !isSpecial(text[at]) || !seen.emplace(done, at).second) continue;
    for (const auto& unit : unitsAt(text, at))
      if ((done > 0 || !unit.bytes.empty()) && secret.substr(done).starts_with(unit.bytes))
        open.emplace_back(done + unit.bytes.size(), at + unit.length);
  }
  return std::nullopt;
}

}  // namespace

std::optional<SpelledAt> findSpelled(std::string_view text, std::string_view secret,
                                     std::size_t from) {
  for (auto at = from; at < text.size(); ++at)
    if (text[at] == secret.front() || isSpecial(text[at]))
      if (const auto end = endOf(text, at, secret)) return SpelledAt{at, *end};
  return std::nullopt;
}

}  // namespace muster::bmc
