// SPDX-License-Identifier: Apache-2.0
// The words that schemas are written with. Only for the sources of schema.h.
#pragma once

#include <nlohmann/json.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace muster::api::schema_words {

using nlohmann::json;

struct Member {
  std::string_view name;
  json schema;
  bool required = true;
};

inline json object(std::initializer_list<Member> members) {
  json properties = json::object(), required = json::array();
  for (const auto& member : members) {
    properties[std::string(member.name)] = member.schema;
    if (member.required) required.push_back(member.name);
  }
  return {
      {"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
}
inline json arrayOf(json items) { return {{"type", "array"}, {"items", std::move(items)}}; }
inline json mapOf(json values) {
  return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}
inline json words(std::initializer_list<std::string_view> values) {
  json all = json::array();
  for (const auto& value : values) all.push_back(value);
  return {{"type", "string"}, {"enum", std::move(all)}};
}

inline const json kText{{"type", "string"}};
inline const json kTime{{"type", "string"}, {"format", "date-time"}};
inline const json kCount{{"type", "integer"}, {"minimum", 0}};
inline const json kInteger{{"type", "integer"}};
inline const json kNumber{{"type", "number"}};
inline const json kFlag{{"type", "boolean"}};
inline const json kAny = json::object();
inline const json kFree{{"type", "object"}};
inline const json kTexts = arrayOf(kText);
inline constexpr bool kOptional = false;

/// What a plan would disturb, of plans and of runs.
json planImpact();
/// Adds the schemas of plans, firmware and fabrics by their names.
void addPlanAndFirmware(json& out);
void addFabric(json& out);

}  // namespace muster::api::schema_words
