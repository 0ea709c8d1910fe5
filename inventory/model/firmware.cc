// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/firmware.h"

#include "base/json_output.h"
#include "base/utf8.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

namespace muster::inventory {
namespace {

constexpr std::size_t kShownVersionBytes = 60;

bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool isHex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// A number in hexadecimal digits without leading zeros, or a word. Digits compare alike in base 10
/// and 16, so that one rule does for both.
struct Token {
  bool number = false;
  std::string text;
};

std::weak_ordering compare(const Token& a, const Token& b) {
  if (a.number != b.number)
    return a.number ? std::weak_ordering::greater : std::weak_ordering::less;
  if (a.number && a.text.size() != b.text.size()) return a.text.size() <=> b.text.size();
  const int order = a.text.compare(b.text);
  return order < 0   ? std::weak_ordering::less
         : order > 0 ? std::weak_ordering::greater
                     : std::weak_ordering::equivalent;
}

Token number(std::string text) {
  text.erase(0, std::min(text.find_first_not_of('0'), text.size()));
  return {true, std::move(text)};
}

/// One run of letters and digits. "5E" is a number; "rc1" is a word and a number.
void addTokens(std::string word, std::vector<Token>& out) {
  if (word.size() > 2 && word.starts_with("0x") && std::all_of(word.begin() + 2, word.end(), isHex))
    word.erase(0, 2);
  if (std::any_of(word.begin(), word.end(), isDigit) &&
      std::all_of(word.begin(), word.end(), isHex))
    return out.push_back(number(word));
  for (std::size_t at = 0; at < word.size();) {
    const bool digits = isDigit(word[at]);
    const auto end = std::find_if(word.begin() + static_cast<std::ptrdiff_t>(at), word.end(),
                                  [digits](char c) { return isDigit(c) != digits; });
    std::string part(word.begin() + static_cast<std::ptrdiff_t>(at), end);
    at += part.size();
    out.push_back(digits ? number(part) : Token{false, std::move(part)});
  }
}

std::vector<Token> tokensOf(std::string_view version) {
  std::vector<Token> tokens;
  std::string word;
  for (const char c : version) {
    if (isWord(c)) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (!word.empty()) addTokens(std::exchange(word, {}), tokens);
  }
  if (!word.empty()) addTokens(std::move(word), tokens);
  if (!tokens.empty() && !tokens.front().number && tokens.front().text == "v")
    tokens.erase(tokens.begin());  // v1.2
  return tokens;
}

struct OpName {
  std::string_view text;
  FirmwareTerm::Op op;
};
constexpr std::array<OpName, 6> kOps = {{{">=", FirmwareTerm::Op::AtLeast},
                                         {"<=", FirmwareTerm::Op::AtMost},
                                         {"!=", FirmwareTerm::Op::NotEqual},
                                         {">", FirmwareTerm::Op::Greater},
                                         {"<", FirmwareTerm::Op::Less},
                                         {"=", FirmwareTerm::Op::Equal}}};

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string_view::npos ? std::string()
                                         : std::string(text.substr(begin, end - begin + 1));
}

Error grammar(std::string_view text) {
  return Error(ErrorCode::InvalidInput,
               fmt::format("\"{}\" is no constraint; write COMPONENT >= VERSION needs COMPONENT >= "
                           "VERSION (or excludes; operators >= > <= < = !=)",
                           text.substr(0, 160)));
}

std::optional<FirmwareTerm> parseTerm(std::string_view text) {
  const auto at = text.find_first_of("<>=!");
  if (at == std::string_view::npos) return std::nullopt;
  const auto rest = text.substr(at);
  const auto op = std::find_if(kOps.begin(), kOps.end(),
                               [&](const OpName& name) { return rest.starts_with(name.text); });
  if (op == kOps.end()) return std::nullopt;
  FirmwareTerm term{trimmed(text.substr(0, at)), op->op, trimmed(rest.substr(op->text.size()))};
  const bool odd = term.version.find_first_of(" <>=!") != std::string::npos;
  if (term.component.empty() || term.version.empty() || odd) return std::nullopt;
  return term;
}

bool hasGlob(std::string_view version) { return version.find_first_of("*?") != version.npos; }

/// Whether a term holds for the version that the baseline asks for; Unknown also for a glob.
FirmwareTerm::Holds holdsAtTarget(const FirmwareTerm& term, const FirmwareComponent& component) {
  if (hasGlob(component.version)) return FirmwareTerm::Holds::Unknown;
  const auto part = comparablePart(component.pattern, component.version);
  return part ? term.holds(*part) : FirmwareTerm::Holds::Unknown;
}

/// The components that a term is about.
std::vector<const FirmwareComponent*> namedBy(const FirmwareTerm& term,
                                              const FirmwareBaseline& baseline) {
  std::vector<const FirmwareComponent*> out;
  for (const auto& component : baseline.components)
    if (::fnmatch(term.component.c_str(), component.name.c_str(), FNM_NOESCAPE) == 0)
      out.push_back(&component);
  return out;
}

}  // namespace

std::weak_ordering compareVersions(std::string_view a, std::string_view b) {
  const auto left = tokensOf(a), right = tokensOf(b);
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i)
    if (const auto order = compare(left[i], right[i]); order != 0) return order;
  return left.size() <=> right.size();
}

std::string_view trimmedVersion(std::string_view version) {
  constexpr std::string_view kBlank(" \t\r\n\0", 5);
  const auto begin = version.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return version.substr(begin, version.find_last_not_of(kBlank) - begin + 1);
}

