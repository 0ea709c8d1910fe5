// SPDX-License-Identifier: Apache-2.0
// The JSON Schema and the operator's reference, both from the tables.
#include "base/json_output.h"
#include "inventory/inventory.h"
#include "inventory/schema/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <set>

namespace muster::inventory {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kIndent = 2;
constexpr std::string_view kSchemaDialect = "https://json-schema.org/draft/2020-12/schema";
constexpr std::string_view kSchemaId = "urn:muster:inventory:1";

class SchemaWriter {
 public:
  Json run() {
    Json root = {{"$schema", kSchemaDialect}, {"$id", kSchemaId}};
    root.update(objectSchema(*clusterSpec()));
    root["$defs"] = definitions_;
    return root;
  }

 private:
  Json reference(const ObjectSpec& spec) {
    std::string name(spec.name);
    if (!definitions_.contains(name)) {
      definitions_[name] = Json::object();  // stands before its parts
      definitions_[name] = objectSchema(spec);
    }
    return {{"$ref", "#/$defs/" + name}};
  }

  Json objectSchema(const ObjectSpec& spec) {
    Json out = {{"title", spec.title},
                {"description", spec.doc},
                {"type", "object"},
                {"properties", Json::object()}};
    Json required = Json::array();
    for (const FieldSpec& field : spec.fields) {
      Json property = {{"title", field.key}, {"description", field.doc}};
      property.update(shapeSchema(field.shape));
      if (!field.default_json.empty()) property["default"] = Json::parse(field.default_json);
      out["properties"][std::string(field.key)] = std::move(property);
      if (field.required) required.push_back(field.key);
    }
    if (!required.empty()) out["required"] = std::move(required);
    out["additionalProperties"] = false;
    for (const auto& keys : spec.exactly_one) {
      Json one = Json::array();
      for (std::string_view key : keys) one.push_back({{"required", Json::array({key})}});
      if (spec.exactly_one.size() == 1)
        out["oneOf"] = std::move(one);
      else
        out["allOf"].push_back({{"oneOf", std::move(one)}});
    }
    for (const auto& [key, needed] : spec.needs)
      out["dependentRequired"][std::string(key)].push_back(needed);
    return out;
  }

  Json shapeSchema(const Shape& shape) {
    switch (shape.kind) {
      case Shape::Kind::Text:
        if (shape.or_object)
          return {{"anyOf", Json::array({textSchema(shape), reference(*shape.or_object())})}};
        if (shape.or_list)
          return {{"anyOf", Json::array({textSchema(shape),
                                         {{"type", "array"},
                                          {"items", textSchema(shape)},
                                          {"minItems", 1},
                                          {"uniqueItems", true}}})}};
        return textSchema(shape);
      case Shape::Kind::Integer:
        return {{"type", "integer"}, {"minimum", shape.minimum}, {"maximum", shape.maximum}};
      case Shape::Kind::Boolean:
        return {{"type", "boolean"}};
      case Shape::Kind::Choice:
        return {{"enum", shape.choices}};
      case Shape::Kind::List: {
        Json out = {{"type", "array"}, {"items", shapeSchema(*shape.item)}};
        if (shape.min_items > 0) out["minItems"] = shape.min_items;
        return out;
      }
      case Shape::Kind::Map: {
        Json out = {{"type", "object"}};
        if (!shape.format->pattern.empty())
          out["propertyNames"] = {{"pattern", shape.format->pattern}};
        out["additionalProperties"] = shapeSchema(*shape.item);
        if (!shape.required_keys.empty()) out["required"] = shape.required_keys;
        return out;
      }
      case Shape::Kind::Object:
        return reference(*shape.object());
    }
    return Json::object();
  }

  static Json textSchema(const Shape& shape) {
    Json out = {{"type", "string"}, {"minLength", 1}, {"maxLength", kMaxTextBytes}};
    if (shape.format && !shape.format->pattern.empty()) {
      out["pattern"] = shape.format->pattern;
      out["examples"] = Json::array({shape.format->example});
    }
    if (shape.format && shape.format->numbers_too) out["type"] = Json::array({"string", "number"});
    return out;
  }

  Json definitions_ = Json::object();
};

/// Every table once, in the order in which a reader of the file meets them.
void collect(const ObjectSpec& spec, std::vector<const ObjectSpec*>& order,
             std::set<const ObjectSpec*>& seen);

void collectShape(const Shape& shape, std::vector<const ObjectSpec*>& order,
                  std::set<const ObjectSpec*>& seen) {
  if (shape.kind == Shape::Kind::Object) collect(*shape.object(), order, seen);
  if (shape.or_object) collect(*shape.or_object(), order, seen);
  if (shape.item) collectShape(*shape.item, order, seen);
}

void collect(const ObjectSpec& spec, std::vector<const ObjectSpec*>& order,
             std::set<const ObjectSpec*>& seen) {
  if (!seen.insert(&spec).second) return;
  order.push_back(&spec);
  for (const FieldSpec& field : spec.fields) collectShape(field.shape, order, seen);
}

std::string anchor(const ObjectSpec& spec) {
  std::string out(spec.title);
  for (char& c : out)
    if (c == ' ') c = '-';
  return out;
}

std::string shapeMarkdown(const Shape& shape) {
  switch (shape.kind) {
    case Shape::Kind::Object:
      return fmt::format("[{}](#{})", shape.object()->title, anchor(*shape.object()));
    case Shape::Kind::List:
      return "list of " + shapeMarkdown(*shape.item);
    case Shape::Kind::Map:
      return "name → " + shapeMarkdown(*shape.item);
    case Shape::Kind::Choice:
      return fmt::format("`{}`", fmt::join(shape.choices, "`, `"));
    default:
      if (shape.or_object)
        return fmt::format("{}, or [{}](#{})", describeShape(shape), shape.or_object()->title,
                           anchor(*shape.or_object()));
      return describeShape(shape);
  }
}

std::string cell(std::string text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

void tableMarkdown(const ObjectSpec& spec, std::string& out) {
  out += fmt::format("\n### {}\n\n{}\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
                     spec.title, spec.doc);
  for (const FieldSpec& field : spec.fields) {
    std::string fallback = field.required               ? "**required**"
                           : field.default_json.empty() ? ""
                                                        : fmt::format("`{}`", field.default_json);
    out += fmt::format("| `{}` | {} | {} | {} |\n", field.key, cell(shapeMarkdown(field.shape)),
                       cell(fallback), cell(std::string(field.doc)));
  }
  for (const auto& keys : spec.exactly_one)
    out += fmt::format("\nExactly one of `{}`.\n", fmt::join(keys, "`, `"));
  for (const auto& [key, needed] : spec.needs)
    out += fmt::format("\n`{}` needs `{}`.\n", key, needed);
}

}  // namespace

std::string schemaJson() { return jsonText(SchemaWriter().run(), kIndent) + "\n"; }

std::string referenceMarkdown() {
  std::vector<const ObjectSpec*> order;
  std::set<const ObjectSpec*> seen;
  collect(*clusterSpec(), order, seen);
  collect(*nodeRowSpec(), order, seen);
  std::string out;
  for (const ObjectSpec* spec : order) tableMarkdown(*spec, out);
  return out;
}

}  // namespace muster::inventory
