// SPDX-License-Identifier: Apache-2.0
// load: file → Cluster, or every problem at once.
#include "base/json_output.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/model/discovery.h"
#include "inventory/parse/foreign_file.h"
#include "inventory/parse/merge.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/json.h"
#include "inventory/without_secrets.h"

#include "base/io/crypto.h"
#include "base/io/regular_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::inventory {

namespace {

/// A file with more mistakes than this has one mistake: it is the wrong file.
constexpr std::size_t kMaxDiagnostics = 1000;

constexpr ForeignFile kNoInventory{
    "inventory", "it begins with cluster: {name: …}; start from examples/lab/cluster.yaml",
    "name an inventory: --inventory FILE"};

void add(Diagnostics& out, const Diagnostic& one) {
  one.severity == Severity::Error ? out.error(one.where, one.text, one.suggestion)
                                  : out.warning(one.where, one.text, one.suggestion);
}

/// A profile that extends another says that one's mistakes again, at the same place.
Diagnostics withoutRepeated(const Diagnostics& sorted) {
  Diagnostics out;
  const Diagnostic* last = nullptr;
  for (const auto& one : sorted.all()) {
    const bool repeated = last && last->severity == one.severity && last->where == one.where &&
                          last->text == one.text && last->suggestion == one.suggestion;
    if (!repeated) add(out, one);
    last = &one;
  }
  return out;
}

Diagnostics bounded(Diagnostics all, const std::string& file) {
  all.sort();
  all = withoutRepeated(all);
  if (all.all().size() <= kMaxDiagnostics) return all;
  Diagnostics out;
  for (std::size_t i = 0; i < kMaxDiagnostics; ++i) {
    add(out, all.all()[i]);
  }
  const auto more = all.all().size() - kMaxDiagnostics;
  out.error({file, 0, 0}, fmt::format("and {} more problem{}", more, more == 1 ? "" : "s"),
            "mend these first");
  return out;
}

std::optional<Cluster> build(std::string_view yaml, const std::filesystem::path& file,
                             const LoadOptions& options, Diagnostics& diagnostics,
                             bool sees_secrets) {
  std::error_code ignored;
  std::filesystem::path folder =
      std::filesystem::absolute(file, ignored).lexically_normal().parent_path();
  Reader reader(file.string(), folder, diagnostics);
  reader.sees_secrets = sees_secrets;
  std::vector<SourceRef> quoting;
  auto root = parseYaml(yaml, reader.file, diagnostics, &quoting);
  if (!hasKeyOf(*clusterSpec(), root, yaml)) {
    diagnostics = root ? noKeyOf(kNoInventory, reader.file)
                       : withoutContent(diagnostics, quoting, kNoInventory);
    return std::nullopt;
  }
  if (!root) return std::nullopt;
  includeFiles(*root, reader);
  extendProfiles(*root, reader);
  Declaration declaration;
  readObject(&declaration, *root, *clusterSpec(), reader);
  DeclaredNodes nodes = expandNodes(declaration.groups, options, reader);
  checkRules(declaration.cluster, nodes, *root, reader);
  checkFabrics(declaration.cluster, nodes, *root, reader);
  checkMachines(declaration.cluster, nodes, *root, reader);
  checkNodeNetworks(declaration.cluster, nodes, *root, reader);
  checkTopologyFiles(declaration.cluster, nodes, *root, reader);
  if (diagnostics.hasErrors()) return std::nullopt;
  Cluster cluster = std::move(declaration.cluster);
  cluster.folder = folder;
  cluster.node_files = std::move(nodes.files);
  cluster.nodes.reserve(nodes.nodes.size());
  for (DeclaredNode& declared : nodes.nodes) cluster.nodes.push_back(std::move(declared.node));
  if (cluster.nodes.empty())
    diagnostics.warning({reader.file, 1, 1}, "the inventory has no nodes",
                        "add nodes: [{names: …, profile: …, from: racks.csv}]");
  cluster.digest = io::sha256Hex(jsonText(declaredJson(cluster)));
  return cluster;
}

}  // namespace

namespace {

Loaded loadWith(std::string_view yaml, const std::filesystem::path& file,
                const LoadOptions& options, bool sees_secrets = true) {
  Loaded loaded;
  loaded.cluster = build(yaml, file, options, loaded.diagnostics, sees_secrets);
  loaded.diagnostics = bounded(std::move(loaded.diagnostics), file.string());
  return loaded;
}

Loaded loadFile(const std::filesystem::path& file, const LoadOptions& options, bool sees_secrets) {
  auto text = io::readRegularFile(file, kMaxYamlBytes);
  if (text) return loadWith(*text, file, options, sees_secrets);
  Loaded loaded;
  loaded.diagnostics.error({file.string(), 0, 0},
                           fmt::format("cannot read the inventory: {}", text.error().text()),
                           text.error().code() == ErrorCode::NotFound
                               ? "write a first one: muster init; or name a file: --inventory FILE"
                               : "name a file: --inventory FILE");
  return loaded;
}

}  // namespace

Loaded loadText(std::string_view yaml, const std::filesystem::path& file) {
  return loadWith(yaml, file, {});
}

Loaded load(const std::filesystem::path& file) { return load(file, {}); }

Loaded load(const std::filesystem::path& file, const LoadOptions& options) {
  return loadFile(file, options, true);
}

Loaded loadWithoutSecrets(const std::filesystem::path& file) { return loadFile(file, {}, false); }

}  // namespace muster::inventory
