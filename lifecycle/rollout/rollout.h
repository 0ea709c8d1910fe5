// SPDX-License-Identifier: Apache-2.0
// A rollout as it is kept: what was asked for, the frozen plan, the waves, and how far each node
// has come. docs/adr/0013
//
//   node:     waiting → started → done | failed          rollback: started, done, failed →
//   returning → returned | rollback-failed
//             waiting → skipped (not as frozen)          untouched: had nothing to do when the plan
//             was frozen
//   rollout:  running ⇄ paused, running → halted → running, → aborted, → done; forward → back →
//   rolled-back
#pragma once

#include "inventory/parse/change.h"
#include "lifecycle/rollout/regression.h"
#include "lifecycle/rollout/waves.h"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::lifecycle {

enum class RolloutState { Running, Paused, Halted, Aborted, Done, RolledBack };
enum class RolloutDirection { Forward, Back };
enum class RolloutNodeState {
  Waiting,
  Untouched,
  Skipped,
  Started,
  Done,
  Failed,
  Returning,
  Returned,
  RollbackFailed
};
std::string_view toString(RolloutState state);
std::string_view toString(RolloutDirection direction);
std::string_view toString(RolloutNodeState state);

/// What a gate between two waves has found.
struct GateReport {
  std::string wave;
  bool passed = false;
  std::string accepted_by;  ///< who let it go on although it failed
  int attempted = 0, failed = 0;
  std::vector<std::string> reasons;  ///< why it failed
  bool blames_change = false;  ///< one of them is the change's: nodes failed, left their pool, or
                               ///< became slower. Others only keep it from going on
  std::vector<std::string> notes;  ///< what it could not evaluate, and what policy did then
  std::vector<Comparison> comparisons;
};

struct Rollout {
  std::string id;
  WallTime at{};
  std::string user, host, command;
  std::string change_file;  ///< where its relative paths start, and what messages name
  std::string change_text;  ///< YAML
  inventory::RolloutPolicy policy;
  std::string wipe_reason;  ///< an image change: why the disks may be wiped; empty: they may not
  std::string inventory_digest, plan_hash;      ///< of what was frozen
  std::map<std::string, std::string> declared;  ///< profile → what the inventory said of it
                                                ///< (declarationOf): later edits outrank the change
  std::vector<Wave> waves;
  std::vector<std::string> irreversible;  ///< what a rollback will not bring back

  RolloutState state = RolloutState::Running;
  RolloutDirection direction = RolloutDirection::Forward;
  std::size_t wave = 0;                ///< the one that is under way; waves.size(): all are through
  std::string accepted_by;             ///< the gate of `wave` counts as passed
  std::optional<WallTime> soak_until;  ///< `wave` has passed its gate and is watched until then
  std::int64_t epoch = 0;  ///< grows with every runner: an older one cannot write any more
  std::vector<std::string> reasons;  ///< why it stands
  std::vector<GateReport> gates;

  /// Work may be under way, or is meant to go on: no other rollout starts beside it.
  bool isOpen() const {
    return state == RolloutState::Running || state == RolloutState::Paused ||
           state == RolloutState::Halted;
  }
};

struct FrozenAction {
  std::string id, to;
  Disruption disruption = Disruption::None;
};
/// What the plan said about a node, and what was known of it before.
struct FrozenNode {
  std::vector<FrozenAction> actions;
  Measures before;
};

struct NodeProgress {
  RolloutNodeState state = RolloutNodeState::Waiting;
  std::string why;        ///< in words, where it is not done
  WallTime started_at{};  ///< measurements from then on are "after"
  Measures after;
};

/// Of a profile, what a change can alter, as text to compare.
std::string declarationOf(const inventory::Profile& profile);

/// Whether the node's declaration is the changed one.
bool isChanged(const Rollout& rollout, RolloutNodeState state);

nlohmann::json toJson(const Rollout& rollout);
nlohmann::json toJson(const FrozenNode& node);
nlohmann::json toJson(const NodeProgress& progress);
nlohmann::json toJson(const GateReport& gate);
/// Errors: Corrupt
Result<Rollout> rolloutFromJson(std::string_view text);
Result<std::map<NodeName, FrozenNode>> frozenFromJson(std::string_view text);
Result<std::map<NodeName, NodeProgress>> progressFromJson(std::string_view text);

}  // namespace muster::lifecycle
