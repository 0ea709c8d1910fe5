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

}  // namespace

// Digests are long and say nothing to people: the first eight digits tell two of them apart.
std::string briefDigests(const std::string& value) {
  std::string out;
  std::size_t hex_run = 0;
  for (const char c : value) {
    hex_run = std::isxdigit(static_cast<unsigned char>(c)) ? hex_run + 1 : 0;
    if (hex_run <= kShownHexDigits)
      out += c;
    else if (hex_run == kShownHexDigits + 1)
      out += "…";
  }
  return out;
}

void appendCommon(std::string& out, std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, name.size(), name) == 0 && (at == 0 || !isOfName(text[at - 1])) &&
        (at + name.size() == text.size() || !isOfName(text[at + name.size()]))) {
      out += "NODE";
      at += name.size();
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && std::isxdigit(static_cast<unsigned char>(text[end]))) ++end;
    if (end - at > kShownHexDigits)
      out += "…";
    else
      out += text.substr(at, std::max<std::size_t>(end - at, 1));
    at = std::max(end, at + 1);
  }
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
