// SPDX-License-Identifier: Apache-2.0
// quarantine: who is kept out of the pools, and releasing a node by a person's word.
#include "app/quarantine.h"

#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/monitor.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {

int quarantineList(const app::Options& options) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto entries = (*site)->quarantine();
  if (!entries) return report(entries.error());
  nlohmann::json out = nlohmann::json::array();
  for (const auto& [node, entry] : *entries) {
    if (!options.json)
      std::cout << fmt::format("{:<12} {}  by {}: {}\n", node.str(), muster::toString(entry.since),
                               entry.by, entry.reason);
    out.push_back({{"node", node.str()},
                   {"since", muster::toString(entry.since)},
                   {"by", entry.by},
                   {"reason", entry.reason},
                   {"evidence", entry.evidence}});
  }
  if (options.json) std::cout << jsonText(out, 2) << "\n";
  if (!options.json && entries->empty()) std::cout << "no node is in quarantine\n";
  return kOk;
}

int quarantineAdd(const app::Options& options, const NodesReasonArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto added = (*site)->addToQuarantine(args.nodes, args.reason);
  if (!added) return report(added.error());
  nlohmann::json out = nlohmann::json::array();
  for (const auto& each : *added)
    out.push_back({{"node", each.node.str()}, {"added", each.is_new}, {"reason", each.reason}});
  if (options.json) {
    std::cout << jsonText(out, 2) << "\n";
    return kOk;
  }
  for (const auto& each : *added)
    std::cout << fmt::format("{}: {}\n", each.node.str(),
                             each.is_new
                                 ? "in quarantine; `muster monitor` or `muster apply` drains it"
                                 : fmt::format("was in quarantine already; its reason stays: {}. "
                                               "The log keeps this one as well: {}",
                                               each.reason, args.reason));
  return kOk;
}

int quarantineRemove(const app::Options& options, const NodeReasonArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto removed = (*site)->removeFromQuarantine(NodeName(args.node), args.reason);
  if (!removed) return report(removed.error());
  if (options.json) {
    std::cout << jsonText(nlohmann::json{{"node", args.node}, {"removed", true}}) << "\n";
    return kOk;
  }
  std::cout << fmt::format(
      "{0} is out of quarantine; `muster apply --nodes {0}` validates it again and lets it join\n",
      args.node);
  return kOk;
}

}  // namespace muster::cli
