// SPDX-License-Identifier: Apache-2.0
#include "fabric/exports/plot_overview.h"

#include "base/markup.h"
#include "inventory/parse/hostlist.h"

#include <algorithm>

namespace muster::fabric {

namespace {

constexpr int kLeft = 20, kTop = 76, kRowHeight = 26, kHeadHeight = 92, kCellWidth = 58;
constexpr int kNameWidth = 170, kCountWidth = 92;
constexpr std::size_t kNamedRepairs = 5;
constexpr std::string_view kStyle =
    "text{font:12px sans-serif;fill:#222}.t{font-size:18px}.n{text-anchor:middle}"
    ".g{fill:#e4f1e4;stroke:#8ab08a}.b{fill:#f8c9c9;stroke:#c00;stroke-width:2}"
    ".d{fill:#ffe3b8;stroke:#e08000;stroke-width:2}.o{fill:#f4f4f4;stroke:#ccc}";

/// "leaf-su3-r0" → "su3"; empty: no shape has named it.
std::string unitIn(std::string_view name) {
  const auto at = name.find("-su");
  if (at == std::string_view::npos) return {};
  const auto begin = at + 1;
  return std::string(name.substr(begin, name.find('-', begin) - begin));
}

/// "core-001–016": two names that differ in a number only, else "a … b".
std::string spanOf(const std::string& first, const std::string& last) {
  if (first == last) return first;
  const auto number = first.find_last_not_of("0123456789") + 1;
  return number > 0 && number < first.size() && number < last.size() &&
                 last.find_last_not_of("0123456789") + 1 == number &&
                 last.compare(0, number, first, 0, number) == 0
             ? fmt::format("{}–{}", first, last.substr(number))
             : fmt::format("{} … {}", first, last);
}

struct Count {
  std::size_t declared = 0, found = 0, slow = 0;
  std::vector<std::string> repairs;
  std::string text() const {
    return found == declared ? std::to_string(declared) : fmt::format("{}/{}", found, declared);
  }
  std::string_view look() const {
    return declared == 0 && found == 0 ? "o" : found != declared ? "b" : slow ? "d" : "g";
  }
};

class Overview {
 public:
  Overview(const Topology& declared, const FoundFabric* found)
      : declared_(declared), found_(found), levels_(switchLevels(declared)) {
    for (const auto& [name, level] : levels_) highest_ = std::max(highest_, level);
  }

  std::string draw(const std::string& title) {
    findPods();
    findColumns();
    count();
    return svg(title);
  }

 private:
  bool isRoot(const std::string& name) const {
    const auto level = levels_.find(name);
    return highest_ > 1 && level != levels_.end() && level->second == highest_;
  }

  /// Connected without the roots, HCAs included; then joined by SU, and in their order to at most
  /// kMostRows.
  void findPods() {
    std::map<std::string_view, std::string_view> parent;
    const auto top = [&](std::string_view name) {
      while (parent.at(name) != name) name = parent[name] = parent.at(parent.at(name));
      return name;
    };
    for (const auto& [name, device] : declared_.devices)
      if (!isRoot(name)) parent.emplace(name, name);
    for (const auto& link : declared_.links) {
      if (isRoot(link.a.node) || isRoot(link.b.node)) continue;
      const auto a = top(link.a.node), b = top(link.b.node);
      if (a != b) parent[std::max(a, b)] = std::min(a, b);
    }
    // HCAs that are cabled to a root only are no pod: they are counted with the roots' cables.
    std::map<std::string_view, std::string> key;  // component → what its row is called
    for (const auto& [name, device] : declared_.devices) {
      if (isRoot(name) || !device.is_switch) continue;
      auto& row = key[top(name)];
      const auto unit = unitIn(name);
      if (row.empty()) row = unit.empty() ? name : unit;
    }
    std::vector<std::string> rows;
    for (const auto& [component, row] : key)
      if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
    std::sort(rows.begin(), rows.end(), inventory::naturalLess);
    std::vector<Span> spans;
    for (const auto& row : rows) spans.push_back({row, row});
    const auto groups = inGroups(spans, kMostRows, rows_);
    std::map<std::string, std::size_t> together;
    for (std::size_t i = 0; i < rows.size(); ++i) together[rows[i]] = groups[i];
    for (const auto& [name, device] : declared_.devices)
      if (!isRoot(name))
        if (const auto at = key.find(top(name)); at != key.end())
          row_of_[name] = together.at(at->second);
  }

