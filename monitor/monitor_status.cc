// SPDX-License-Identifier: Apache-2.0
#include "monitor/monitor_status.h"

#include "base/json_input.h"
#include "base/printable.h"
#include "lifecycle/model/json.h"
#include "lifecycle/model/unread.h"
#include "monitor/breakers.h"

#include <fmt/format.h>

namespace muster::monitor {
namespace {

using namespace lifecycle;
using nlohmann::json;

constexpr std::chrono::seconds kAgentTimeout{120};

}  // namespace

Result<MonitorStatus> monitorStatus(Store& store, WallTime now) {
  MonitorStatus out;
  TRY(text, store.getValue(std::string(kMonitorHeartbeat)));
  TRY(states, Breakers(store).read());
  if (text) {
    const auto heartbeat = jsonOrNone(*text, kKeptJson);
    const auto at = heartbeat.is_object() ? parseWallTime(heartbeat.value("at", ""))
                                          : Result<WallTime>(fail(ErrorCode::Corrupt, "no time"));
    const bool ended = heartbeat.is_object() && heartbeat.contains("ended");
    out.running = at && now - *at < kAgentTimeout && !ended;
    if (heartbeat.is_object()) out.holder = heartbeat.value("holder", "");
    if (at)
      out.text = out.running ? fmt::format(
                                   "monitor: running, polled {} ago; {} nodes are being "
                                   "drained\n",
                                   ageText(now, *at), heartbeat.value("draining", 0))
                             : fmt::format("monitor: not running; its last poll was at {}\n",
                                           muster::toString(*at));
    if (out.running && heartbeat.is_object())
      for (const auto& trouble : heartbeat.value("troubles", json::array()))
        if (trouble.is_string())
          out.text +=
              fmt::format("monitor: cannot read: {}\n", printable(trouble.get<std::string>()));
  }
  for (const auto& [pool, state] : states) {
    if (!state.open) continue;
    out.tripped = true;
    out.text += fmt::format(
        "monitor: CIRCUIT BREAKER OPEN in pool {}: {} nodes would be drained; `muster why "
        "@cluster`, "
        "then `muster monitor --acknowledge --reason TEXT`\n",
        pool, state.nodes.size());
  }
  return out;
}

Result<void> markMonitorEnded(Store& store, WallTime now) {
  const std::string key(kMonitorHeartbeat);
  TRY(text, store.getValue(key));
  auto heartbeat = text ? jsonOrNone(*text, kKeptJson) : json();
  if (!heartbeat.is_object()) return {};
  heartbeat["ended"] = muster::toString(now);
  TRY_OK(store.exchangeValue(key, text, canonical(heartbeat)));  // a newer one is another monitor's
  return {};
}

std::string watchDuringRollout(const Watchers& watchers, const MonitorStatus& kept) {
  constexpr std::string_view kNobody =
      "nobody watches the health and the certificates of the other nodes";
  if (watchers.several_controllers)
    return fmt::format(
        "while it runs, {}: only the host that serves the site watches them, which is this one; "
        "the hosts that stand by do not\n",
        kNobody);
  const bool another = !watchers.own_store && kept.running && !kept.holder.empty() &&
                       kept.holder != watchers.this_holder;
  if (another)
    return fmt::format(
        "while it runs, muster monitor of this state folder stands aside; that of {}, which has "
        "the "
        "same store, goes on watching the other nodes\n",
        kept.holder);
  return fmt::format("while it runs, muster monitor of this state folder stands aside: {}\n",
                     kNobody);
}

}  // namespace muster::monitor
