// SPDX-License-Identifier: Apache-2.0
// Ties tables to C++ structs: Table<T> fills an ObjectSpec from member pointers, readInto turns a
// value into a member and printed a member into JSON. Included by the files that hold tables only.
#pragma once

#include "base/ids.h"
#include "inventory/model/section.h"
#include "inventory/parse/paths.h"
#include "inventory/schema/spec.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace muster::inventory {

template <class T>
concept ParsesItself = requires(std::string_view text) { T::parse(text); };

// Every overload leaves `out` as it is when the value does not fit.
inline void readInto(std::string& out, const Value& value, const Shape& shape, Reader& reader) {
  if (auto read = readText(value, shape, reader)) out = std::move(*read);
}
inline void readInto(std::filesystem::path& out, const Value& value, const Shape& shape,
                     Reader& reader) {
  const auto read = readText(value, shape, reader);
  if (!read) return;
  if (auto path = namedPath(*read, value, reader)) out = std::move(*path);
}
inline void readInto(bool& out, const Value& value, const Shape&, Reader& reader) {
  if (auto read = readBoolean(value, reader)) out = *read;
}
inline void readInto(std::chrono::hours& out, const Value& value, const Shape& shape,
                     Reader& reader) {
  if (auto read = readInteger(value, shape, reader)) out = std::chrono::hours(*read);
}
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
void readInto(T& out, const Value& value, const Shape& shape, Reader& reader) {
  if (auto read = readInteger(value, shape, reader)) out = static_cast<T>(*read);
}
template <class T>
  requires std::is_enum_v<T>
void readInto(T& out, const Value& value, const Shape& shape, Reader& reader) {
  if (auto read = readChoice(value, shape, reader)) out = static_cast<T>(*read);
}
/// Addresses: types that parse themselves.
template <ParsesItself T>
void readInto(T& out, const Value& value, const Shape& shape, Reader& reader) {
  auto read = readText(value, shape, reader);
  if (!read) return;
  if (auto parsed = T::parse(*read))
    out = *parsed;
  else
    reader.error(value, parsed.error().text());
}
template <class T>
void readInto(std::optional<T>& out, const Value& value, const Shape& shape, Reader& reader) {
  std::size_t errors = reader.errors;
  T inner{};
  readInto(inner, value, shape, reader);
  if (reader.errors == errors) out = std::move(inner);
}
template <class T>
  requires(std::is_class_v<T> && !ParsesItself<T>)
void readInto(T& out, const Value& value, const Shape& shape, Reader& reader) {
  readObject(&out, value, *shape.object(), reader);
}
template <class T>
void readInto(std::map<std::string, T>& out, const Value& value, const Shape& shape,
              Reader& reader) {
  if (!expectMap(value, shape, reader)) return;
  for (const auto& [key, entry] : value.entries) {
    T& item = out[key.text];
    if constexpr (requires { item.name; }) item.name = key.text;
    readInto(item, entry, *shape.item, reader);
  }
}
/// A list, or a map of things with names: those come out ordered by name, so that the order of keys
/// means nothing. What is bad is left out, so that nothing is concluded from it.
template <class T>
void readInto(std::vector<T>& out, const Value& value, const Shape& shape, Reader& reader) {
  if (shape.kind == Shape::Kind::Map) {
    if constexpr (requires(T item) { item.name; }) {
      if (!expectMap(value, shape, reader)) return;
      std::map<std::string, T> named;
      for (const auto& [key, entry] : value.entries) {
        std::size_t errors = reader.errors;
        T item{};
        item.name = key.text;
        readInto(item, entry, *shape.item, reader);
        if (reader.errors == errors) named.emplace(key.text, std::move(item));
      }
      for (auto& [name, item] : named) out.push_back(std::move(item));
    }
    return;
  }
  if (!expectList(value, shape, reader)) return;
  for (const Value& entry : value.items) {
    std::size_t errors = reader.errors;
    T item{};
    readInto(item, entry, *shape.item, reader);
    if (reader.errors == errors) out.push_back(std::move(item));
  }
}

// What a header holds without its type (base/held.h) is read as what it holds.
template <class T>
void readInto(Held<T>& out, const Value& value, const Shape& shape, Reader& reader) {
  readInto(*out, value, shape, reader);
}
template <class T>
void readInto(HeldOptional<T>& out, const Value& value, const Shape& shape, Reader& reader) {
  std::size_t errors = reader.errors;
  T inner{};
  readInto(inner, value, shape, reader);
  if (reader.errors == errors) out = std::move(inner);
}
template <class T>
void readInto(Section<T>& out, const Value& value, const Shape& shape, Reader& reader) {
  readInto(out.map(), value, shape, reader);
}
template <class T>
void readInto(Parts<T>& out, const Value& value, const Shape& shape, Reader& reader) {
  readInto(out.list(), value, shape, reader);
}

