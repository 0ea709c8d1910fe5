// SPDX-License-Identifier: Apache-2.0
#include "base/json_output.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster {

std::string jsonText(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

void appendJsonText(std::string& out, std::string_view text) {
  const bool is_plain = std::ranges::all_of(
      text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (!is_plain) {
    out += jsonText(nlohmann::json(text));
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

std::string jsonText(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace muster
