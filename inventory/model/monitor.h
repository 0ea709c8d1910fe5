// SPDX-License-Identifier: Apache-2.0
// MonitorPolicy: what the monitor may do by itself. Everything that disturbs work beyond a drain
// has to be allowed here.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::inventory {

/// What happens to nodes whose only fault is that their declaration has changed since their
/// certificate was signed.
enum class OnConfigChange { Drain, Ignore };

/// More of a pool than this is never taken out without a person. Both bounds hold; the larger one
/// counts.
struct Breaker {
  int percent = 10;
  int nodes = 1;
};

/// What a symptom asks for, from the mildest on.
enum class HealthAction { Watch, Drain, Reset, Reboot, Quarantine, Rma };
inline constexpr int kHealthActions = 6;

/// A row of the action table that is added to, or replaces a row of, the one that is built in
/// (monitor/symptoms.cc).
struct SymptomRule {
  std::string name;  ///< "xid.79"; a trailing '*' stands for any ending
  HealthAction action = HealthAction::Drain;
  int min_count = 1;            ///< counted since the node's boot; fewer are only watched
  std::optional<int> per_hour;  ///< instead: of the last hour; for counters that never go back
  std::string advice;
};

/// Steps of recovery of an action that is stuck, each stronger than the one before.
enum class Rung { Retry, NewSession, BmcReset, PowerCycle, AcCycle, Quarantine };

enum class Repair { Reset, Reboot };

struct MonitorPolicy {
  int interval_seconds = 20;
  OnConfigChange on_config_change = OnConfigChange::Drain;
  Breaker breaker;
  std::vector<Repair> repairs;  ///< of drained nodes, by itself; empty: a person does them
  int reboots = 2;              ///< of one node for its symptoms before it is quarantined
  std::vector<SymptomRule> symptoms;
  std::optional<int> rejoin_minutes;  ///< what the monitor drained rejoins when its reason has been
                                      ///< gone for so long; absent: a person sees to it
  std::vector<Rung>
      recovery;  ///< rungs that may be taken without a person, in their own order; empty: none
};

}  // namespace muster::inventory