// ---- printing: the same members, the other way round. Null: there is nothing.

inline nlohmann::json printed(const std::string& member, const Shape&, const Printer&) {
  return member;
}
inline nlohmann::json printed(const std::filesystem::path& member, const Shape&,
                              const Printer& printer) {
  return printer.path(member);
}
inline nlohmann::json printed(const std::chrono::hours& member, const Shape&, const Printer&) {
  return member.count();
}
template <class T>
  requires std::is_integral_v<T>
nlohmann::json printed(const T& member, const Shape&, const Printer&) {
  return member;
}
/// Its word in the table: the one list of them.
template <class T>
  requires std::is_enum_v<T>
nlohmann::json printed(const T& member, const Shape& shape, const Printer&) {
  return shape.choices.at(static_cast<std::size_t>(member));
}
template <ParsesItself T>
nlohmann::json printed(const T& member, const Shape&, const Printer&) {
  return member.str();
}
template <class T>
nlohmann::json printed(const std::optional<T>& member, const Shape& shape, const Printer& printer);
template <class T>
nlohmann::json printed(const std::map<std::string, T>& member, const Shape& shape,
                       const Printer& printer);
template <class T>
nlohmann::json printed(const std::vector<T>& member, const Shape& shape, const Printer& printer);
template <class T>
  requires(std::is_class_v<T> && !ParsesItself<T>)
nlohmann::json printed(const T& member, const Shape& shape, const Printer& printer) {
  return printObject(&member, *shape.object(), printer);
}
template <class T>
nlohmann::json printed(const std::optional<T>& member, const Shape& shape, const Printer& printer) {
  return member ? printed(*member, shape, printer) : nlohmann::json();
}
template <class T>
nlohmann::json printed(const std::map<std::string, T>& member, const Shape& shape,
                       const Printer& printer) {
  auto out = nlohmann::json::object();
  for (const auto& [name, item] : member) out[name] = printed(item, *shape.item, printer);
  return out;
}
/// A list, or a map of things with names.
template <class T>
nlohmann::json printed(const std::vector<T>& member, const Shape& shape, const Printer& printer) {
  if constexpr (requires(T item) { item.name; })
    if (shape.kind == Shape::Kind::Map) {
      auto out = nlohmann::json::object();
      for (const T& item : member) out[item.name] = printed(item, *shape.item, printer);
      return out;
    }
  auto out = nlohmann::json::array();
  for (const T& item : member)
    out.push_back(shape.item ? printed(item, *shape.item, printer)
                             : printed(item, shape, printer));  // a hostlist, expanded
  return out;
}
template <class T>
nlohmann::json printed(const Held<T>& member, const Shape& shape, const Printer& printer) {
  return printed(*member, shape, printer);
}
template <class T>
nlohmann::json printed(const HeldOptional<T>& member, const Shape& shape, const Printer& printer) {
  return member ? printed(*member, shape, printer) : nlohmann::json();
}
template <class T>
nlohmann::json printed(const Section<T>& member, const Shape& shape, const Printer& printer) {
  return printed(member.map(), shape, printer);
}
template <class T>
nlohmann::json printed(const Parts<T>& member, const Shape& shape, const Printer& printer) {
  return printed(member.list(), shape, printer);
}

/// The default, as a JSON literal, of a member that was never read: the struct is the one place
/// that says it.
template <class M>
std::string defaultOf(const M& member, const Shape& shape) {
  if constexpr (std::is_same_v<M, bool>) return member ? "true" : "false";
  if constexpr (std::is_enum_v<M>)
    return nlohmann::json(shape.choices.at(static_cast<std::size_t>(member))).dump();
  if constexpr (std::is_integral_v<M> && !std::is_same_v<M, bool>)
    return member < shape.minimum ? "" : std::to_string(member);
  if constexpr (std::is_same_v<M, std::chrono::hours>) return std::to_string(member.count());
  if constexpr (std::is_same_v<M, std::string>)
    return member.empty() ? "" : nlohmann::json(member).dump();
  return "";
}

