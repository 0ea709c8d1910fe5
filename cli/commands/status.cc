// SPDX-License-Identifier: Apache-2.0
// status, why, events, history: what the store knows.
#include "app/nodes/status.h"

#include "app/records/records.h"
#include "app/site/site_records.h"
#include "base/printable.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/lifecycle.h"
#include "cli/terminal.h"
#include "cli/view/common_text.h"
#include "cli/view/progress.h"
#include "cli/view/status_view.h"

#include <unistd.h>

#include <iostream>

namespace muster::cli {
namespace {

constexpr std::chrono::milliseconds kWatchPeriod{500};
constexpr std::size_t kMaxExplained = 256;  ///< nodes that one `why` explains

std::string leaderText(const app::SiteStatus& site) {
  if (!site.several_controllers) return {};
  if (!site.leader)
    return fmt::format("which host serves the site is not known: {}\n", site.leader.error().str());
  const auto& leader = *site.leader;
  return leader ? fmt::format(
                      "{} serves the site, at {}{}; only it monitors, hosts that stand by do not\n",
                      leader->holder, leader->address,
                      leader->api_url.empty() ? "" : " (" + leader->api_url + ")")
                : "no host has served the site yet\n";
}

std::string monitorText(const app::SiteStatus& site) {
  auto out = site.monitor.text;
  if (site.monitor_waits_for_rollout)
    out += fmt::format(
        "monitor: waits while rollout {} runs; health and certificates of the other nodes are not "
        "watched meanwhile\n",
        *site.monitor_waits_for_rollout);
  return out + leaderText(site);
}

std::string overridesText(const app::SiteStatus& site) {
  std::string out;
  for (const auto& line : site.overrides) out += fmt::format("OVERRIDE: {}\n", printable(line));
  for (const auto& line : site.access_problems) out += fmt::format("ACCESS: {}\n", printable(line));
  return out;
}

}  // namespace

int status(const app::Options& options, const StatusArgs& args) {
  const auto asked = askedSite(options);
  if (!asked) return report(asked.error());
  const auto detail = args.expand ? StatusDetail::Nodes : StatusDetail::Auto;
  const bool redraws = args.watch && !options.json && ::isatty(STDOUT_FILENO) == 1;
  std::string shown;
  bool stopped = false;  // the monitor's circuit breaker: the exit status says so too
  do {
    const auto site = (*asked)->status(args.filter);
    if (!site) return report(site.error());
    stopped = site->monitor.tripped;
    if (options.json && stopped) std::cerr << site->monitor.text;
    const auto overrides = overridesText(*site);
    if (options.json && !overrides.empty()) std::cerr << overrides;
    const auto text = options.json ? statusJson(site->nodes)
                                   : statusText(site->nodes, SystemClock().now(), detail) +
                                         monitorText(*site) + overrides;
    if (text != shown && redraws) writeRaw(std::cout, "\x1b[H\x1b[2J");
    if (text != shown) std::cout << text << std::flush;
    shown = text;
  } while (args.watch && std::cout && waitWhileRead(kWatchPeriod));
  return stopped ? kFailed : kOk;
}

namespace {

/// Many nodes: equal explanations once.
int whySeveral(const app::Options& options, const std::vector<lifecycle::Explanation>& all) {
  if (options.json) {
    std::cout << "[";
    for (const auto& each : all) std::cout << (&each == &all.front() ? "" : ",") << each.toJson();
    std::cout << "]\n";
    return kOk;
  }
  NodesByText groups;
  for (const auto& each : all) {
    auto text = each.state;
    if (!each.observed.empty())
      text += fmt::format("\n  {:<14} {}\n  {:<14} {}", "expected", each.expected, "next step",
                          each.next_step);
    groups.add(each.subject.str(), text);
  }
  std::cout << fmt::format("{} nodes, {} different answers\n\n", all.size(),
                           groups.groups().size());
  for (const auto& group : groups.groups())
    std::cout << fmt::format("{}: {}\n", group.hostlist(), printableLines(group.shown()));
  return kOk;
}

}  // namespace

int why(const app::Options& options, const WhyArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto explained = (*site)->explain(args.filter, kMaxExplained);
  if (!explained) return report(explained.error());
  if (explained->size() != 1) return whySeveral(options, *explained);
  const auto& only = explained->front();
  std::cout << (options.json ? only.toJson() : only.text());
  return kOk;
}

int events(const app::Options& options, const EventsArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto found = (*site)->lastEvents(args.node, args.limit);
  if (!found) return report(found.error());
  for (const auto& event : *found)
    std::cout << (options.json ? toJson(event) : eventLine(event)) << '\n';
  return kOk;
}

int history(const app::Options& options, const HistoryArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto found = (*site)->records().history(args.what, args.limit);
  if (!found) return report(found.error());
  std::cout << (options.json ? found->toJson() : found->text());
  return kOk;
}

}  // namespace muster::cli
