// SPDX-License-Identifier: Apache-2.0
// The tables of `monitor`: what the long-running controller may do by itself.
#include "inventory/model/monitor.h"
#include "inventory/model/node.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::inventory {

namespace {

constexpr int kShortestInterval = 2,
              kLongestInterval = 50;  ///< seconds; a node must be drained within a minute
constexpr int kMaxNodesOut = 100'000;
constexpr int kMaxReboots = 10;
constexpr int kMaxCount = 1'000'000;
constexpr int kMaxRejoinMinutes = 7 * 24 * 60;

constexpr TextFormat kSymptom{"a symptom, with '*' at its end for any ending",
                              R"(^[a-z][a-z0-9.-]{0,62}[*]?$)", "xid.79"};

ObjectSpec make_breakerSpec() {
  return Table<Breaker>("breaker", "breaker",
                        "How much of a pool may be taken out without a person; the larger of the "
                        "two counts. Past it nothing is drained in "
                        "that pool until somebody says `muster monitor --acknowledge`.")
      .optional("percent", &Breaker::percent, integer(0, 100),
                "Per cent of the nodes that the pool has, or would have.")
      .optional("nodes", &Breaker::nodes, integer(0, kMaxNodesOut), "Nodes, also in a small pool.")
      .printsAlways()
      .spec();
}
MUSTER_SPEC(breakerSpec)

ObjectSpec make_symptomSpec() {
  return Table<SymptomRule>("symptom", "symptom",
                            "What is done about a symptom; it is added to the built-in table, or "
                            "replaces a row of it.")
      .required("action", &SymptomRule::action,
                choice({"watch", "drain", "reset", "reboot", "quarantine", "rma"}),
                "watch: it is only kept. drain: out of the pool, for a person. reset, reboot: "
                "drained, then repaired if repairs allows it. "
                "quarantine: kept out until a person lifts it. rma: quarantined, with the advice "
                "to send it back.")
      .optional("min_count", &SymptomRule::min_count, integer(1, kMaxCount),
                "So often since the node's boot; fewer are only watched.")
      .optional(
          "per_hour", &SymptomRule::per_hour, integer(1, kMaxCount),
          "Instead of min_count, for counters of ports: so often within the last hour, as the "
          "agent counts it.")
      .optional("advice", &SymptomRule::advice, text(kText), "What a person does about it.")
      .printsAlways()
      .spec();
}
MUSTER_SPEC(symptomSpec)

/// Rungs are climbed in their own order; a list in another one would promise what does not happen.
void checkMonitor(MonitorPolicy& policy, const Value& map, Reader& reader) {
  const Value& recovery = place(map, "recovery");
  for (std::size_t i = 1; i < policy.recovery.size() && i < recovery.items.size(); ++i)
    if (policy.recovery[i] <= policy.recovery[i - 1])
      reader.error(recovery.items[i],
                   fmt::format("\"{}\" stands after a stronger step, or twice",
                               shorten(recovery.items[i].text)),
                   "the order is retry, new-session, bmc-reset, power-cycle, ac-cycle, quarantine");
  const Value& repairs = place(map, "repairs");
  for (std::size_t i = 1; i < policy.repairs.size() && i < repairs.items.size(); ++i)
    if (std::find(policy.repairs.begin(), policy.repairs.begin() + static_cast<std::ptrdiff_t>(i),
                  policy.repairs[i]) != policy.repairs.begin() + static_cast<std::ptrdiff_t>(i))
      reader.error(repairs.items[i],
                   fmt::format("\"{}\" is listed twice", shorten(repairs.items[i].text)),
                   "remove one");
}

ObjectSpec make_monitorSpec() {
  return Table<MonitorPolicy>("monitor", "monitor",
                              "What the monitor may do by itself. Drains and quarantine it always "
                              "may; docs/monitor.md.")
      .optional("interval_seconds", &MonitorPolicy::interval_seconds,
                integer(kShortestInterval, kLongestInterval), "Between two reads of the fleet.")
      .optional(
          "on_config_change", &MonitorPolicy::on_config_change, choice({"drain", "ignore"}),
          "Nodes whose certificate is void only because their declaration has changed. drain: "
          "out of their pools. ignore: they stay in until apply or a rollout comes to them.")
      .optional("breaker", &MonitorPolicy::breaker, object(breakerSpec),
                "When to stop and ask a person.")
      .optional("repairs", &MonitorPolicy::repairs, listOf(choice({"reset", "reboot"})),
                "Repairs of drained nodes that need no person; absent: none.")
      .optional("reboots", &MonitorPolicy::reboots, integer(0, kMaxReboots),
                "Of one node for its symptoms, then it is quarantined.")
      .optional("rejoin_minutes", &MonitorPolicy::rejoin_minutes, integer(0, kMaxRejoinMinutes),
                "A node that the monitor has drained passes its gates again and rejoins when its "
                "reason has been gone for so long; absent: a "
                "person sees to it. Twice a day at most, and never from quarantine.")
      .optional("symptoms", &MonitorPolicy::symptoms, mapOf(object(symptomSpec), kSymptom),
                "Rows for the action table, by symptom.")
      .optional("recovery", &MonitorPolicy::recovery,
                listOf(choice({"retry", "new-session", "bmc-reset", "power-cycle", "ac-cycle",
                               "quarantine"})),
                "Steps that may be taken by themselves for a node that is stuck and takes no jobs, "
                "in this order; absent: none.")
      .printsAlways()
      .check(checkMonitor)
      .spec();
}

}  // namespace

MUSTER_SPEC(monitorSpec)

}  // namespace muster::inventory
