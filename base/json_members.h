// SPDX-License-Identifier: Apache-2.0
// Members of a JSON object that may be missing or of another type: then they are empty. For what
// has been checked, and for what is only shown; messages that decide have field tables
// (wire/fields.h).
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace muster {

/// Empty: no object, no such member, no text.
inline std::string textOf(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// False: no object, no such member, no boolean.
inline bool flagOf(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace muster
