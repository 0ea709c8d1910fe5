// SPDX-License-Identifier: Apache-2.0
// Document: an input file as a tree of values that know where they stand. yaml-cpp stays behind
// this seam.
//
// Built from yaml-cpp's events and not from YAML::Node, because a Node silently drops duplicate
// keys, and costs twice the time. Aliases (*name) are copied, so the tree is plain; the number of
// values and the depth are bounded.
#pragma once

#include "base/diagnostic.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::inventory {

inline constexpr std::size_t kMaxDocumentBytes = 64u << 20;  ///< of a CSV of nodes
inline constexpr std::size_t kMaxYamlBytes = 16u << 20;      ///< 10,000 nodes need a third of it
inline constexpr std::size_t kMaxDocumentValues = 4'000'000;
inline constexpr int kMaxDocumentDepth = 24;

struct Value {
  enum class Kind { Null, Scalar, List, Map };
  /// Plain scalars may be numbers or booleans, quoted ones are always text, table cells are
  /// whatever the column wants.
  enum class Style { Plain, Quoted, Cell };

  Kind kind = Kind::Null;
  Style style = Style::Plain;
  std::uint16_t file = 0;  ///< 0: the one that is read; else of Reader::addFile
  int line = 0, column = 0;
  std::string text;          ///< of a scalar
  std::vector<Value> items;  ///< of a list
  struct Entry;
  std::vector<Entry> entries;  ///< of a map, in order; keys are scalars and unique

  const Value* find(std::string_view key) const;
  const Value* findKey(std::string_view key) const;
  /// "a list", "the number 5", "text": for messages. Never quotes more than a few characters.
  std::string describe() const;
};
struct Value::Entry {
  Value first, second;
};

/// At most `bytes` of the text, cut between characters, for messages.
std::string shorten(std::string_view text, std::size_t bytes = 60);

/// Whether YAML 1.2 reads this plain scalar as something other than text.
bool looksLikeNumber(std::string_view text);
bool looksLikeBoolean(std::string_view text);

/// Reads YAML. All mistakes go to `diagnostics`; nothing is returned when the text is no YAML at
/// all. A duplicate key keeps its first value, so that the rest can still be checked.
/// `quoting`: gets the places of the mistakes whose text repeats something of the file.
std::optional<Value> parseYaml(std::string_view text, const std::string& file,
                               Diagnostics& diagnostics, std::vector<SourceRef>* quoting = nullptr);

/// Reports bytes that no inventory file may hold: invalid UTF-8, control characters. Answers
/// whether there were none. A byte order mark is removed from `text`.
bool checkEncoding(std::string_view& text, const std::string& file, Diagnostics& diagnostics);

}  // namespace muster::inventory
