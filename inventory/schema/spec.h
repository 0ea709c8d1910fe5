// SPDX-License-Identifier: Apache-2.0
// The declarative tables: every key that an inventory may hold, with its type, bounds, meaning and
// destination.
//
// One table (ObjectSpec) a kind of object. Four things are made from the same tables and so cannot
// disagree: the reader (readObject), the printer (printObject), the JSON Schema (schemaJson) and
// the operator's reference (referenceMarkdown). The tables are in tables.cc and tables_*.cc.
#pragma once

#include "base/diagnostic.h"
#include "inventory/parse/document.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster::inventory {

inline constexpr std::size_t kMaxTextBytes = 4096;
inline constexpr std::size_t kMaxPatternTextBytes = 256;  ///< std::regex recurses once a character

/// A kind of text.
struct TextFormat {
  std::string_view title;    ///< "a MAC address"
  std::string_view pattern;  ///< ECMA 262, anchored; empty: any text. Enforced here and by editors
  std::string_view example;
  /// Set: decides instead of the pattern (which then serves editors only), where a regular
  /// expression is too slow or says too little. The error's text is the suggestion.
  Result<void> (*check)(std::string_view) = nullptr;
  bool numbers_too = false;  ///< a plain number is such a text as well, and needs no quotes
};

struct ObjectSpec;

struct Shape {
  enum class Kind { Text, Integer, Boolean, Choice, List, Map, Object };
  Kind kind = Kind::Text;
  const TextFormat* format = nullptr;       ///< of Text, and of the keys of Map
  long long minimum = 0, maximum = 0;       ///< of Integer, both included
  std::vector<std::string_view> choices;    ///< in the order of the C++ enum
  std::shared_ptr<const Shape> item;        ///< of List and Map
  const ObjectSpec* (*object)() = nullptr;  ///< of Object
  const ObjectSpec* (*or_object)() =
      nullptr;                 ///< of Text: a mapping that says more may stand there
  bool or_list = false;        ///< of Text: a list of such texts may stand there
  std::string_view refers_to;  ///< Text: a key of this section
  std::vector<std::string_view> required_keys;  ///< of Map
  std::size_t min_items = 0;                    ///< of List
};

Shape text(const TextFormat& format);
Shape integer(long long minimum, long long maximum);
Shape boolean();
Shape choice(std::vector<std::string_view> choices);
Shape listOf(Shape item, std::size_t min_items = 0);
Shape mapOf(Shape item, const TextFormat& key, std::vector<std::string_view> required_keys = {});
Shape object(const ObjectSpec* (*spec)());
/// The text, or a mapping one of whose keys is that text.
Shape textOrObject(const TextFormat& format, const ObjectSpec* (*spec)());
Shape reference(std::string_view section);
/// One name, or a list of them.
Shape referenceOrList(std::string_view section);

/// What a reader carries along: the place, the problems, and what is checked when everything is
/// read.
class Reader {
 public:
  Reader(std::string file, std::filesystem::path folder, Diagnostics& diagnostics)
      : file(std::move(file)), folder(std::move(folder)), diagnostics(diagnostics) {}

  struct Reference {
    std::string_view section;
    std::string name;
    SourceRef where;
  };

  SourceRef at(const Value& value) const {
    return {value.file == 0 ? file : included_.at(value.file - 1u), value.line, value.column};
  }
  /// The number of a file that is included, for Value::file.
  std::uint16_t addFile(std::string shown) {
    included_.push_back(std::move(shown));
    return static_cast<std::uint16_t>(included_.size());
  }
  void error(const Value& value, std::string what, std::string suggestion = {}) {
    ++errors;
    diagnostics.error(at(value), std::move(what), std::move(suggestion));
  }
  void warning(const Value& value, std::string what, std::string suggestion = {}) {
    diagnostics.warning(at(value), std::move(what), std::move(suggestion));
  }
  /// A path of the inventory, from the inventory's folder; absolute.
  std::filesystem::path resolve(std::string_view path) const {
    return (folder / path).lexically_normal();
  }

  std::string file;              ///< as shown in messages; changes while a CSV is read
  std::filesystem::path folder;  ///< absolute
  Diagnostics& diagnostics;
  std::size_t errors = 0;
  bool sees_secrets = true;  ///< false: who reads uses none, and may not see them
  std::vector<Reference> references;

