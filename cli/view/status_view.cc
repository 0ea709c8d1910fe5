// SPDX-License-Identifier: Apache-2.0
#include "cli/view/status_view.h"

#include "base/json_output.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "inventory/parse/hostlist.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace muster::cli {
namespace {

using app::NodeStatus;

constexpr std::size_t kMaxImageBytes = 24;
constexpr std::size_t kMaxRows = 64;  ///< of single nodes; more are shown by what they are
constexpr std::size_t kMinNameColumn = 12, kMaxNameColumn = 40;

std::string imageOf(const NodeStatus& node) {
  return std::string(cutToBytes(node.image, kMaxImageBytes));
}

/// "firmware 3 h, pool 2 min": how long ago the first look failed.
std::string staleText(const NodeStatus& node, WallTime now) {
  std::string out;
  for (const auto& unread : node.stale)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", unread.what,
                       lifecycle::ageText(now, unread.since));
  return out;
}

std::string row(std::size_t width, std::string_view name, const NodeStatus& node,
                std::string_view findings, const std::string& stale) {
  return fmt::format("{:<{}}{:<16} {:<9} {:<25} {:<12} {:<8}{}\n", name, width, node.state,
                     printable(node.pool), printable(imageOf(node)), printable(node.certificate),
                     findings, stale.empty() ? "" : "  stale: " + printable(stale));
}

std::string heading(std::size_t width) {
  return fmt::format("{:<{}}{:<16} {:<9} {:<25} {:<12} {}\n", "node", width, "state", "pool",
                     "image", "certificate", "findings");
}

std::string summary(const std::vector<NodeStatus>& nodes) {
  std::map<std::string, std::size_t> states;
  std::size_t with_findings = 0, stale = 0;
  for (const auto& node : nodes) {
    ++states[node.state];
    with_findings += node.findings > 0;
    stale += !node.stale.empty();
  }
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const auto& [state, count] : states) order.emplace_back(count, state);
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.first > b.first; });
  auto out = fmt::format("{} {}:", nodes.size(), nodes.size() == 1 ? "node" : "nodes");
  for (const auto& [count, state] : order)
    out += fmt::format("{} {} {}", &count == &order.front().first ? "" : ",", count, state);
  if (with_findings) out += fmt::format("; {} with findings", with_findings);
  if (stale) out += fmt::format("; {} stale", stale);
  return out + "\n\n";
}

std::string rowsOfNodes(const std::vector<NodeStatus>& nodes, WallTime now) {
  std::size_t width = kMinNameColumn;
  for (const auto& node : nodes)
    width = std::max(width, std::min(node.node.size() + 1, kMaxNameColumn));
  auto out = heading(width);
  for (const auto& node : nodes)
    out += row(width, node.node, node, std::to_string(node.findings), staleText(node, now));
  return out;
}

/// One row for all that are alike but for the number of their findings and the age of their facts.
std::string rowsOfKinds(const std::vector<NodeStatus>& nodes) {
  using Key = std::tuple<std::string, std::string, std::string, std::string, bool, std::string>;
  std::map<Key, std::vector<const NodeStatus*>> kinds;
  for (const auto& node : nodes) {
    std::string stale;
    for (const auto& unread : node.stale) stale += (stale.empty() ? "" : ", ") + unread.what;
    kinds[{node.state, node.pool, imageOf(node), node.certificate, node.findings > 0, stale}]
        .push_back(&node);
  }
  std::vector<std::pair<const Key*, const std::vector<const NodeStatus*>*>> order;
  for (const auto& [key, of] : kinds) order.emplace_back(&key, &of);
  std::ranges::stable_sort(
      order, [](const auto& a, const auto& b) { return a.second->size() > b.second->size(); });
  std::string out;
  std::size_t shown = 0;
  for (const auto& [key, of] : order) {
    if (++shown > kMaxRows) break;
    std::vector<std::string> names;
    names.reserve(of->size());
    for (const auto* node : *of) names.push_back(node->node);
    if (shown == 1) out += heading(kMinNameColumn);
    out += row(kMinNameColumn, fmt::format("{} nodes", of->size()), *of->front(),
               std::get<4>(*key) ? "some" : "0", std::get<5>(*key));
    out += "  " + inventory::foldHostlist(std::move(names)) + "\n";
  }
  if (order.size() > kMaxRows) out += fmt::format("… and {} more kinds\n", order.size() - kMaxRows);
  return out + "\n--expand lists every node; --state, --rack, --pool and --nodes choose some\n";
}

}  // namespace

std::string statusText(const std::vector<NodeStatus>& nodes, WallTime now, StatusDetail detail) {
  if (nodes.empty()) return "no node matches\n";
  const bool fits = nodes.size() <= kMaxRows || detail == StatusDetail::Nodes;
  return summary(nodes) + (fits ? rowsOfNodes(nodes, now) : rowsOfKinds(nodes));
}

std::string statusJson(const std::vector<NodeStatus>& nodes) {
  auto out = nlohmann::json::array();
  for (const auto& node : nodes) {
    auto stale = nlohmann::json::array();
    for (const auto& unread : node.stale)
      stale.push_back({{"what", unread.what},
                       {"since", muster::toString(unread.since)},
                       {"code", unread.code},
                       {"reason", unread.text}});
    out.push_back({{"node", node.node},
                   {"state", node.state},
                   {"pool", node.pool},
                   {"image", imageOf(node)},
                   {"certificate", node.certificate},
                   {"rack", node.rack},
                   {"profile", node.profile},
                   {"findings", node.findings},
                   {"stale", std::move(stale)}});
  }
  return jsonText(out, 2) + "\n";
}

}  // namespace muster::cli
