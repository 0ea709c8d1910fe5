// SPDX-License-Identifier: Apache-2.0
#include "tests/pool/kube_schema.h"

#include <fmt/format.h>

#include <map>
#include <regex>
#include <set>

namespace muster::pool::test {

namespace {

using nlohmann::json;

/// "string", "boolean", "integer", "texts" (map of text to text), "text list", or the kind of an
/// object; "[]kind" a list of them.
using Fields = std::map<std::string, std::string>;

const std::map<std::string, Fields>& kinds() {
  static const std::map<std::string, Fields> all{
      {"NodePatch",
       {{"apiVersion", "string"},
        {"kind", "string"},
        {"metadata", "ObjectMeta"},
        {"spec", "NodeSpec"},
        {"status", "any"}}},
      {"ObjectMeta",
       {{"annotations", "texts"},
        {"creationTimestamp", "string"},
        {"deletionGracePeriodSeconds", "integer"},
        {"deletionTimestamp", "string"},
        {"finalizers", "text list"},
        {"generateName", "string"},
        {"generation", "integer"},
        {"labels", "texts"},
        {"managedFields", "any"},
        {"name", "string"},
        {"namespace", "string"},
        {"ownerReferences", "any"},
        {"resourceVersion", "string"},
        {"selfLink", "string"},
        {"uid", "string"}}},
      {"NodeSpec",
       {{"configSource", "any"},
        {"externalID", "string"},
        {"podCIDR", "string"},
        {"podCIDRs", "text list"},
        {"providerID", "string"},
        {"taints", "[]Taint"},
        {"unschedulable", "boolean"}}},
      {"Taint",
       {{"effect", "string"}, {"key", "string"}, {"timeAdded", "string"}, {"value", "string"}}},
      {"Eviction",
       {{"apiVersion", "string"},
        {"deleteOptions", "DeleteOptions"},
        {"kind", "string"},
        {"metadata", "ObjectMeta"}}},
      {"DeleteOptions",
       {{"apiVersion", "string"},
        {"dryRun", "text list"},
        {"gracePeriodSeconds", "integer"},
        {"ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"},
        {"kind", "string"},
        {"orphanDependents", "boolean"},
        {"preconditions", "Preconditions"},
        {"propagationPolicy", "string"}}},
      {"Preconditions", {{"resourceVersion", "string"}, {"uid", "string"}}},
  };
  return all;
}

const std::map<std::string, std::set<std::string>> kRequired{{"Taint", {"effect", "key"}}};

std::string offence(const std::string& type, const json& value, const std::string& path) {
  const auto wrong = [&](std::string_view wanted) {
    return fmt::format("{}: expected {}, got {}", path, wanted, value.dump());
  };
  if (value.is_null() || type == "any") return {};  // in a merge patch null removes
  if (type == "string") return value.is_string() ? "" : wrong("string");
  if (type == "boolean") return value.is_boolean() ? "" : wrong("boolean");
  if (type == "integer") return value.is_number_integer() ? "" : wrong("integer");
  if (type == "texts" || type == "text list") {
    if (type == "texts" ? !value.is_object() : !value.is_array()) return wrong(type);
    for (const auto& one : value)
      if (!one.is_string() && !one.is_null()) return wrong(type);
    return {};
  }
  if (type.starts_with("[]")) {
    if (!value.is_array()) return wrong("list");
    for (const auto& one : value)
      if (auto bad = offence(type.substr(2), one, path + "[]"); !bad.empty()) return bad;
    return {};
  }
  if (!value.is_object()) return wrong(type);
  const auto& fields = kinds().at(type);
  for (const auto& [key, inner] : value.items()) {
    auto field = fields.find(key);
    if (field == fields.end())
      return fmt::format("strict decoding error: unknown field \"{}.{}\"", path, key);
    if (auto bad = offence(field->second, inner, path + "." + key); !bad.empty()) return bad;
  }
  if (auto required = kRequired.find(type); required != kRequired.end())
    for (const auto& key : required->second)
      if (!value.contains(key)) return fmt::format("{}.{}: Required value", path, key);
  return {};
}

bool fits(const std::string& text, const std::regex& form) { return std::regex_match(text, form); }

}  // namespace

std::string schemaOffence(const std::string& kind, const json& object) {
  return offence(kind, object, kind);
}

std::string nodeOffence(const json& node) {
  static const std::regex name(
      "(([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)/"
      ")?([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)");
  static const std::regex label("([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?");
  const json none = json::object();
  for (const char* map : {"labels", "annotations"}) {
    const json texts = node["metadata"].value(map, none);
    for (const auto& [key, value] : texts.items()) {
      if (!fits(key, name))
        return fmt::format(
            "metadata.{}: Invalid value: \"{}\": name part must consist of alphanumeric characters",
            map, key);
      if (map == std::string("labels") && !fits(value.get<std::string>(), label))
        return fmt::format("metadata.labels: Invalid value: \"{}\"", value.get<std::string>());
    }
  }
  std::set<std::pair<std::string, std::string>> seen;
  const json taints = node["spec"].value("taints", json::array());
  for (const auto& taint : taints) {
    const auto key = taint["key"].get<std::string>(), effect = taint["effect"].get<std::string>();
    if (!fits(key, name)) return fmt::format("spec.taints.key: Invalid value: \"{}\"", key);
    if (effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute")
      return fmt::format("spec.taints.effect: Unsupported value: \"{}\"", effect);
    if (!seen.emplace(key, effect).second)
      return fmt::format("spec.taints: Duplicate value: {}:{}", key, effect);
  }
  return {};
}

}  // namespace muster::pool::test
