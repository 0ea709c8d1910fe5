// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/pool.h"

#include "app/pool_holds.h"
#include "base/json_output.h"
#include "base/printable.h"
#include "cli/commands/asked_site.h"
#include "inventory/parse/hostlist.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

int printJson(const std::vector<app::PoolHold>& holds) {
  auto out = nlohmann::json::array();
  for (const auto& hold : holds)
    out.push_back({{"node", hold.node.str()},
                   {"hold", hold.hold},
                   {"seen_at", muster::toString(hold.seen_at)},
                   {"overridden", hold.overridden},
                   {"overridden_by", hold.overridden_by}});
  std::cout << jsonText(out, 2) << "\n";
  return kOk;
}

}  // namespace

int poolHolds(const app::Options& options) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto holds = (*site)->poolHolds();
  if (!holds) return report(holds.error());
  if (options.json) return printJson(holds->holds);
  for (const auto& hold : holds->holds)
    std::cout << fmt::format(
        "{:<12} {} (seen {}){}\n", hold.node.str(), printable(hold.hold),
        muster::toString(hold.seen_at),
        hold.overridden ? "; overridden by " + printable(hold.overridden_by) : std::string());
  if (holds->holds.empty() && holds->unread.empty())
    std::cout << "no person has drained a node, as far as muster has seen\n";
  if (!holds->unread.empty()) {
    std::vector<std::string> names;
    for (const auto& node : holds->unread) names.push_back(node.str());
    std::cout << fmt::format(
        "not known of {}: the scheduler has not been asked yet, or did not answer; `muster plan` "
        "asks it, `muster why NODE` says what it answered\n",
        inventory::foldHostlist(names));
  }
  return kOk;
}

int poolOverride(const app::Options& options, const NodesReasonArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto holds = (*site)->overridePoolHolds(args.nodes, args.reason);
  if (!holds) return report(holds.error());
  if (options.json) return printJson(*holds);
  for (const auto& hold : *holds)
    std::cout << fmt::format(
        "{}: muster may disturb it although a person has drained it ({}); it takes jobs again when "
        "that person resumes it\n",
        hold.node.str(), printable(hold.hold));
  return kOk;
}

}  // namespace muster::cli
