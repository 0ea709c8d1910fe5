// SPDX-License-Identifier: Apache-2.0
#include "inventory/schema/spec.h"

#include "inventory/parse/suggest.h"
#include "inventory/schema/renamed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <regex>
#include <string>

namespace muster::inventory {

namespace {

/// Patterns are compiled when they are first asked for, once a thread: that takes much longer than
/// to match a text.
bool matches(std::string_view text, std::string_view pattern) {
  static thread_local std::map<std::string, std::regex, std::less<>> compiled;
  auto known = compiled.find(pattern);
  if (known == compiled.end())
    known = compiled
                .emplace(std::string(pattern),
                         std::regex(pattern.begin(), pattern.end(), std::regex::ECMAScript))
                .first;
  return std::regex_match(text.begin(), text.end(), known->second);
}

}  // namespace

Result<void> checkFormat(std::string_view text, const TextFormat& format) {
  if (format.check) return format.check(text);
  if (format.pattern.empty()) return {};
  if (text.size() > kMaxPatternTextBytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("at most {} characters", kMaxPatternTextBytes));
  if (matches(text, format.pattern)) return {};
  return fail(ErrorCode::InvalidInput, fmt::format("for example {}", format.example));
}

Shape text(const TextFormat& format) { return {.kind = Shape::Kind::Text, .format = &format}; }
Shape integer(long long minimum, long long maximum) {
  return {.kind = Shape::Kind::Integer, .minimum = minimum, .maximum = maximum};
}
Shape boolean() { return {.kind = Shape::Kind::Boolean}; }
Shape choice(std::vector<std::string_view> choices) {
  return {.kind = Shape::Kind::Choice, .choices = std::move(choices)};
}
Shape listOf(Shape item, std::size_t min_items) {
  return {.kind = Shape::Kind::List,
          .item = std::make_shared<const Shape>(std::move(item)),
          .min_items = min_items};
}
Shape mapOf(Shape item, const TextFormat& key, std::vector<std::string_view> required_keys) {
  return {.kind = Shape::Kind::Map,
          .format = &key,
          .item = std::make_shared<const Shape>(std::move(item)),
          .required_keys = std::move(required_keys)};
}
Shape object(const ObjectSpec* (*spec)()) { return {.kind = Shape::Kind::Object, .object = spec}; }
Shape textOrObject(const TextFormat& format, const ObjectSpec* (*spec)()) {
  return {.kind = Shape::Kind::Text, .format = &format, .or_object = spec};
}
Shape reference(std::string_view section) {
  return {.kind = Shape::Kind::Text, .refers_to = section};
}

Shape referenceOrList(std::string_view section) {
  return {.kind = Shape::Kind::Text, .or_list = true, .refers_to = section};
}

const FieldSpec* ObjectSpec::find(std::string_view key) const {
  for (const FieldSpec& field : fields)
    if (field.key == key) return &field;
  return nullptr;
}

std::string describeShape(const Shape& shape) {
  switch (shape.kind) {
    case Shape::Kind::Text:
      if (!shape.refers_to.empty())
        return fmt::format("a name of `{}`{}", shape.refers_to,
                           shape.or_list ? ", or a list of them" : "");
      return shape.format ? std::string(shape.format->title) : "text";
    case Shape::Kind::Integer:
      return fmt::format("a whole number from {} to {}", shape.minimum, shape.maximum);
    case Shape::Kind::Boolean:
      return "true or false";
    case Shape::Kind::Choice:
      return fmt::format("one of {}", fmt::join(shape.choices, ", "));
    case Shape::Kind::List:
      return fmt::format("a list; each: {}", describeShape(*shape.item));
    case Shape::Kind::Map:
      return fmt::format("a mapping; each value: {}", describeShape(*shape.item));
    case Shape::Kind::Object:
      return fmt::format("a mapping ({})", shape.object()->title);
  }
  return {};
}

namespace {

/// For quoting in a message: what people paste by mistake into URLs and key lists stays out of
/// logs.
std::string hideSecrets(std::string_view text) {
  if (text.find("PRIVATE KEY") != std::string_view::npos) return "…PRIVATE KEY…";
  auto scheme = text.find("://");
  auto user_end = text.rfind('@');
  if (scheme == std::string_view::npos || user_end == std::string_view::npos || user_end < scheme)
    return shorten(text);
  return fmt::format("{}…{}", text.substr(0, scheme + 3), shorten(text.substr(user_end)));
}

void wrongType(const Value& value, const Shape& shape, Reader& reader,
               std::string suggestion = {}) {
  if (value.kind == Value::Kind::Null) {
    reader.error(value, fmt::format("no value; expected {}", describeShape(shape)),
                 suggestion.empty() ? "write a value, or remove the key" : std::move(suggestion));
  } else {
    reader.error(value,
                 fmt::format("expected {}, found {}", describeShape(shape), value.describe()),
                 std::move(suggestion));
  }
}

std::vector<std::string_view> keysOf(const ObjectSpec& spec) {
  std::vector<std::string_view> keys;
  for (const FieldSpec& field : spec.fields) keys.push_back(field.key);
  return keys;
}

/// The key of the table that a key of the file means: itself, or its new name.
std::string_view presentName(std::string_view key, const ObjectSpec& spec) {
  const auto renamed = newKeyOf(spec.name, key);
  return renamed.empty() ? key : renamed;
}

bool isPresent(const Value& value, std::string_view key, const ObjectSpec& spec) {
  return value.find(key) ||
         std::any_of(value.entries.begin(), value.entries.end(),
                     [&](const auto& entry) { return presentName(entry.first.text, spec) == key; });
}

void checkPresence(const Value& value, const ObjectSpec& spec, Reader& reader) {
  for (const FieldSpec& field : spec.fields)
    if (field.required && !isPresent(value, field.key, spec))
      reader.error(value, fmt::format("{}: the key \"{}\" is missing", spec.title, field.key),
                   fmt::format("add {}: {}", field.key, describeShape(field.shape)));
  for (const auto& keys : spec.exactly_one) {
    std::vector<const Value*> chosen;
    for (std::string_view key : keys)
      if (const Value* found = value.findKey(key)) chosen.push_back(found);
    if (chosen.empty())
      reader.error(value,
                   fmt::format("{}: one of {} is missing", spec.title, fmt::join(keys, ", ")));
    if (chosen.size() > 1)
      reader.error(
          *chosen[1],
          fmt::format("{}: only one of {} can be given", spec.title, fmt::join(keys, ", ")),
          "remove the others");
  }
  for (const auto& [key, needed] : spec.needs)
    if (const Value* found = value.findKey(key); found && !value.find(needed))
      reader.error(*found, fmt::format("{}: \"{}\" needs \"{}\"", spec.title, key, needed),
                   fmt::format("add {}", needed));
}

}  // namespace

bool readObject(void* object, const Value& value, const ObjectSpec& spec, Reader& reader) {
  std::size_t errors_before = reader.errors;
  if (value.kind != Value::Kind::Map) {
    if (spec.secret)
      reader.error(value,
                   fmt::format("{}: a secret never stands in the inventory itself", spec.title),
                   "write {file: secrets/NAME}, {env: NAME} or {command: …}");
    else
      reader.error(value,
                   fmt::format("{}: expected a mapping, found {}", spec.title, value.describe()),
                   fmt::format("write {{{}: …}}", spec.fields.front().key));
    return false;
  }
  for (const auto& [key, entry] : value.entries) {
    const auto name = presentName(key.text, spec);
    const FieldSpec* field = spec.find(name);
    const auto new_value = field && entry.kind == Value::Kind::Scalar
                               ? newValueOf(spec.name, name, entry.text)
                               : std::string_view();
    if (field && name != key.text)
      reader.error(
          key, fmt::format("{}: the key \"{}\" is now called \"{}\"", spec.title, key.text, name),
          fmt::format("write {}: …", name));
    if (!new_value.empty())
      reader.error(entry,
                   fmt::format("{}: the value \"{}\" of {} is now called \"{}\"", spec.title,
                               entry.text, name, new_value),
                   fmt::format("write {}: {}", name, new_value));
    else if (field)
      field->read(object, entry, reader);
    else if (spec.secret)
      reader.error(key, fmt::format("{}: unknown key", spec.title),
                   fmt::format("known: {}", fmt::join(keysOf(spec), ", ")));
    else
      reader.error(key, fmt::format("{}: unknown key \"{}\"", spec.title, shorten(key.text)),
                   didYouMean(key.text, keysOf(spec)));
  }
  checkPresence(value, spec, reader);
  if (reader.errors == errors_before && spec.check) spec.check(object, value, reader);
  return reader.errors == errors_before;
}

std::string Printer::path(const std::filesystem::path& value) const {
  if (value.empty() || folder.empty()) return value.string();
  std::string inside = value.lexically_relative(folder).string();
  return inside.empty() || inside.starts_with("..") ? value.string() : inside;
}

nlohmann::json printObject(const void* object, const ObjectSpec& spec, const Printer& printer) {
  auto out = nlohmann::json::object();
  for (const FieldSpec& field : spec.fields) {
    if (!field.print) continue;
    auto value = field.print(object, printer);
    if (value.is_null() || (!field.always && value == field.unset)) continue;
    out[std::string(field.key)] = std::move(value);
  }
  if (spec.derive) spec.derive(object, out, printer);
  return out;
}

std::optional<std::string> readText(const Value& value, const Shape& shape, Reader& reader) {
  if (value.kind != Value::Kind::Scalar) {
    bool single = value.kind == Value::Kind::List && value.items.size() == 1;
    wrongType(value, shape, reader, single ? "remove the brackets" : "");
    return std::nullopt;
  }
  const bool is_number =
      looksLikeNumber(value.text) && !(shape.format && shape.format->numbers_too);
  if (value.style == Value::Style::Plain && (is_number || looksLikeBoolean(value.text))) {
    wrongType(value, shape, reader, fmt::format("put it in quotes: \"{}\"", shorten(value.text)));
    return std::nullopt;
  }
  if (value.text.empty()) {
    reader.error(value, fmt::format("empty text; expected {}", describeShape(shape)),
                 "write a value, or remove the key");
    return std::nullopt;
  }
  if (value.text.size() > kMaxTextBytes) {
    reader.error(
        value,
        fmt::format("the text has {} bytes, the limit is {}", value.text.size(), kMaxTextBytes),
        "shorten it");
    return std::nullopt;
  }
  if (shape.format) {
    if (auto good = checkFormat(value.text, *shape.format); !good) {
      reader.error(value,
                   fmt::format("\"{}\" is not {}", hideSecrets(value.text), shape.format->title),
                   good.error().text());
      return std::nullopt;
    }
  }
  if (!shape.refers_to.empty())
    reader.references.push_back({shape.refers_to, value.text, reader.at(value)});
  return value.text;
}

std::optional<long long> readInteger(const Value& value, const Shape& shape, Reader& reader) {
  if (value.kind != Value::Kind::Scalar || value.style == Value::Style::Quoted) {
    bool quoted = value.kind == Value::Kind::Scalar && looksLikeNumber(value.text);
    wrongType(value, shape, reader, quoted ? "remove the quotes" : "");
    return std::nullopt;
  }
  std::string_view digits = value.text;
  bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  int base = digits.starts_with("0x") ? 16 : digits.starts_with("0o") ? 8 : 10;
  if (base != 10) digits.remove_prefix(2);
  if (base == 10 && digits.size() > 1 && digits[0] == '0') {
    wrongType(value, shape, reader, "remove the leading zeros (0o… is octal)");
    return std::nullopt;
  }
  unsigned long long magnitude = 0;
  auto [end, problem] =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (problem == std::errc::invalid_argument || end != digits.data() + digits.size() ||
      digits.empty()) {
    wrongType(value, shape, reader);
    return std::nullopt;
  }
  constexpr unsigned long long kLargest = 1ull << 62;
  bool fits = problem == std::errc() && magnitude < kLargest;
  long long number = fits ? static_cast<long long>(magnitude) * (negative ? -1 : 1) : 0;
  if (!fits || number < shape.minimum || number > shape.maximum) {
    reader.error(value, fmt::format("{} is out of range", shorten(value.text)),
                 fmt::format("write {}", describeShape(shape)));
    return std::nullopt;
  }
  return number;
}

std::optional<bool> readBoolean(const Value& value, Reader& reader) {
  if (value.kind == Value::Kind::Scalar && value.style != Value::Style::Quoted &&
      looksLikeBoolean(value.text))
    return value.text[0] == 't' || value.text[0] == 'T';
  wrongType(value, boolean(), reader,
            value.kind == Value::Kind::Scalar ? "write true or false, without quotes" : "");
  return std::nullopt;
}

std::optional<std::size_t> readChoice(const Value& value, const Shape& shape, Reader& reader) {
  if (value.kind != Value::Kind::Scalar) {
    wrongType(value, shape, reader);
    return std::nullopt;
  }
  auto found = std::find(shape.choices.begin(), shape.choices.end(), value.text);
  if (found != shape.choices.end()) return static_cast<std::size_t>(found - shape.choices.begin());
  wrongType(value, shape, reader, didYouMean(value.text, shape.choices));
  return std::nullopt;
}

bool expectList(const Value& value, const Shape& shape, Reader& reader) {
  if (value.kind == Value::Kind::List) {
    if (value.items.size() >= shape.min_items) return true;
    reader.error(value, fmt::format("the list needs at least {} item(s)", shape.min_items),
                 fmt::format("write {}", describeShape(*shape.item)));
    return false;
  }
  wrongType(value, shape, reader,
            value.kind == Value::Kind::Scalar ? fmt::format("write [{}]", shorten(value.text))
                                              : "write [] for none");
  return false;
}

bool expectMap(const Value& value, const Shape& shape, Reader& reader) {
  if (value.kind != Value::Kind::Map) {
    wrongType(value, shape, reader,
              value.kind == Value::Kind::Null ? "write {} for none" : "write NAME: {…}");
    return false;
  }
  for (std::string_view key : shape.required_keys)
    if (!value.find(key))
      reader.error(value, fmt::format("\"{}\" is missing", key), fmt::format("add {}: {{…}}", key));
  for (const auto& [key, entry] : value.entries) {
    if (auto good = checkFormat(key.text, *shape.format); !good)
      reader.error(key, fmt::format("\"{}\" is not {}", shorten(key.text), shape.format->title),
                   good.error().text());
  }
  return true;
}

}  // namespace muster::inventory
