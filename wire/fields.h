// SPDX-License-Identifier: Apache-2.0
// Field tables of messages: each type of the wire says its fields once, with key, member and
// limits, and its printer and its parser follow from that. Included by the files that hold tables.
//
//   template <>
//   inline constexpr auto kFields<Nic> = std::tuple(field("name", &Nic::name, kName),
//                                                   field("mac", &Nic::mac, kName).optional());
//
// A kind says how one value is printed and read; `optional` that it may be absent, `omitted` that
// it is not printed while it is what a new message has, `omittedIf` that a message does not print
// it but may have it, `onlyIf` whether a message has the field at all, which fields before it tell.
// What may be absent and is absent stays as in a new message. `checked` refuses what the kind lets
// pass.
#pragma once

#include "base/io/crypto.h"
#include "base/json_output.h"
#include "wire/json_reader.h"

#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>
#include <type_traits>

namespace muster::wire {

/// The fields of a type: specialized once for each.
template <class T>
inline constexpr auto kFields = nullptr;

template <class T>
nlohmann::json printFields(const T& message);
template <class T>
void readFields(JsonReader& reader, T& message);
/// By the table of another type, whose fields are members of T: an earlier form of T.
template <class Table, class T>
nlohmann::json printFieldsBy(const T& message);
template <class Table, class T>
void readFieldsBy(JsonReader& reader, T& message);

// ---- enums and their words

template <class E, std::size_t N>
using Words = std::array<std::pair<E, std::string_view>, N>;

template <class E, std::size_t N>
constexpr std::string_view wordOf(const Words<E, N>& words, E value) {
  for (const auto& [each, word] : words)
    if (each == value) return word;
  return "unknown";
}

template <class E, std::size_t N>
constexpr std::optional<E> valueOf(const Words<E, N>& words, std::string_view text) {
  for (const auto& [value, word] : words)
    if (word == text) return value;
  return std::nullopt;
}

// ---- kinds: print(value), read(reader, key, optional, value)

struct Text {
  std::size_t max_bytes;

  nlohmann::json print(const std::string& value) const { return value; }
  void read(JsonReader& reader, const char* key, bool optional, std::string& value) const {
    if (reader.field(key, optional)) value = reader.text(key, max_bytes);
  }
};

/// Bytes, as base64.
struct Bytes {
  std::size_t max_text_bytes;

  nlohmann::json print(const std::string& value) const { return io::toBase64(value); }
  void read(JsonReader& reader, const char* key, bool optional, std::string& value) const {
    auto bytes = io::fromBase64(reader.text(key, max_text_bytes, optional));
    if (!bytes) reader.wrong(key, "is not base64");
    value = bytes.value_or(std::string());
  }
};

/// A JSON object, as text.
struct ObjectText {
  std::size_t max_bytes;

  nlohmann::json print(const std::string& value) const { return value; }
  void read(JsonReader& reader, const char* key, bool optional, std::string& value) const {
    value = reader.text(key, max_bytes, optional);
    if (!parseObject(value, max_bytes, key)) reader.wrong(key, "must be a JSON object as text");
  }
};

struct Flag {
  nlohmann::json print(bool value) const { return value; }
  void read(JsonReader& reader, const char* key, bool optional, bool& value) const {
    if (reader.field(key, optional)) value = reader.flag(key, value);
  }
};

/// Any number; one that is not finite is printed as null.
struct Number {
  nlohmann::json print(double value) const {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
  }
  void read(JsonReader& reader, const char* key, bool, double& value) const {
    value = reader.number(key, value);
  }
};

/// A whole number that is not negative.
struct Whole {
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max();

  template <class I>
  nlohmann::json print(I value) const {
    return value;
  }
  template <class I>
  void read(JsonReader& reader, const char* key, bool optional, I& value) const {
    if (reader.field(key, optional)) value = static_cast<I>(reader.unsignedNumber(key, max));
  }
};

struct Seconds {
  std::uint64_t max;

  nlohmann::json print(std::chrono::seconds value) const { return value.count(); }
  void read(JsonReader& reader, const char* key, bool optional, std::chrono::seconds& value) const {
    if (reader.field(key, optional)) value = std::chrono::seconds(reader.unsignedNumber(key, max));
  }
};

/// A word of the list; another one is an error.
template <class E, std::size_t N>
struct Word {
  const Words<E, N>* words;
  std::size_t max_bytes;

  nlohmann::json print(E value) const { return wordOf(*words, value); }
  void read(JsonReader& reader, const char* key, bool optional, E& value) const {
    if (!reader.field(key, optional)) return;
    const auto text = reader.text(key, max_bytes);
    const auto known = valueOf(*words, text);
    if (!known) reader.wrong(key, "is not a known word: \"" + text + "\"");
    if (known) value = *known;
  }
};

/// A word of the list; one that only a newer sender knows leaves the value as it is.
template <class E, std::size_t N>
struct KnownWord {
  const Words<E, N>* words;
  std::size_t max_bytes;

