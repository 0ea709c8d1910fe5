// SPDX-License-Identifier: Apache-2.0
// status, why, events, history: what the store knows.
#include "app/status.h"

#include "app/records.h"
#include "base/json_output.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "cli/commands/lifecycle.h"
#include "cli/view/progress.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <thread>

namespace muster::cli {
namespace {

constexpr std::chrono::milliseconds kWatchPeriod{500};
constexpr std::size_t kMaxImageBytes = 24;

std::string imageOf(const app::NodeStatus& node) {
  return std::string(cutToBytes(node.image, kMaxImageBytes));
}

std::string nodesText(const std::vector<app::NodeStatus>& nodes) {
  std::string out = fmt::format("{:<12}{:<16}{:<10}{:<26}{:<13}{}\n", "node", "state", "pool",
                                "image", "certificate", "findings");
  for (const auto& node : nodes)
    out += fmt::format("{:<12}{:<16}{:<10}{:<26}{:<13}{}\n", node.node, node.state,
                       printable(node.pool), printable(imageOf(node)), printable(node.certificate),
                       node.findings);
  return out;
}

std::string nodesJson(const std::vector<app::NodeStatus>& nodes) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& node : nodes)
    out.push_back({{"node", node.node},
                   {"state", node.state},
                   {"pool", node.pool},
                   {"image", imageOf(node)},
                   {"certificate", node.certificate},
                   {"findings", node.findings}});
  return jsonText(out, 2) + "\n";
}

std::string leaderText(const app::SiteStatus& site) {
  if (!site.several_controllers) return {};
  if (!site.leader)
    return fmt::format("which host serves the site is not known: {}\n", site.leader.error().str());
  const auto& leader = *site.leader;
  return leader ? fmt::format(
                      "{} serves the site, at {}; only it monitors, hosts that stand by do not\n",
                      leader->holder, leader->address)
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

}  // namespace

int status(const app::Options& options, const StatusArgs& args) {
  auto reader = app::StatusReader::open(options);
  if (!reader) return report(reader.error());
  std::string shown;
  bool stopped = false;  // the monitor's circuit breaker: the exit status says so too
  do {
    const auto site = reader->read();
    if (!site) return report(site.error());
    stopped = site->monitor.tripped;
    if (options.json && stopped) std::cerr << site->monitor.text;
    const auto text =
        options.json ? nodesJson(site->nodes) : nodesText(site->nodes) + monitorText(*site);
    if (text != shown && args.watch && !options.json) writeRaw(std::cout, "\x1b[H\x1b[2J");
    if (text != shown) std::cout << text << std::flush;
    shown = text;
    if (args.watch) std::this_thread::sleep_for(kWatchPeriod);
  } while (args.watch);
  return stopped ? kFailed : kOk;
}

int why(const app::Options& options, const NodeArgs& args) {
  const auto explanation = app::explainSubject(options, args.node);
  if (!explanation) return report(explanation.error());
  std::cout << (options.json ? explanation->toJson() + "\n" : explanation->text());
  return kOk;
}

int events(const app::Options& options, const EventsArgs& args) {
  const auto found = app::lastEvents(options, args.node, args.limit);
  if (!found) return report(found.error());
  for (const auto& event : *found)
    std::cout << (options.json ? toJson(event) : eventLine(event)) << '\n';
  return kOk;
}

int history(const app::Options& options, const HistoryArgs& args) {
  const auto found = app::history(options, args.what, args.limit);
  if (!found) return report(found.error());
  std::cout << (options.json ? found->toJson() : found->text());
  return kOk;
}

}  // namespace muster::cli
