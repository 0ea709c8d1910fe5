// SPDX-License-Identifier: Apache-2.0
// Facade of inventory/: files → Cluster, or every problem at once.
#pragma once

#include "base/diagnostic.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace muster::inventory {

struct Loaded {
  std::optional<Cluster> cluster;  ///< absent when there are errors
  Diagnostics diagnostics;         ///< warnings too
};

/// Reads one YAML file, and the CSV files that it names.
/// Shape:  path → Cluster or diagnostics with file:line:column
Loaded load(const std::filesystem::path& file);

struct LoadOptions {
  std::map<std::filesystem::path, std::string>
      texts;  ///< CSV files (absolute paths) that are read from here instead of the disk
  bool rows_may_miss =
      false;  ///< nodes that are named but have no row are a warning: they are to be discovered
};
Loaded load(const std::filesystem::path& file, const LoadOptions& options);

/// The same for text that is already in memory; `file` says where relative paths start and what
/// messages name.
Loaded loadText(std::string_view yaml, const std::filesystem::path& file);

/// JSON Schema (draft 2020-12) of the inventory, from the same tables that parse it.
std::string schemaJson();

/// The cluster as JSON, hostlists and profiles expanded; no secrets.
std::string toJson(const Cluster& cluster);

/// What `muster inventory check` prints: every diagnostic on a line, then one line of summary.
std::string checkText(const Loaded& loaded);
/// The same as JSON: {ok, errors, warnings, name, nodes, digest, diagnostics: [{severity, file,
/// line, column, text, suggestion}]}.
std::string checkJson(const Loaded& loaded);
/// What `muster inventory show` prints: networks, profiles and nodes as tables.
std::string showText(const Cluster& cluster);

/// Every key with its type, default and meaning, as Markdown; docs/inventory.md holds it.
std::string referenceMarkdown();

}  // namespace muster::inventory
