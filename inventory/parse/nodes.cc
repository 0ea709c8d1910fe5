// SPDX-License-Identifier: Apache-2.0
// Entries of `nodes` → nodes: hostlists are expanded, CSV files read once each, and every row must
// be wanted by somebody.
#include "inventory/model/cluster.h"
#include "inventory/model/discovery.h"
#include "inventory/parse/csv.h"
#include "inventory/parse/hostlist.h"
#include "inventory/parse/paths.h"
#include "inventory/parse/suggest.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include "base/io/regular_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

namespace muster::inventory {

namespace {

struct Row {
  DeclaredNode declared;
  bool good = false, has_rack = false;
  std::size_t wanted = 0;  ///< by how many groups
};

struct CsvNodes {
  std::string file;
  std::vector<Row> rows;
  std::unordered_map<std::string, std::size_t> by_name;
  bool readable = false;
};

DeclaredNode::Place placeOf(const Value& value) { return {value.line, value.column}; }

/// Where the things that must be unique stand.
void notePlace(DeclaredNode& node, std::string_view key, const Value& value) {
  if (key == "mac") node.mac = placeOf(value);
  if (key == "address") node.address = placeOf(value);
  if (key == "bmc") node.bmc = placeOf(value);
  if (key == "serial") node.serial = placeOf(value);
}

/// Reads the rows of one file; its name is in reader.file meanwhile.
class CsvReader {
 public:
  CsvReader(Reader& reader, const LoadOptions& options) : reader_(reader), options_(options) {}

  CsvNodes read(const std::filesystem::path& path, const std::string& shown, const Value& from) {
    CsvNodes out;
    out.file = shown;
    const auto given = options_.texts.find(path);
    auto text = given == options_.texts.end() ? readAllowed(path, from)
                                              : Result<std::string>(given->second);
    if (!text) {
      if (!text.error().text().empty())  // else it is said already
        reader_.error(from, fmt::format("cannot read {}: {}", shown, text.error().text()),
                      "the path starts at the inventory's folder");
      return out;
    }
    std::string outer = std::exchange(reader_.file, shown);
    std::size_t problems = reader_.diagnostics.all().size();
    CsvTable table = parseCsv(*text, shown, reader_.diagnostics);
    reader_.errors += reader_.diagnostics.all().size() - problems;
    out.readable = columns(table);
    if (out.readable)
      for (const CsvRow& cells : table.rows) addRow(cells, out);
    reader_.file = std::move(outer);
    return out;
  }

 private:
  Result<std::string> readAllowed(const std::filesystem::path& path, const Value& from) {
    if (!namedPath(path.string(), from, reader_)) return fail(ErrorCode::Denied, "");
    return io::readRegularFile(path, kMaxDocumentBytes);
  }

  bool columns(const CsvTable& table) {
    const ObjectSpec& spec = *nodeRowSpec();
    if (!table.header.empty() &&
        std::none_of(table.header.begin(), table.header.end(),
                     [&](const Value& cell) { return spec.find(cell.text); })) {
      reader_.error(table.header.front(), "this is no list of nodes: none of its columns is known",
                    "its first row names columns: name,rack,unit,mac,address,bmc,serial");
      return false;  // and nothing of it is shown: it may be any file
    }
    std::vector<std::string_view> known;
    for (const FieldSpec& field : spec.fields) known.push_back(field.key);
    fields_.clear();
    bool good = !table.header.empty();
    for (const Value& cell : table.header) {
      const FieldSpec* field = spec.find(cell.text);
      if (!field) {
        reader_.error(cell, fmt::format("unknown column \"{}\"", shorten(cell.text)),
                      didYouMean(cell.text, known));
      } else if (std::find(fields_.begin(), fields_.end(), field) != fields_.end()) {
        reader_.error(cell, fmt::format("the column \"{}\" occurs twice", cell.text), "remove one");
        field = nullptr;
      }
      fields_.push_back(field);
    }
    for (const FieldSpec& field : spec.fields)
      if (good && field.required &&
          std::find(fields_.begin(), fields_.end(), &field) == fields_.end()) {
        reader_.error(table.header.front(), fmt::format("the column \"{}\" is missing", field.key),
                      fmt::format("{} Add it to the first row", field.doc));
        good = false;
      }
    return good;
  }