 private:
  std::vector<std::string> included_;
};

/// What a printer carries along.
struct Printer {
  std::filesystem::path folder;  ///< of the inventory; empty: paths are printed as they are

  /// As seen from the inventory's folder when inside it, so that a copy of the folder has the same
  /// digest.
  std::string path(const std::filesystem::path& value) const;
};

struct FieldSpec {
  std::string_view key;
  bool required = false;
  Shape shape;
  std::string_view doc;
  std::string default_json;  ///< JSON literal of the default; empty: none
  std::function<void(void* object, const Value& value, Reader& reader)> read;
  /// What the object holds under the key; null: nothing. Not set: the key is not printed, because
  /// another one holds what it brought.
  std::function<nlohmann::json(const void* object, const Printer& printer)> print = {};
  /// What a fresh object prints. It is left out unless `always`: what is not declared must not
  /// change the digest of inventories that never had it.
  nlohmann::json unset = nullptr;
  bool always = false;
};

struct ObjectSpec {
  std::string_view name;  ///< of the definition in the schema: "network"
  std::string_view title, doc;
  std::vector<FieldSpec> fields;
  bool secret = false;  ///< messages never quote what was written
  std::vector<std::vector<std::string_view>>
      exactly_one;  ///< exactly one of the keys of each group
  std::vector<std::pair<std::string_view, std::string_view>>
      needs;  ///< the first key needs the second
  std::function<void(void* object, const Value& map, Reader& reader)>
      check;  ///< rules between keys; only when each key was good
  /// Adds what is printed beside the keys: derived values.
  std::function<void(const void* object, nlohmann::json& out, const Printer& printer)> derive;

  const FieldSpec* find(std::string_view key) const;
};

/// Reads a map into the object that the table's fields are bound to. Answers whether it was good.
bool readObject(void* object, const Value& value, const ObjectSpec& spec, Reader& reader);

/// The canonical JSON of the object that the table's fields are bound to.
nlohmann::json printObject(const void* object, const ObjectSpec& spec, const Printer& printer);

/// Whether the text has the format; the error's text says what to do.
Result<void> checkFormat(std::string_view text, const TextFormat& format);

/// Primitive readers; nothing, and a diagnostic, when the value does not fit.
std::optional<std::string> readText(const Value& value, const Shape& shape, Reader& reader);
std::optional<long long> readInteger(const Value& value, const Shape& shape, Reader& reader);
std::optional<bool> readBoolean(const Value& value, Reader& reader);
std::optional<std::size_t> readChoice(const Value& value, const Shape& shape, Reader& reader);
bool expectList(const Value& value, const Shape& shape, Reader& reader);
bool expectMap(const Value& value, const Shape& shape, Reader& reader);

/// "a whole number from 1 to 64", "a list of text": for messages and the reference.
std::string describeShape(const Shape& shape);

/// The table of the whole file.
const ObjectSpec* clusterSpec();
const ObjectSpec* networkSpec();
const ObjectSpec* addressPoolSpec();
const ObjectSpec* nodeNetworkSpec();
const ObjectSpec* networkRouteSpec();
const ObjectSpec* fabricSpec();
const ObjectSpec* railSpec();
const ObjectSpec* poolSpec();
const ObjectSpec* approvalSpec();
const ObjectSpec* maintenanceSpec();
const ObjectSpec* monitorSpec();
const ObjectSpec* notificationSpec();
const ObjectSpec* fileSystemSpec();
const ObjectSpec* discoverySpec();
const ObjectSpec* secretSpec();
const ObjectSpec* hardwareRaidSpec();
const ObjectSpec* ramOsSpec();
const ObjectSpec* storageSetSpec();
const ObjectSpec* rootLayoutSpec();
const ObjectSpec* consoleSpec();
const ObjectSpec* ipmiSpec();
const ObjectSpec* pduSpec();
const ObjectSpec* bmcCertificateSpec();
const ObjectSpec* tpmSpec();
const ObjectSpec* nodeGroupSpec();
const ObjectSpec* nodeBmcSpec();
/// The columns of a CSV of nodes.
const ObjectSpec* nodeRowSpec();

}  // namespace muster::inventory