  nlohmann::json print(E value) const { return wordOf(*words, value); }
  void read(JsonReader& reader, const char* key, bool optional, E& value) const {
    value = valueOf(*words, reader.text(key, max_bytes, optional)).value_or(value);
  }
};

/// Words of the list; those that only a newer sender knows are skipped.
template <class E, std::size_t N>
struct KnownWords {
  const Words<E, N>* words;
  std::size_t max_items, max_bytes;

  nlohmann::json print(const std::vector<E>& values) const {
    auto list = nlohmann::json::array();
    for (const E value : values) list.push_back(wordOf(*words, value));
    return list;
  }
  void read(JsonReader& reader, const char* key, bool optional, std::vector<E>& values) const {
    for (const auto& text : readTexts(reader, key, max_items, max_bytes, optional))
      if (const auto value = valueOf(*words, text)) values.push_back(*value);
  }
};

struct Texts {
  std::size_t max_items, max_bytes;

  nlohmann::json print(const std::vector<std::string>& value) const { return value; }
  void read(JsonReader& reader, const char* key, bool optional,
            std::vector<std::string>& value) const {
    value = readTexts(reader, key, max_items, max_bytes, optional);
  }
};

struct TextMap {
  std::size_t max_items;
  std::size_t max_bytes = kMaxMapTextBytes;

  nlohmann::json print(const std::map<std::string, std::string>& value) const { return value; }
  void read(JsonReader& reader, const char* key, bool optional,
            std::map<std::string, std::string>& value) const {
    value = readTextMap(reader, key, max_items, optional, max_bytes);
  }
};

/// Numbers by name; one that is not finite travels as null and is NaN again on the other side.
struct NumberMap {
  std::size_t max_items;

  nlohmann::json print(const std::map<std::string, double>& value) const {
    auto out = nlohmann::json::object();
    for (const auto& [name, number] : value) out[name] = Number().print(number);
    return out;
  }
  void read(JsonReader& reader, const char* key, bool optional,
            std::map<std::string, double>& value) const {
    for (const auto& [name, number] : reader.object(key, max_items, optional).items()) {
      if (number.is_number())
        value[name] = number.template get<double>();
      else if (number.is_null())
        value[name] = std::numeric_limits<double>::quiet_NaN();
      else
        reader.wrong(std::string(key) + "." + name, "must be a number");
    }
  }
};

/// Messages by the table of another type.
template <class Table>
struct ItemsBy {
  std::size_t max_items;

  template <class T>
  nlohmann::json print(const std::vector<T>& items) const {
    auto list = nlohmann::json::array();
    for (const T& item : items) list.push_back(printFieldsBy<Table>(item));
    return list;
  }
  template <class T>
  void read(JsonReader& reader, const char* key, bool optional, std::vector<T>& items) const {
    std::size_t index = 0;
    const auto& list = reader.array(key, max_items, optional);
    items.reserve(list.size());
    for (const auto& entry : list) {
      JsonReader inner(entry, reader.path() + "." + key + "[" + std::to_string(index++) + "]");
      readFieldsBy<Table>(inner, items.emplace_back());
      if (auto read = inner.finish(); !read) {
        reader.take(read.error());
        items.clear();
        return;
      }
    }
  }
};

/// Messages that have a table of their own.
struct Items {
  std::size_t max_items;

  template <class T>
  nlohmann::json print(const std::vector<T>& items) const {
    return ItemsBy<T>{max_items}.print(items);
  }
  template <class T>
  void read(JsonReader& reader, const char* key, bool optional, std::vector<T>& items) const {
    ItemsBy<T>{max_items}.read(reader, key, optional, items);
  }
};

/// One message that has a table of its own.
struct Object {
  template <class T>
  nlohmann::json print(const T& message) const {
    return printFields(message);
  }
  template <class T>
  void read(JsonReader& reader, const char* key, bool optional, T& message) const {
    const auto* value = reader.field(key, optional);
    if (!value) return;
    JsonReader inner(*value, reader.path() + "." + key);
    readFields(inner, message);
    if (auto read = inner.finish(); !read) reader.take(read.error());
  }
};

/// A field whose key was another one: that one is read too, of a sender that is older.
template <class Kind>
struct Renamed {
  Kind kind;
  const char* former_key;

  template <class V>
  nlohmann::json print(const V& value) const {
    return kind.print(value);
  }
  template <class V>
  void read(JsonReader& reader, const char* key, bool optional, V& value) const {
    kind.read(reader, reader.field(key, true) ? key : former_key, optional, value);
  }
};
template <class Kind>
Renamed(Kind, const char*) -> Renamed<Kind>;

/// A value that may not be there.
template <class Kind>
struct Maybe {
  Kind kind;

