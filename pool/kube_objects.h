// SPDX-License-Identifier: Apache-2.0
// Nodes and pods of Kubernetes, as far as a drain cares, and what a drain does with each pod.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "inventory/model/fwd.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace muster::pool::kube {

// Annotations and labels that muster leaves on a node. Only a cordon that bears the mark is
// muster's own.
inline constexpr const char* kCordonedMark = "muster/cordoned";
inline constexpr const char* kReasonMark = "muster/drain-reason";
inline constexpr const char* kSinceMark = "muster/drain-since";
inline constexpr const char* kCertificateMark = "muster/certificate";
inline constexpr const char* kCertifiedLabel = "muster/certified";

struct Taint {
  std::string key, value, effect;
  /// "KEY[=VALUE]:EFFECT", as the inventory has checked it.
  static Taint parse(std::string_view text);
  nlohmann::json json() const;
};

struct Node {
  enum class Ready { Yes, No, Silent };  ///< Silent: its kubelet has stopped reporting
  std::string name, resource_version;
  bool unschedulable = false;
  Ready ready = Ready::Silent;
  std::string not_ready_because;
  std::vector<nlohmann::json>
      taints;  ///< as the server gave them: what we do not know goes back unharmed
  nlohmann::json annotations, labels;  ///< objects

  /// Errors: Corrupt
  static Result<Node> parse(const nlohmann::json& object);
  bool has(const Taint& taint) const;
  std::string annotation(const char* key) const;
  bool cordonedByPerson() const { return unschedulable && annotation(kCordonedMark).empty(); }
  std::string state() const;  ///< as kubectl says it: "Ready,SchedulingDisabled"
};

struct Pod {
  std::string name_space, name, uid, phase, restart_policy,
      controller;                   ///< controller: kind of its owner; empty: none
  bool is_static = false;           ///< a mirror of a pod that the kubelet has from a file
  std::string empty_dir;            ///< the name of such a volume
  std::optional<WallTime> ends_by;  ///< it is being deleted, and its grace ends then

  /// Errors: Corrupt
  static Result<Pod> parse(const nlohmann::json& object);
  std::string str() const { return name_space + "/" + name; }
};

enum class Fate {
  None,     ///< no work: ended, of a DaemonSet, static, or given up by Kubernetes itself
  Leaving,  ///< is ending
  Waits,    ///< ends by itself
  Held,     ///< must not be evicted, says the pool's policy
  Evict,
};
struct Verdict {
  Fate fate = Fate::None;
  std::string why;  ///< for Leaving, Waits and Held
};
/// Pure. What a drain does with a pod of this node.
Verdict evaluate(const Pod& pod, const Node& node, const inventory::EvictionRules& rules,
                 WallTime now);

}  // namespace muster::pool::kube