  void addRow(const CsvRow& cells, CsvNodes& out) {
    Row row;
    Node& node = row.declared.node;
    node.where = {reader_.file, cells.line, 1};
    std::size_t errors = reader_.errors;
    std::string name;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const FieldSpec* field = fields_[i];
      const Value& cell = cells.cells[i];
      if (!field) continue;
      if (field->key == "name") {
        name = cell.text;
        node.where = reader_.at(cell);
      }
      if (cell.text.empty()) {
        if (field->required)
          reader_.error(cell, fmt::format("\"{}\" is empty", field->key),
                        fmt::format("{} Write it", field->doc));
        continue;
      }
      field->read(&node, cell, reader_);
      notePlace(row.declared, field->key, cell);
      row.has_rack = row.has_rack || field->key == "rack";
    }
    row.good = reader_.errors == errors;
    if (name.empty()) return;
    if (auto [first, fresh] = out.by_name.emplace(name, out.rows.size()); !fresh) {
      const SourceRef& where = out.rows[first->second].declared.node.where;
      ++reader_.errors;
      reader_.diagnostics.error(node.where, fmt::format("the node {} has two rows", shorten(name)),
                                fmt::format("the first one is at {}; keep one", where.str()));
      return;
    }
    out.rows.push_back(std::move(row));
  }

  Reader& reader_;
  const LoadOptions& options_;
  std::vector<const FieldSpec*> fields_;
};

class Expander {
 public:
  Expander(Reader& reader, const LoadOptions& options) : reader_(reader), options_(options) {}

  DeclaredNodes run(const std::vector<NodeGroup>& groups) {
    for (const NodeGroup& group : groups) {
      std::size_t names = out_.names.size();
      add(group);
      if (out_.names.size() == names) out_.complete = false;
    }
    for (auto& [path, csv] : files_)
      if (!unclear_.contains(path)) reportUnwanted(csv);
    std::sort(out_.nodes.begin(), out_.nodes.end(),
              [](const DeclaredNode& a, const DeclaredNode& b) {
                return naturalLess(a.node.name.str(), b.node.name.str());
              });
    return std::move(out_);
  }

 private:
  void add(const NodeGroup& group) {
    std::vector<std::string> names;
    if (!group.names.empty()) {
      auto expanded = expandHostlist(group.names);
      if (!expanded) {
        unclear_.insert(group.from);
        return reader_.error(place(*group.value, "names"),
                             fmt::format("\"{}\" is no hostlist", shorten(group.names)),
                             expanded.error().text());
      }
      names = std::move(*expanded);
      if (names.size() + out_.names.size() > kMaxNodes)
        return reader_.error(place(*group.value, "names"),
                             fmt::format("more than {} nodes", kMaxNodes), "split the cluster");
      if (!checkNames(group, names)) {
        unclear_.insert(group.from);
        return;
      }
    } else if (group.from.empty() || group.value->find("names")) {
      unclear_.insert(group.from);
      return;  // reported by the table
    }
    group.from.empty() ? addSingle(group, names) : addRows(group, names);
  }

  bool checkNames(const NodeGroup& group, const std::vector<std::string>& names) {
    const Value& where = place(*group.value, "names");
    std::set<std::string_view> seen;
    for (const std::string& name : names) {
      if (auto good = checkHostName(name); !good) {
        reader_.error(where, fmt::format("\"{}\" is not {}", shorten(name), kHostName.title),
                      good.error().text());
        return false;
      }
      if (!seen.insert(name).second) {
        reader_.error(where, fmt::format("the hostlist names {} twice", name),
                      fmt::format("write {}", shorten(foldHostlist(names), 200)));
        return false;
      }
    }
    return true;
  }