  template <class T>
  nlohmann::json print(const std::optional<T>& value) const {
    return kind.print(*value);
  }
  template <class T>
  void read(JsonReader& reader, const char* key, bool, std::optional<T>& value) const {
    if (reader.field(key, true)) kind.read(reader, key, false, value.emplace());
  }
};
template <class Kind>
Maybe(Kind) -> Maybe<Kind>;

// ---- fields

struct Always {
  template <class T>
  constexpr bool operator()(const T&) const {
    return true;
  }
};
struct Unchecked {
  template <class V>
  constexpr std::string_view operator()(const V&) const {
    return {};
  }
};

/// Which messages do not print a field that they may have: none; those whose value is as in a new
/// one; those that fit a condition.
struct OmitsNone {
  template <class T, class Get>
  constexpr bool operator()(const T&, const Get&) const {
    return false;
  }
};
struct OmitsNew {
  template <class T, class Get>
  bool operator()(const T& message, const Get& get) const {
    static const T kNew{};
    return std::invoke(get, message) == std::invoke(get, kNew);
  }
};
template <class P>
struct OmitsWhere {
  P condition;

  template <class T, class Get>
  constexpr bool operator()(const T& message, const Get&) const {
    return condition(message);
  }
};

/// `Get`: a pointer to a member, or what gives a reference to the value.
template <class Get, class Kind, class When = Always, class Check = Unchecked,
          class Omits = OmitsNone>
struct Field {
  const char* key;
  Get get;
  Kind kind;
  bool may_lack = false;
  When when = {};
  Check check = {};
  Omits omits = {};

  constexpr Field optional() const {
    Field copy = *this;
    copy.may_lack = true;
    return copy;
  }
  constexpr auto omitted() const {
    return Field<Get, Kind, When, Check, OmitsNew>{key, get, kind, true, when, check};
  }
  template <class P>
  constexpr auto omittedIf(P condition) const {
    return Field<Get, Kind, When, Check, OmitsWhere<P>>{key,  get,   kind,       true,
                                                        when, check, {condition}};
  }
  template <class P>
  constexpr auto onlyIf(P condition) const {
    return Field<Get, Kind, P, Check, Omits>{key, get, kind, may_lack, condition, check, omits};
  }
  /// `refuses` says what is wrong with a value, or nothing.
  template <class P>
  constexpr auto checked(P refuses) const {
    return Field<Get, Kind, When, P, Omits>{key, get, kind, may_lack, when, refuses, omits};
  }

  template <class T>
  void print(const T& message, nlohmann::json& out) const {
    if (when(message) && !omits(message, get)) out[key] = kind.print(std::invoke(get, message));
  }
  template <class T>
  void read(JsonReader& reader, T& message) const {
    if (!when(message)) return;
    auto& value = std::invoke(get, message);
    kind.read(reader, key, may_lack, value);
    if (const std::string_view why = check(value); !why.empty())
      reader.wrong(key, std::string(why));
  }
};

template <class Get, class Kind>
constexpr Field<Get, Kind> field(const char* key, Get get, Kind kind) {
  return {key, get, kind};
}

/// For `checked`.
inline constexpr auto kNotEmpty = [](const auto& value) -> std::string_view {
  return value.empty() ? "is empty" : "";
};

// ---- messages

template <class Table, class T>
nlohmann::json printFieldsBy(const T& message) {
  auto out = nlohmann::json::object();
  std::apply([&](const auto&... fields) { (fields.print(message, out), ...); }, kFields<Table>);
  return out;
}

template <class Table, class T>
void readFieldsBy(JsonReader& reader, T& message) {
  std::apply([&](const auto&... fields) { (fields.read(reader, message), ...); }, kFields<Table>);
}

template <class T>
nlohmann::json printFields(const T& message) {
  return printFieldsBy<T>(message);
}

template <class T>
void readFields(JsonReader& reader, T& message) {
  readFieldsBy<T>(reader, message);
}

/// Text from the outside may hold bytes that are no UTF-8; they travel as replacement characters.
template <class T>
std::string printMessage(const T& message) {
  return jsonText(printFields(message));
}

/// `what`: for people; `path`: the first part of the path to what is wrong.
/// Errors: Corrupt, InvalidInput
template <class T>
Result<T> parseMessage(std::string_view text, std::size_t max_bytes, std::string_view what,
                       const char* path) {
  TRY(object, parseObject(text, max_bytes, what));
  JsonReader reader(object, path);
  T message;
  readFields(reader, message);
  TRY_OK(reader.finish());
  return message;
}

}  // namespace muster::wire
