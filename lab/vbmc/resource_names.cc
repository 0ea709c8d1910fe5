// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/resource_names.h"

namespace muster::lab::vbmc {
namespace {

/// `path` with its beginning `from` replaced; a beginning ends at a '/', a '#', a '?' or the end.
std::string replaced(std::string path, std::span<const ResourceName> names,
                     std::string_view ResourceName::* from, std::string_view ResourceName::* to) {
  for (const auto& name : names) {
    const auto begin = name.*from;
    if (!path.starts_with(begin)) continue;
    const char next = path.size() == begin.size() ? '/' : path[begin.size()];
    if (next == '/' || next == '#' || next == '?')
      return std::string(name.*to) + path.substr(begin.size());
  }
  return path;
}

template <class Rename>
void renameLinks(nlohmann::json& json, const Rename& rename) {
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    if (text.starts_with("/redfish/v1/")) json = rename(text);
    return;
  }
  if (json.is_object() || json.is_array())
    for (auto& part : json) renameLinks(part, rename);
}

std::string lastPart(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Of the resource itself and of members that are shown in full.
void renameIds(nlohmann::json& json, std::span<const ResourceName> names) {
  if (json.is_object() && json.contains("@odata.id") && json.contains("Id") &&
      json["@odata.id"].is_string()) {
    const auto before = json["@odata.id"].get<std::string>();
    const auto after = outsideName(before, names);
    if (json["Id"] == lastPart(before)) json["Id"] = lastPart(after);
  }
  if (json.is_object() || json.is_array())
    for (auto& part : json) renameIds(part, names);
}

}  // namespace

std::string insideName(std::string path, std::span<const ResourceName> names) {
  return replaced(std::move(path), names, &ResourceName::outside, &ResourceName::inside);
}

std::string outsideName(std::string path, std::span<const ResourceName> names) {
  return replaced(std::move(path), names, &ResourceName::inside, &ResourceName::outside);
}

void renameOutside(nlohmann::json& resource, std::span<const ResourceName> names) {
  if (names.empty()) return;
  renameIds(resource, names);
  renameLinks(resource, [names](const std::string& link) { return outsideName(link, names); });
}

void renameInside(nlohmann::json& body, std::span<const ResourceName> names) {
  if (names.empty()) return;
  renameLinks(body, [names](const std::string& link) { return insideName(link, names); });
}

}  // namespace muster::lab::vbmc