/// `const ObjectSpec* fooSpec()` from `ObjectSpec make_fooSpec()`: built once, at its first use.
#define MUSTER_SPEC(name)                         \
  const ObjectSpec* name() {                      \
    static const ObjectSpec spec = make_##name(); \
    return &spec;                                 \
  }

/// The value of a key, or the map itself: a place for a message.
inline const Value& place(const Value& map, std::string_view key) {
  const Value* found = map.find(key);
  return found ? *found : map;
}

/// T is what the table reads into; P what is printed, where that is a part of it.
template <class T, class P = T>
class Table {
 public:
  Table(std::string_view name, std::string_view title, std::string_view doc) {
    spec_.name = name;
    spec_.title = title;
    spec_.doc = doc;
  }

  template <class M, class Base>
  Table& required(std::string_view key, M Base::* member, Shape shape, std::string_view doc) {
    return bind(key, true, member, std::move(shape), doc);
  }
  template <class M, class Base>
  Table& optional(std::string_view key, M Base::* member, Shape shape, std::string_view doc) {
    return bind(key, false, member, std::move(shape), doc);
  }
  /// A key that fills more or less than one member.
  Table& custom(std::string_view key, bool required, Shape shape, std::string_view doc,
                std::function<void(T&, const Value&, const Shape&, Reader&)> read) {
    auto bound = [read = std::move(read), shape](void* object, const Value& value, Reader& reader) {
      read(*static_cast<T*>(object), value, shape, reader);
    };
    spec_.fields.push_back({key, required, std::move(shape), doc, "", std::move(bound)});
    spec_.fields.back().always = required;
    return *this;
  }

  // What the last key prints, where it does not follow from the member it fills.
  Table& prints(std::function<nlohmann::json(const P&, const Printer&)> print) {
    FieldSpec& field = spec_.fields.back();
    field.print = [print = std::move(print)](const void* object, const Printer& printer) {
      return print(*static_cast<const P*>(object), printer);
    };
    const P fresh{};
    field.unset = field.print(&fresh, {});
    return *this;
  }
  template <class M, class Base>
  Table& prints(M Base::* member) {
    return prints(
        [member, shape = spec_.fields.back().shape](const P& object, const Printer& printer) {
          return printed(object.*member, shape, printer);
        });
  }
  /// These keys are printed with their defaults too, as they have always been; none named: all.
  Table& printsAlways(std::initializer_list<std::string_view> keys = {}) {
    for (FieldSpec& field : spec_.fields) field.always = field.always || keys.size() == 0;
    for (const std::string_view key : keys) {
      if (!spec_.find(key)) std::abort();  // a name that the table does not have
      for (FieldSpec& field : spec_.fields) field.always = field.always || field.key == key;
    }
    return *this;
  }
  /// What is printed beside the keys.
  Table& derives(void (*derive)(const P&, nlohmann::json& out, const Printer&)) {
    spec_.derive = [derive](const void* object, nlohmann::json& out, const Printer& printer) {
      derive(*static_cast<const P*>(object), out, printer);
    };
    return *this;
  }
  /// May be said several times, of different keys.
  Table& exactlyOne(std::vector<std::string_view> keys) {
    spec_.exactly_one.push_back(std::move(keys));
    return *this;
  }
  Table& needs(std::string_view key, std::string_view needed) {
    spec_.needs.emplace_back(key, needed);
    return *this;
  }
  Table& secret() {
    spec_.secret = true;
    return *this;
  }
  Table& check(void (*rule)(T&, const Value&, Reader&)) {
    spec_.check = [rule](void* object, const Value& map, Reader& reader) {
      rule(*static_cast<T*>(object), map, reader);
    };
    return *this;
  }
  /// Overrides the default that is shown, where it is not the struct's.
  Table& defaultIs(std::string json) {
    spec_.fields.back().default_json = std::move(json);
    return *this;
  }
  ObjectSpec spec() { return std::move(spec_); }

 private:
  template <class M, class Base>
  Table& bind(std::string_view key, bool required, M Base::* member, Shape shape,
              std::string_view doc) {
    auto bound = [member, shape](void* object, const Value& value, Reader& reader) {
      readInto(static_cast<T*>(object)->*member, value, shape, reader);
    };
    std::string shown = required ? "" : defaultOf(T{}.*member, shape);
    spec_.fields.push_back(
        {key, required, std::move(shape), doc, std::move(shown), std::move(bound)});
    spec_.fields.back().always = required;
    return prints(member);
  }

  ObjectSpec spec_;
};

}  // namespace muster::inventory