  /// Roots that are cabled to the same switches are one column, then as findPods.
  void findColumns() {
    std::map<std::string, std::set<std::string>> below;
    for (const auto& link : declared_.links)
      for (const auto& [upper, lower] : {std::pair(&link.a, &link.b), std::pair(&link.b, &link.a)})
        if (isRoot(upper->node) && declared_.devices.at(lower->node).is_switch)
          below[upper->node].insert(lower->node);
    std::map<std::set<std::string>, std::vector<std::string>> planes;
    for (const auto& [root, switches] : below) planes[switches].push_back(root);
    std::vector<std::vector<std::string>> groups;
    if (planes.size() > 1)
      for (auto& [switches, roots] : planes) groups.push_back(std::move(roots));
    else
      for (const auto& [root, switches] : below) groups.push_back({root});
    std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
      return inventory::naturalLess(a.front(), b.front());
    });
    std::vector<Span> spans;
    for (const auto& group : groups) spans.push_back({group.front(), group.back()});
    const auto together = inGroups(spans, kMostColumns, columns_);
    for (std::size_t i = 0; i < groups.size(); ++i)
      for (const auto& root : groups[i]) column_of_[root] = together[i];
  }

  struct Span {
    std::string first, last;
  };
  /// The group of each; `labels` names the groups, of which there are at most `most`.
  static std::vector<std::size_t> inGroups(const std::vector<Span>& spans, std::size_t most,
                                           std::vector<std::string>& labels) {
    std::vector<std::size_t> index;
    const auto size = std::max<std::size_t>(1, (spans.size() + most - 1) / most);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      index.push_back(i / size);
      if (i % size == 0)
        labels.push_back(spanOf(spans[i].first, spans[std::min(i + size, spans.size()) - 1].last));
    }
    return index;
  }

  struct Row {
    std::set<std::string_view> hosts, hosts_found;
    std::map<int, Count> switches;  // by level
    Count hcas, inner;              // cables to HCAs, between switches of the pod
    std::map<std::size_t, Count> up;
  };

  Count* cellOf(const Link& link) {
    const auto a = row_of_.find(link.a.node), b = row_of_.find(link.b.node);
    const auto to_root = [&](const auto& row, const std::string& root) -> Count* {
      const auto column = column_of_.find(root);
      return row == row_of_.end() || column == column_of_.end()
                 ? nullptr
                 : &table_[row->second].up[column->second];
    };
    if (a != row_of_.end() && b != row_of_.end()) {
      auto& row = table_[a->second];
      const bool both = isSwitch(link.a.node) && isSwitch(link.b.node);
      return both ? &row.inner : &row.hcas;
    }
    return a != row_of_.end() ? to_root(a, link.b.node) : to_root(b, link.a.node);
  }
  bool isSwitch(const std::string& name) const { return declared_.devices.at(name).is_switch; }

  void count() {
    table_.resize(std::max<std::size_t>(1, rows_.size()));
    for (const auto& [name, device] : declared_.devices) {
      const bool there = !found_ || found_->topology.devices.contains(name);
      const auto row = row_of_.find(name);
      if (row == row_of_.end()) {
        ++roots_.declared, roots_.found += there;
        continue;
      }
      auto& own = table_[row->second];
      if (device.is_switch) {
        auto& count = own.switches[levels_.contains(name) ? levels_.at(name) : 1];
        ++count.declared, count.found += there;
      } else {
        own.hosts.insert(hostOf(name));
        if (there) own.hosts_found.insert(hostOf(name));
      }
    }
    for (const auto& link : declared_.links)
      if (auto* cell = cellOf(link)) {
        ++cell->declared;
        if (!found_) ++cell->found;
      }
    if (!found_) return;
    for (const auto& link : found_->topology.links) {
      const auto at = std::lower_bound(
          declared_.links.begin(), declared_.links.end(), link,
          [](const Link& x, const Link& y) { return std::tie(x.a, x.b) < std::tie(y.a, y.b); });
      if (at == declared_.links.end() || at->a != link.a || at->b != link.b) continue;
      if (auto* cell = cellOf(link))
        ++cell->found, cell->slow += at->width_speed != link.width_speed;
    }
    std::map<Port, const Link*> by_port;
    for (const auto& link : declared_.links) by_port[link.a] = by_port[link.b] = &link;
    for (const auto& one : found_->comparison.deviations) {
      const auto link = by_port.find(one.at);
      if (link == by_port.end()) continue;
      auto* cell = cellOf(*link->second);
      if (cell && cell->repairs.size() < kNamedRepairs &&
          std::find(cell->repairs.begin(), cell->repairs.end(), one.repair) == cell->repairs.end())
        cell->repairs.push_back(one.repair);
    }
  }

  std::string legend() const {
    if (!found_) return "as declared; a cell is the number of cables";
    if (found_->comparison.deviations.empty())
      return "found as declared; a cell is the number of cables";
    return fmt::format(
        "{} deviations, {} jobs; a cell is found/declared cables: red where some are missing or "
        "elsewhere, orange where some are slower; point at it to read what to do",
        found_->comparison.deviations.size(), found_->comparison.repairs.size());
  }

  static std::string cell(int x, int y, int width, const Count& count, std::string_view what) {
    std::string tip(what);
    for (const auto& repair : count.repairs) tip += "\n" + repair;
    return fmt::format(
        "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>"
        "<text class=\"n\" x=\"{}\" y=\"{}\">{}</text>",
        count.look(), x, y, width - 3, kRowHeight - 3, escapedMarkup(tip), x + (width - 3) / 2,
        y + 16, count.declared || count.found ? count.text() : std::string("·"));
  }

  std::string svg(const std::string& title) const {
    std::set<int> levels;
    for (const auto& row : table_)
      for (const auto& [level, count] : row.switches) levels.insert(level);
    std::string body;
    int x = kLeft + kNameWidth;
    const auto head = [&](std::string_view text, int width) {
      body += fmt::format("<text transform=\"translate({},{}) rotate(-40)\">{}</text>",
                          x + width / 2, kTop + kHeadHeight - 6, escapedMarkup(text));
      x += width;
    };
    head("nodes", kCountWidth);
    for (int level : levels) head(level == 1 ? "leaves" : "spines", kCountWidth);
    head("cables to HCAs", kCountWidth);
    if (levels.size() > 1) head("leaf to spine", kCountWidth);
    for (const auto& column : columns_) head(column, kCellWidth);
    const int width = x + kLeft + kHeadHeight / 2;  // the last heading leans out
    int y = kTop + kHeadHeight;
    for (std::size_t i = 0; i < rows_.size(); ++i, y += kRowHeight) {
      const auto& row = table_[i];
      body +=
          fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", kLeft, y + 16, escapedMarkup(rows_[i]));
      x = kLeft + kNameWidth;
      const auto put = [&](const Count& count, int cell_width, std::string_view what) {
        body += cell(x, y, cell_width, count, fmt::format("{}: {}", rows_[i], what));
        x += cell_width;
      };
      put({row.hosts.size(), row.hosts_found.size(), 0, {}}, kCountWidth, "nodes");
      for (int level : levels) {
        const auto at = row.switches.find(level);
        put(at == row.switches.end() ? Count{} : at->second, kCountWidth,
            level == 1 ? "leaves" : "spines");
      }
      put(row.hcas, kCountWidth, "cables to HCAs");
      if (levels.size() > 1) put(row.inner, kCountWidth, "cables between leaves and spines");
      for (std::size_t column = 0; column < columns_.size(); ++column) {
        const auto at = row.up.find(column);
        put(at == row.up.end() ? Count{} : at->second, kCellWidth,
            fmt::format("cables to {}", columns_[column]));
      }
    }
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\">"
        "<style>{2}</style><text class=\"t\" x=\"{3}\" y=\"28\">{4}</text>"
        "<text x=\"{3}\" y=\"50\">{5}</text><text x=\"{3}\" y=\"{6}\">{7} of {8} root switches "
        "there</text>{9}</svg>\n",
        std::max(width, 760), y + kRowHeight + kLeft, kStyle, kLeft, escapedMarkup(title),
        escapedMarkup(legend()), y + kRowHeight, roots_.found, roots_.declared, body);
  }

  const Topology& declared_;
  const FoundFabric* found_;
  const std::map<std::string, int> levels_;
  int highest_ = 1;
  std::vector<std::string> rows_, columns_;
  std::map<std::string, std::size_t> row_of_, column_of_;
  std::vector<Row> table_;
  Count roots_;
};

}  // namespace

std::string plotOverviewSvg(const std::string& title, const Topology& declared,
                            const FoundFabric* found) {
  return Overview(declared, found).draw(title);
}

}  // namespace muster::fabric
