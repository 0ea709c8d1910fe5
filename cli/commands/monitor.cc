// SPDX-License-Identifier: Apache-2.0
// monitor: the controller that stays.
#include "cli/commands/monitor.h"
#include "app/controller/monitor_run.h"
#include "app/site/site_records.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/print_done.h"
#include "cli/view/console_progress.h"
#include "inventory/parse/hostlist.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <iostream>

namespace muster::cli {
namespace {

int acknowledge(const app::Options& options, const std::string& reason) {
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  const auto closed = (*site)->records().acknowledgeBreakers(reason);
  if (!closed) return report(closed.error());
  std::string text = closed->empty() ? "no circuit breaker is open\n" : "";
  auto all = nlohmann::json::array();
  for (const auto& [pool, nodes] : *closed) {
    std::vector<std::string> names;
    for (const auto& node : nodes) names.push_back(node.str());
    text += fmt::format(
        "pool {}: the monitor drains those of these nodes that are still unfit at its next poll: "
        "{}\n",
        pool, fmt::join(names, ", "));
    all.push_back({{"pool", pool}, {"nodes", names}});
  }
  return printDone(options, all, text);
}

int showBreakers(const app::Options& options) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto open = (*site)->records().breakers();
  if (!open) return report(open.error());
  auto all = nlohmann::json::array();
  for (const auto& [pool, nodes] : *open) {
    std::vector<std::string> names;
    for (const auto& node : nodes) names.push_back(node.str());
    const auto count = names.size();
    const auto hostlist = inventory::foldHostlist(std::move(names));
    all.push_back({{"pool", pool}, {"nodes", hostlist}, {"nodes_count", count}});
    if (!options.json)
      std::cout << fmt::format("{:<16} {:>5} not drained  {}\n", pool, count, hostlist);
  }
  if (options.json)
    std::cout << jsonText(all) << '\n';
  else if (open->empty())
    std::cout << "no circuit breaker is open\n";
  else
    std::cout
        << "`muster why @cluster` says why; muster monitor --acknowledge --reason TEXT closes "
           "them\n";
  return kOk;
}

}  // namespace

int monitorNodes(const app::Options& options, const MonitorArgs& args) {
  if (args.breakers) return showBreakers(options);
  if (args.acknowledge) return acknowledge(options, args.reason);
  if (const auto here = requireNoServer(options, "the monitor watches the site from its host");
      !here)
    return report(here.error());
  std::signal(SIGHUP, [](int) { app::requestReload(); });
  MonitorProgress progress(options.json);
  return report(app::runMonitor(options, progress));
}

}  // namespace muster::cli
