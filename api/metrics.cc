// SPDX-License-Identifier: Apache-2.0
#include "api/metrics.h"

#include "base/printable.h"
#include "base/version.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/json.h"
#include "monitor/breakers.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

namespace muster::api {
namespace {

/// A label's value: backslash, quote and line feed are escaped.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

class Text {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void sample(std::initializer_list<std::pair<std::string_view, std::string_view>> labels,
              std::uint64_t value) {
    out_ += name_;
    std::string_view before = "{";
    for (const auto& [label, text] : labels) {
      out_ += fmt::format("{}{}=\"{}\"", before, label, escaped(text));
      before = ",";
    }
    out_ += fmt::format("{} {}\n", labels.size() > 0 ? "}" : "", value);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string name_, out_;
};

using NodeKind = std::tuple<std::string, std::string, std::string>;  ///< state, pool, profile

void addNodes(Text& out, const inventory::Cluster& cluster, const Fleet& fleet) {
  std::map<NodeKind, std::uint64_t> kinds;
  std::uint64_t stale = 0, with_findings = 0;
  for (const auto& row : fleet.status.nodes) {
    const auto* node = cluster.findNode(NodeName(row.node));
    if (!node) continue;
    ++kinds[{row.state, cluster.profileOf(*node).pool, row.profile}];
    stale += !row.stale.empty();
    with_findings += row.findings > 0;
  }
  out.family("muster_nodes", "gauge", "Nodes of the inventory by state, pool and profile.");
  for (const auto& [kind, count] : kinds)
    out.sample(
        {{"state", std::get<0>(kind)}, {"pool", std::get<1>(kind)}, {"profile", std::get<2>(kind)}},
        count);
  out.family("muster_nodes_stale", "gauge",
             "Nodes of which something could not be read at the last look.");
  out.sample({}, stale);
  out.family("muster_nodes_with_findings", "gauge", "Nodes with open findings.");
  out.sample({}, with_findings);
}

}  // namespace

Result<std::string> metricsText(SiteReader& reader, const Call&) {
  TRY(session, reader.session());
  TRY(fleet, reader.fleet());
  TRY(found, reader.store().findings(nullptr));
  TRY(breakers, monitor::Breakers(reader.store()).read());
  TRY(last, reader.store().lastEvents(1, nullptr));
  Text out;
  out.family("muster_build_info", "gauge", "Always 1; the version is a label.");
  out.sample({{"version", kVersion}}, 1);
  addNodes(out, session->cluster(), *fleet);
  std::map<std::string, std::uint64_t> findings{{"info", 0}, {"warning", 0}, {"error", 0}};
  for (const auto& finding : found)
    ++findings[std::string(lifecycle::severityWord(finding.severity))];
  out.family("muster_findings", "gauge", "Open findings by severity.");
  for (const auto& [severity, count] : findings) out.sample({{"severity", severity}}, count);
  out.family("muster_breaker_open", "gauge", "1 while the pool's circuit breaker is open.");
  for (const auto& [pool, state] : breakers) out.sample({{"pool", pool}}, state.open ? 1 : 0);
  out.family("muster_monitor_running", "gauge",
             "1 while a monitor has looked within the last minute.");
  out.sample({}, fleet->status.monitor.running ? 1 : 0);
  out.family("muster_events_total", "counter", "Sequence number of the log's newest entry.");
  out.sample({}, last.empty() ? 0 : static_cast<std::uint64_t>(last.back().sequence));
  out.family("muster_api_requests_total", "counter", "Answered requests by route and status.");
  for (const auto& [key, count] : reader.counters().answered)
    out.sample({{"route", key.first}, {"status", std::to_string(key.second)}}, count);
  out.family("muster_api_event_streams", "gauge", "Event streams that are open.");
  out.sample({}, reader.counters().streams);
  return out.take();
}

}  // namespace muster::api
