// SPDX-License-Identifier: Apache-2.0
// Pieces that resources are made of.
#pragma once

#include "lab/vbmc/messages.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace muster::lab::vbmc {

using nlohmann::json;

inline json head(const std::string& path, const std::string& type, const std::string& name) {
  auto slash = path.rfind('/');
  return {{"@odata.id", path},
          {"@odata.type", "#" + type},
          {"Id", path.substr(slash + 1)},
          {"Name", name}};
}

inline json collection(const std::string& path, const std::string& type,
                       const std::vector<std::string>& members) {
  json result = head(path, type + "." + type, type);
  result.erase("Id");  // DSP0266: a collection has none
  result["Members"] = json::array();
  for (auto& member : members) result["Members"].push_back(linkTo(path + "/" + member));
  result["Members@odata.count"] = members.size();
  return result;
}

template <class Map>
std::vector<std::string> keysOf(const Map& map) {
  std::vector<std::string> keys;
  for (auto& entry : map) keys.push_back(entry.first);
  return keys;
}

inline json healthy() { return {{"State", "Enabled"}, {"Health", "OK"}}; }

inline json resetActionInfo(const std::string& path, std::vector<std::string> values) {
  json result = head(path, "ActionInfo.v1_1_2.ActionInfo", "Reset Action Info");
  result["Parameters"] = json::array({{{"Name", "ResetType"},
                                       {"Required", true},
                                       {"DataType", "String"},
                                       {"AllowableValues", std::move(values)}}});
  return result;
}

/// Puts `value` at "A/B/C" below `object`.
inline void putAt(json& object, std::string_view path, json value) {
  json* at = &object;
  while (true) {
    const auto slash = path.find('/');
    at = &(*at)[std::string(path.substr(0, slash))];
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  *at = std::move(value);
}

/// The error that GET answers in place of a resource.
inline json errorInPlace(int status, const std::string& code, const std::string& message) {
  return {{"@Muster.status", status}, {"code", code}, {"message", message}};
}

}  // namespace muster::lab::vbmc
