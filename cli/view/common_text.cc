// SPDX-License-Identifier: Apache-2.0
#include "cli/view/common_text.h"

#include "inventory/parse/hostlist.h"

#include <algorithm>
#include <cctype>

namespace muster::cli {
namespace {

constexpr std::size_t kShownHexDigits = 8;

bool isOfName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
}

/// std::isxdigit asks the locale, for each of a plan's hundred million characters.
bool isHexDigit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// The whole name, not a part of a longer one.
bool isNameAt(std::string_view text, std::size_t at, std::string_view name) {
  return !name.empty() && text[at] == name.front() && text.substr(at).starts_with(name) &&
         (at == 0 || !isOfName(text[at - 1])) &&
         (at + name.size() == text.size() || !isOfName(text[at + name.size()]));
}

}  // namespace

// Digests are long and say nothing to people: the first eight digits tell two of them apart.
std::string briefDigests(const std::string& value) {
  std::string out;
  std::size_t hex_run = 0;
  for (const char c : value) {
    hex_run = isHexDigit(c) ? hex_run + 1 : 0;
    if (hex_run <= kShownHexDigits)
      out += c;
    else if (hex_run == kShownHexDigits + 1)
      out += "…";
  }
  return out;
}

void appendCommon(std::string& out, std::string_view text, std::string_view name) {
  std::size_t same = 0;  ///< where the text begins that stays as it is
  const auto put = [&](std::size_t at, std::string_view instead, std::size_t next) {
    out += text.substr(same, at - same);
    out += instead;
    same = next;
  };
  for (std::size_t at = 0; at < text.size();) {
    if (isNameAt(text, at, name)) {
      put(at, "NODE", at + name.size());
      at = same;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && isHexDigit(text[end])) ++end;
    if (end - at > kShownHexDigits) put(at, "…", end);
    at = std::max(end, at + 1);
  }
  out += text.substr(same);
}

std::string commonText(std::string_view text, std::string_view name) {
  std::string out;
  appendCommon(out, text, name);
  return out;
}

std::string NodesByText::Group::hostlist() const { return inventory::foldHostlist(nodes); }

void NodesByText::add(const std::string& node, const std::string& text) {
  auto common = commonText(text, node);
  const auto [found, is_new] = index_.try_emplace(common, groups_.size());
  if (is_new) groups_.push_back({text, std::move(common), {}});
  groups_[found->second].nodes.push_back(node);
}

}  // namespace muster::cli
