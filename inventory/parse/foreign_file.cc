// SPDX-License-Identifier: Apache-2.0
#include "inventory/parse/foreign_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::inventory {
namespace {

bool startsWithKey(const ObjectSpec& spec, std::string_view line) {
  while (line.starts_with('{') || line.starts_with(' ') || line.starts_with('"'))
    line.remove_prefix(1);
  const auto key = line.substr(0, line.find_first_of(":\" "));
  return key.size() < line.size() && spec.find(key) != nullptr;
}

}  // namespace

bool hasKeyOf(const ObjectSpec& spec, const std::optional<Value>& root, std::string_view text) {
  if (root)
    return root->kind == Value::Kind::Map &&
           std::any_of(root->entries.begin(), root->entries.end(),
                       [&](const auto& entry) { return spec.find(entry.first.text); });
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (startsWithKey(spec, line)) return true;
  }
  return false;
}

Diagnostics noKeyOf(const ForeignFile& expected, const std::string& file) {
  Diagnostics out;
  out.error({file, 1, 1},
            fmt::format("this is no {0}: it has none of the keys of one", expected.what),
            expected.begins);
  return out;
}

Diagnostics withoutContent(const Diagnostics& found, const std::vector<SourceRef>& quoting,
                           const ForeignFile& expected) {
  Diagnostics out;
  for (const auto& one : found.all()) {
    const bool quotes = one.text.find(": ") != std::string::npos ||
                        one.text.find('"') != std::string::npos ||
                        std::find(quoting.begin(), quoting.end(), one.where) != quoting.end();
    out.error(one.where,
              quotes ? fmt::format("not valid YAML, and no {}", expected.what) : one.text,
              quotes ? expected.advice : one.suggestion);
  }
  return out;
}

}  // namespace muster::inventory
