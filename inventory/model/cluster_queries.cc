// SPDX-License-Identifier: Apache-2.0
// What `muster inventory check` and `show` print.
#include "base/ip_address.h"
#include "base/json_output.h"
#include "inventory/inventory.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"
#include "inventory/schema/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::inventory {

namespace {

constexpr int kIndent = 2;
constexpr std::size_t kShownDigestDigits = 12;

std::string_view word(Severity severity) {
  switch (severity) {
    case Severity::Info:
      return "info";
    case Severity::Warning:
      return "warning";
    case Severity::Error:
      return "error";
  }
  return "error";
}

std::size_t countOf(const Loaded& loaded, Severity severity) {
  const auto& all = loaded.diagnostics.all();
  return static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [&](const Diagnostic& one) { return one.severity == severity; }));
}

std::string plural(std::size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

/// Rows of cells as aligned columns, two spaces apart; the last column is not padded.
std::string columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string orDash(std::string text) { return text.empty() ? "-" : text; }

std::string controllersText(const Network& network) {
  std::string out;
  for (const Ipv4 controller : controllersOf(network))
    out += (out.empty() ? "" : ", ") + controller.str();
  return out;
}

}  // namespace

std::string checkText(const Loaded& loaded) {
  std::string out;
  for (const Diagnostic& one : loaded.diagnostics.all()) out += one.str() + "\n";
  std::size_t errors = countOf(loaded, Severity::Error),
              warnings = countOf(loaded, Severity::Warning);
  if (!loaded.cluster)
    return out + fmt::format("{}, {}\n", plural(errors, "error"), plural(warnings, "warning"));
  const Cluster& cluster = *loaded.cluster;
  out +=
      fmt::format("{}: {}, {}, {}; digest {}\n", cluster.name, plural(cluster.nodes.size(), "node"),
                  plural(cluster.profiles.size(), "profile"),
                  warnings == 0 ? "nothing wrong" : plural(warnings, "warning"),
                  cluster.digest.substr(0, kShownDigestDigits));
  return out;
}

std::string checkJson(const Loaded& loaded) {
  nlohmann::ordered_json out = {{"ok", loaded.cluster.has_value()},
                                {"errors", countOf(loaded, Severity::Error)},
                                {"warnings", countOf(loaded, Severity::Warning)}};
  if (loaded.cluster)
    out.update({{"name", loaded.cluster->name},
                {"nodes", loaded.cluster->nodes.size()},
                {"digest", loaded.cluster->digest}});
  out["diagnostics"] = nlohmann::ordered_json::array();
  for (const Diagnostic& one : loaded.diagnostics.all())
    out["diagnostics"].push_back({{"severity", word(one.severity)},
                                  {"file", one.where.file},
                                  {"line", one.where.line},
                                  {"column", one.where.column},
                                  {"text", one.text},
                                  {"suggestion", one.suggestion}});
  return jsonText(out, kIndent) + "\n";
}

std::string showText(const Cluster& cluster) {
  std::string out = fmt::format("cluster {}  ({}, digest {})\n", cluster.name,
                                plural(cluster.nodes.size(), "node"),
                                cluster.digest.substr(0, kShownDigestDigits));
  std::vector<std::vector<std::string>> rows{{"NETWORK", "CIDR", "CONTROLLER", "DHCP"}};
  for (const Network& network : cluster.networks)
    rows.push_back({network.name, network.cidr.str(), controllersText(network),
                    network.dhcp_range
                        ? network.dhcp_range->first.str() + "-" + network.dhcp_range->second.str()
                        : "-"});
  out += "\n" + columns(rows);
  rows = {{"PROFILE", "NODES", "IMAGE", "DRIVERS", "FIRMWARE", "FABRIC", "GATES", "POOL", "NAMES"}};
  for (const auto& [name, profile] : cluster.profiles) {
    std::vector<std::string> names;
    for (const Node& node : cluster.nodes)
      if (node.profile == name) names.push_back(node.name.str());
    std::string count = std::to_string(names.size());
    rows.push_back(
        {name, count, profile.image, orDash(fmt::format("{}", fmt::join(profile.drivers, ","))),
         orDash(profile.firmware), orDash(fmt::format("{}", fmt::join(fabricsOf(profile), ","))),
         orDash(fmt::format("{}", fmt::join(profile.gates, ","))), orDash(profile.pool),
         orDash(foldHostlist(std::move(names)))});
  }
  out += "\n" + columns(rows);
  rows = {{"NODE", "PROFILE", "RACK", "UNIT", "MAC", "ADDRESS", "BMC", "SERIAL"}};
  for (const Node& node : cluster.nodes)
    rows.push_back({node.name.str(), node.profile, orDash(node.rack),
                    node.unit == 0 ? "-" : std::to_string(node.unit), node.mac.str(),
                    node.address.str(), node.bmc.url, orDash(node.serial)});
  return out + "\n" + columns(rows);
}

}  // namespace muster::inventory
