// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/wipe.h"

#include "app/site/site_records.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/lifecycle.h"
#include "cli/commands/print_done.h"
#include "inventory/parse/hostlist.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

int listGrants(const app::Options& options) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto granted = (*site)->records().wipeGrants();
  if (!granted) return report(granted.error());
  std::vector<std::string> names;
  for (const auto& node : *granted) names.push_back(node.str());
  if (options.json)
    std::cout << jsonText(nlohmann::json(names)) << '\n';
  else if (names.empty())
    std::cout << "no node may be wiped\n";
  else
    std::cout << fmt::format("may be wiped once: {}\n", inventory::foldHostlist(std::move(names)));
  return kOk;
}

}  // namespace

int wipe(const app::Options& options, const WipeArgs& args) {
  const auto& request = args.request;
  if (args.list) return listGrants(options);
  if (request.nodes.empty() || request.reason.empty()) {
    report(Error(ErrorCode::InvalidInput,
                 "say which nodes, and why: muster wipe NODES --reason TEXT (--list: which may be "
                 "wiped)"));
    return kUsage;
  }
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  const auto granted = (*site)->records().grantWipe(request);
  if (!granted) return report(granted.error());
  auto text = fmt::format("{} may be wiped once: {}\n", request.nodes, request.reason);
  if (request.data)
    text +=
        "The data on the disks of their storage sets is wiped too, unless a disk holds a "
        "finished set as declared.\n";
  else if (granted->has_storage_sets)
    text +=
        "This covers system disks. Disks of storage sets that hold anything but a finished set as "
        "declared stay as they are; to wipe those too: --data\n";
  std::vector<std::string> names;
  for (const auto& node : granted->nodes) names.push_back(node.str());
  return printDone(
      options,
      {{"nodes", names}, {"data", request.data}, {"has_storage_sets", granted->has_storage_sets}},
      text);
}

}  // namespace muster::cli
