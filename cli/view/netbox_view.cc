// SPDX-License-Identifier: Apache-2.0
#include "cli/view/netbox_view.h"

#include "app/nodes/netbox_import.h"
#include "base/printable.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace muster::cli {
namespace {

std::string field(const discovery::CsvFields& row, const std::string& key) {
  const auto found = row.find(key);
  return found == row.end() ? "-" : found->second;
}

void addLines(std::string& out, const std::string& head, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  out += head + "\n";
  for (const auto& line : lines) out += "  " + printable(line) + "\n";
}

}  // namespace

std::string netboxText(const app::NetboxImport& import) {
  const auto& found = import.found;
  std::string out = fmt::format("NetBox lists {} devices\n", found.devices);
  if (!found.rows.empty())
    out += import.written.empty()
               ? fmt::format("{} of them are no nodes yet; --write FILE.csv adds these rows:\n",
                             found.rows.size())
               : fmt::format("{} nodes were added to {}:\n", found.rows.size(),
                             import.written.string());
  for (const auto& row : found.rows)
    out += fmt::format("  {:<14}{:<8}{:<4}{:<19}{:<17}{}\n", field(row, "name"), field(row, "rack"),
                       field(row, "unit"), field(row, "mac"), field(row, "address"),
                       field(row, "bmc"));
  addLines(out, "these devices become no nodes:", found.left_out);
  if (!found.differences.empty()) out += "said in two ways; nothing was changed:\n";
  for (const auto& each : found.differences)
    out += fmt::format("  {:<14}{:<9}inventory {}, NetBox {}\n", each.node, each.key,
                       each.inventory.empty() ? "says nothing" : printable(each.inventory),
                       printable(each.netbox));
  addLines(out, "NetBox leaves open:", found.remarks);
  if (!found.only_here.empty())
    out += fmt::format("not listed by NetBox: {}\n", inventory::foldHostlist(found.only_here));
  if (found.isSame()) out += "what both know agrees\n";
  return out;
}

nlohmann::json netboxJson(const app::NetboxImport& import) {
  const auto& found = import.found;
  auto differences = nlohmann::json::array();
  for (const auto& each : found.differences)
    differences.push_back({{"node", each.node},
                           {"key", each.key},
                           {"inventory", each.inventory},
                           {"netbox", each.netbox}});
  return {{"devices", found.devices},   {"rows", found.rows},
          {"left_out", found.left_out}, {"differences", std::move(differences)},
          {"remarks", found.remarks},   {"only_in_inventory", found.only_here},
          {"same", found.isSame()},     {"written", import.written.string()}};
}

}  // namespace muster::cli