std::optional<std::weak_ordering> comparedVersions(std::string_view a, std::string_view b) {
  if (trimmedVersion(a) == trimmedVersion(b)) return std::weak_ordering::equivalent;
  const auto left = tokensOf(a), right = tokensOf(b);
  if (left.empty() || right.empty()) return std::nullopt;
  const auto shared = std::min(left.size(), right.size());
  for (std::size_t i = 0; i < shared; ++i) {
    const auto order = compare(left[i], right[i]);
    if (order == 0) continue;
    if (!left[i].number || !right[i].number) return std::nullopt;
    return order;
  }
  // The longer one is newer, unless what follows is a word: a release is newer than its candidate.
  const auto& longer = left.size() > right.size() ? left : right;
  if (longer.size() > shared && !longer[shared].number) return std::nullopt;
  return left.size() <=> right.size();
}

Result<std::string> comparablePart(const std::string& pattern, std::string_view version) {
  const auto text = trimmedVersion(version);
  if (text.size() > kMaxComparedBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("the version \"{}…\" has {} bytes; at most {} are compared",
                            cutToBytes(text, kShownVersionBytes), text.size(), kMaxComparedBytes));
  if (pattern.empty()) return std::string(text);
  try {
    // By default libstdc++ calls itself once a character of what a BMC says, and some patterns take
    // it exponential time. This executor does neither, and refuses back-references.
    const std::regex regex(pattern, std::regex::ECMAScript | std::regex_constants::__polynomial);
    std::match_results<std::string_view::const_iterator> found;
    if (std::regex_search(text.begin(), text.end(), found, regex)) {
      const auto& part = found.size() > 1 && found[1].matched ? found[1] : found[0];
      if (part.length() > 0) return part.str();
    }
  } catch (const std::regex_error& error) {
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is no regular expression: {}", pattern, error.what()));
  }
  return fail(ErrorCode::InvalidInput,
              fmt::format("the pattern \"{}\" finds nothing in the version \"{}\"", pattern, text));
}

FirmwareTerm::Holds FirmwareTerm::holds(std::string_view seen) const {
  const auto compared = comparedVersions(seen, version);
  if (!compared) return Holds::Unknown;
  const auto order = *compared;
  const auto answer = [](bool holds) { return holds ? Holds::Yes : Holds::No; };
  switch (op) {
    case Op::Less:
      return answer(order < 0);
    case Op::AtMost:
      return answer(order <= 0);
    case Op::Equal:
      return answer(order == 0);
    case Op::NotEqual:
      return answer(order != 0);
    case Op::AtLeast:
      return answer(order >= 0);
    case Op::Greater:
      return answer(order > 0);
  }
  return Holds::Unknown;
}

std::string FirmwareTerm::str() const {
  const auto name = std::find_if(kOps.begin(), kOps.end(),
                                 [this](const OpName& entry) { return entry.op == op; });
  return fmt::format("{} {} {}", component, name->text, version);
}

Result<FirmwareConstraint> FirmwareConstraint::parse(std::string_view text) {
  for (const std::string_view word : {" needs ", " excludes "}) {
    const auto at = text.find(word);
    if (at == std::string_view::npos) continue;
    auto when = parseTerm(text.substr(0, at)), then = parseTerm(text.substr(at + word.size()));
    if (when && then)
      return FirmwareConstraint{std::move(*when), std::move(*then), word == " excludes "};
  }
  return fail(grammar(text));
}

std::string FirmwareConstraint::str() const {
  return fmt::format("{} {} {}", when.str(), excludes ? "excludes" : "needs", then.str());
}

const FirmwareComponent* FirmwareBaseline::find(std::string_view component) const {
  const auto found = std::find_if(components.begin(), components.end(),
                                  [&](const FirmwareComponent& c) { return c.name == component; });
  return found == components.end() ? nullptr : &*found;
}

std::string FirmwareBaseline::canonical() const {
  nlohmann::json out = {{"format", "muster-baseline/1"},
                        {"name", name},
                        {"order", order},
                        {"constraints", nlohmann::json::array()}};
  for (const auto& constraint : constraints) out["constraints"].push_back(constraint.str());
  for (const auto& component : components) {
    nlohmann::json entry = {{"version", component.version},
                            {"sha256", component.sha256},
                            {"activation", static_cast<int>(component.activation)},
                            {"device", component.device}};
    if (!component.pattern.empty()) entry["pattern"] = component.pattern;
    for (const auto& image : component.intermediate)  // "via": signatures are over this text
      entry["via"].push_back({{"version", image.version}, {"sha256", image.sha256}});
    out["components"][component.name] = std::move(entry);
  }
  return jsonText(out);
}

std::string brokenByTargets(const FirmwareConstraint& constraint,
                            const FirmwareBaseline& baseline) {
  const auto broken_by = constraint.excludes ? FirmwareTerm::Holds::Yes : FirmwareTerm::Holds::No;
  for (const auto* left : namedBy(constraint.when, baseline)) {
    if (holdsAtTarget(constraint.when, *left) != FirmwareTerm::Holds::Yes) continue;
    for (const auto* right : namedBy(constraint.then, baseline))
      if (holdsAtTarget(constraint.then, *right) == broken_by)
        return fmt::format(
            "this baseline breaks it: it asks for {} {} and {} {}; change one of the "
            "versions or the constraint",
            left->name, left->version, right->name, right->version);
  }
  return {};
}

}  // namespace muster::inventory
