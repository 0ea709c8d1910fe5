// SPDX-License-Identifier: Apache-2.0
// The tables of `keep`: what the long-running controller may do by itself.
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
      .optional("at_least", &SymptomRule::at_least, integer(1, kMaxCount),
                "So often since the node's boot; fewer are only watched.")
      .optional("per_hour", &SymptomRule::per_hour, integer(1, kMaxCount),
                "Instead of at_least, for counters of ports: so often within the last hour, as the "
                "agent counts it.")
      .optional("advice", &SymptomRule::advice, text(kText), "What a person does about it.")
      .spec();
}
MUSTER_SPEC(symptomSpec)

/// Rungs are climbed in their own order; a list in another one would promise what does not happen.
void checkKeep(KeepPolicy& keep, const Value& map, Reader& reader) {
  const Value& recovery = place(map, "recovery");
  for (std::size_t i = 1; i < keep.recovery.size() && i < recovery.items.size(); ++i)
    if (keep.recovery[i] <= keep.recovery[i - 1])
      reader.error(recovery.items[i],
                   fmt::format("\"{}\" stands after a stronger step, or twice",
                               shorten(recovery.items[i].text)),
                   "the order is retry, new-session, bmc-reset, power-cycle, ac-cycle, quarantine");
  const Value& repairs = place(map, "repairs");
  for (std::size_t i = 1; i < keep.repairs.size() && i < repairs.items.size(); ++i)
    if (std::find(keep.repairs.begin(), keep.repairs.begin() + static_cast<std::ptrdiff_t>(i),
                  keep.repairs[i]) != keep.repairs.begin() + static_cast<std::ptrdiff_t>(i))
      reader.error(repairs.items[i],
                   fmt::format("\"{}\" is listed twice", shorten(repairs.items[i].text)),
                   "remove one");
}

ObjectSpec make_keepSpec() {
  return Table<KeepPolicy>(
             "keep", "keep",
             "What `muster monitor` may do by itself. Drains and quarantine it always "
             "may; docs/monitor.md.")
      .optional("interval_seconds", &KeepPolicy::interval_seconds,
                integer(kShortestInterval, kLongestInterval), "Between two looks.")
      .optional("declaration_changed", &KeepPolicy::declaration_changed, choice({"drain", "leave"}),
                "Nodes whose certificate is void only because their declaration has changed: drain "
                "them, or leave them in until apply or a "
                "rollout comes to them.")
      .optional("breaker", &KeepPolicy::breaker, object(breakerSpec), "When to stop and shout.")
      .optional("repairs", &KeepPolicy::repairs, listOf(choice({"reset", "reboot"})),
                "Repairs of drained nodes that need no person; absent: none.")
      .optional("reboots", &KeepPolicy::reboots, integer(0, kMaxReboots),
                "Of one node for its symptoms, then it is quarantined.")
      .optional("rejoin_minutes", &KeepPolicy::rejoin_minutes, integer(0, kMaxRejoinMinutes),
                "A node that keep itself has drained passes its gates again and rejoins when its "
                "reason has been gone for so long; absent: a "
                "person sees to it. Twice a day at most, and never from quarantine.")
      .optional("symptoms", &KeepPolicy::symptoms, mapOf(object(symptomSpec), kSymptom),
                "Rows for the action table, by symptom.")
      .optional("recovery", &KeepPolicy::recovery,
                listOf(choice({"retry", "new-session", "bmc-reset", "power-cycle", "ac-cycle",
                               "quarantine"})),
                "Steps that may be taken by themselves for a node that is stuck and takes no jobs, "
                "in this order; absent: none.")
      .check(checkKeep)
      .spec();
}

}  // namespace

MUSTER_SPEC(keepSpec)

}  // namespace muster::inventory
