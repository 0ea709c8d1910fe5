// SPDX-License-Identifier: Apache-2.0
// monitor: the controller that stays.
#include "cli/commands/monitor.h"
#include "app/controller/monitor_run.h"
#include "app/site/site_records.h"
#include "cli/commands/asked_site.h"
#include "cli/view/console_progress.h"

#include <fmt/ranges.h>

#include <csignal>
#include <iostream>

namespace muster::cli {
namespace {

int acknowledge(const app::Options& options, const std::string& reason) {
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  const auto closed = (*site)->records().acknowledgeBreakers(reason);
  if (!closed) return report(closed.error());
  if (closed->empty()) std::cout << "no circuit breaker is open\n";
  for (const auto& [pool, nodes] : *closed) {
    std::vector<std::string> names;
    for (const auto& node : nodes) names.push_back(node.str());
    std::cout << fmt::format(
        "pool {}: the monitor drains those of these nodes that are still unfit at its next poll: "
        "{}\n",
        pool, fmt::join(names, ", "));
  }
  return kOk;
}

}  // namespace

int monitorNodes(const app::Options& options, const MonitorArgs& args) {
  if (args.acknowledge) return acknowledge(options, args.reason);
  if (const auto here = requireNoServer(options, "the monitor watches the site from its host");
      !here)
    return report(here.error());
  std::signal(SIGHUP, [](int) { app::requestReload(); });
  MonitorProgress progress(options.json);
  return report(app::runMonitor(options, progress));
}

}  // namespace muster::cli
