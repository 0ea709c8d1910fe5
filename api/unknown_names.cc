// SPDX-License-Identifier: Apache-2.0
#include "api/unknown_names.h"

#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/parse/hostlist.h"
#include "inventory/parse/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace muster::api {
namespace {

using Names = std::set<std::string, std::less<>>;

constexpr std::size_t kNamed = 5;  ///< of a scope in a message

void addUnknown(std::string_view kind, const std::vector<std::string>& asked, const Names& known,
                std::vector<std::string>& out) {
  const std::vector<std::string_view> words(known.begin(), known.end());
  std::size_t more = 0;
  for (const auto& name : asked) {
    if (known.contains(name)) continue;
    if (out.size() >= kNamed) {
      ++more;
      continue;
    }
    const auto near = inventory::nearest(name, words);
    out.push_back(near.empty() ? fmt::format("{} {}", kind, name)
                               : fmt::format("{} {} (did you mean {}?)", kind, name, near));
  }
  if (more > 0) out.push_back(fmt::format("{} more {}s", more, kind));
}

std::string scopeLine(const std::vector<std::string>& unknown) {
  return fmt::format("its scope names what the inventory has not: {}", fmt::join(unknown, ", "));
}

void addRow(const std::string& where, const Scope& scope, const inventory::Cluster* cluster,
            std::vector<std::string>& out) {
  if (!cluster) return;
  if (const auto unknown = unknownInScope(scope, *cluster); !unknown.empty())
    out.push_back(fmt::format("{}: {}", where, scopeLine(unknown)));
}

}  // namespace

std::vector<std::string> unknownInScope(const Scope& scope, const inventory::Cluster& cluster) {
  std::vector<std::string> out;
  if (scope.isSite()) return out;
  Names pools, racks, nodes;
  for (const auto& [name, pool] : cluster.pools) pools.insert(name);
  for (const auto& node : cluster.nodes) {
    racks.insert(node.rack);
    nodes.insert(node.name.str());
  }
  addUnknown("pool", scope.pools, pools, out);
  addUnknown("rack", scope.racks, racks, out);
  if (scope.nodes.empty()) return out;
  if (const auto names = inventory::expandHostlist(scope.nodes))
    addUnknown("node", *names, nodes, out);
  return out;
}

std::vector<std::string> unknownInAccess(const AccessTable& table,
                                         const inventory::Cluster* cluster) {
  std::vector<std::string> out;
  for (const auto& row : table.rows()) {
    if (!row.wrong.empty()) continue;
    if (!(row.is_group ? isKnownGroup(row.who) : isKnownUser(row.who)))
      out.push_back(fmt::format("{}: this host knows no {} {} (getent {} {})", row.where,
                                row.is_group ? "group" : "user", row.who,
                                row.is_group ? "group" : "passwd", row.who));
    addRow(row.where, row.scope, cluster, out);
  }
  for (const auto& row : table.certificates())
    if (row.wrong.empty()) addRow(row.where, row.scope, cluster, out);
  for (const auto& row : table.oidcRows())
    if (row.wrong.empty()) addRow(row.where, row.scope, cluster, out);
  return out;
}

std::vector<std::string> unknownInTokens(const std::vector<Token>& tokens,
                                         const inventory::Cluster& cluster, WallTime now) {
  std::vector<std::string> out;
  for (const auto& token : tokens) {
    if (token.isLogin() || token.revoked || token.expires_at <= now) continue;
    if (const auto unknown = unknownInScope(token.scope, cluster); !unknown.empty())
      out.push_back(fmt::format("token {}: {}", token.name, scopeLine(unknown)));
  }
  return out;
}

}  // namespace muster::api