  void addSingle(const NodeGroup& group, const std::vector<std::string>& names) {
    if (!group.good) return remember(names, group.where);
    if (names.size() > 1) {
      remember(names, group.where);
      return reader_.error(place(*group.value, "names"),
                           fmt::format("{} names, but nothing says their addresses", names.size()),
                           "add from: FILE.csv, or write one entry a node");
    }
    bool complete = true;
    for (const FieldSpec& field : nodeRowSpec()->fields)
      if (field.required && field.key != "name" && !group.value->find(field.key)) {
        complete = false;
        reader_.error(*group.value, fmt::format("nodes: the key \"{}\" is missing", field.key),
                      fmt::format("{} Or take the nodes from: FILE.csv", field.doc));
      }
    DeclaredNode declared;
    declared.node = group;
    declared.node.name = NodeName(names.front());
    for (const auto& [key, value] : group.value->entries) notePlace(declared, key.text, value);
    take(std::move(declared), complete);
  }

  void addRows(const NodeGroup& group, std::vector<std::string>& names) {
    CsvNodes& csv = file(group);
    out_.files.push_back({reader_.resolve(group.from), group.profile, names});
    if (!csv.readable) return remember(names, group.where);
    std::vector<std::string> missing;
    if (names.empty())
      for (const Row& row : csv.rows) names.push_back(row.declared.node.name.str());
    for (const std::string& name : names) {
      auto found = csv.by_name.find(name);
      if (found == csv.by_name.end()) {
        missing.push_back(name);
        continue;
      }
      Row& row = csv.rows[found->second];
      ++row.wanted;
      DeclaredNode declared = row.declared;
      declared.node.profile = group.profile;
      if (!row.has_rack) declared.node.rack = group.rack;
      take(std::move(declared), row.good && group.good);
    }
    if (missing.empty()) return;
    remember(missing, group.where);
    const auto text = fmt::format("{} of {} nodes have no row in {}: {}", missing.size(),
                                  names.size(), csv.file, shorten(foldHostlist(missing), 200));
    if (options_.rows_may_miss)
      return reader_.warning(place(*group.value, "names"), text,
                             "`muster discover` finds their machines");
    reader_.error(place(*group.value, "names"), text, "add the rows, or shorten the hostlist");
  }

  CsvNodes& file(const NodeGroup& group) {
    auto known = files_.find(group.from);
    if (known != files_.end()) return known->second;
    std::filesystem::path shown = std::filesystem::path(reader_.file).parent_path() / group.from;
    return files_
        .emplace(group.from, CsvReader(reader_, options_)
                                 .read(reader_.resolve(group.from), shown.string(),
                                       place(*group.value, "from")))
        .first->second;
  }

  void reportUnwanted(const CsvNodes& csv) {
    std::vector<std::string> names;
    SourceRef first;
    for (const Row& row : csv.rows) {
      if (row.wanted > 0) continue;
      if (names.empty()) first = row.declared.node.where;
      names.push_back(row.declared.node.name.str());
    }
    if (names.empty()) return;
    ++reader_.errors;
    reader_.diagnostics.error(
        first,
        fmt::format("{} row{} that no hostlist names: {}", names.size(),
                    names.size() == 1 ? "" : "s", shorten(foldHostlist(names), 200)),
        "add them to `names`, or remove the rows");
  }

  void remember(const std::vector<std::string>& names, const SourceRef& where) {
    for (const std::string& name : names) out_.names.emplace(name, where);
  }

  void take(DeclaredNode declared, bool good) {
    const std::string& name = declared.node.name.str();
    if (auto [first, fresh] = out_.names.emplace(name, declared.node.where); !fresh) {
      ++reader_.errors;
      reader_.diagnostics.error(declared.node.where,
                                fmt::format("the node {} is declared twice", name),
                                fmt::format("the first one is at {}", first->second.str()));
    } else if (good) {
      out_.nodes.push_back(std::move(declared));
    }
  }

  Reader& reader_;
  const LoadOptions& options_;
  std::map<std::string, CsvNodes> files_;
  /// Of which a group's names are wrong: nobody knows which rows it means.
  std::set<std::string> unclear_;
  DeclaredNodes out_;
};

}  // namespace

DeclaredNodes expandNodes(const std::vector<NodeGroup>& groups, const LoadOptions& options,
                          Reader& reader) {
  return Expander(reader, options).run(groups);
}

}  // namespace muster::inventory
