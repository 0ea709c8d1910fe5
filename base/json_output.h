// SPDX-License-Identifier: Apache-2.0
// The one way out for JSON: text that came from outside may hold bytes that are no UTF-8, and
// printing must not throw for that.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace muster {

/// Bytes that are no UTF-8 become U+FFFD. On one line without an indent.
std::string jsonText(const nlohmann::json& value, int indent = -1);
std::string jsonText(const nlohmann::ordered_json& value, int indent = -1);
/// A string's JSON, as jsonText gives it, without a tree: for what is written a million times.
void appendJsonText(std::string& out, std::string_view text);

}  // namespace muster
