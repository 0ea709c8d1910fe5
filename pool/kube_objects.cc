// SPDX-License-Identifier: Apache-2.0
#include "pool/kube_objects.h"

#include "inventory/model/node.h"
#include "inventory/model/pools.h"
#include "pool/kube_api.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::pool::kube {

namespace {

constexpr const char* kMirrorMark = "kubernetes.io/config.mirror";
constexpr std::string_view kDaemonSet = "DaemonSet";

nlohmann::json objectAt(const nlohmann::json& value, std::initializer_list<const char*> path) {
  const auto& found = valueAt(value, path);
  return found.is_object() ? found : nlohmann::json::object();
}

void readReadiness(const nlohmann::json& object, Node& node) {
  node.not_ready_because = "its kubelet has not reported yet";
  for (const auto& condition : valueAt(object, {"status", "conditions"})) {
    if (textAt(condition, {"type"}) != "Ready") continue;
    const auto status = textAt(condition, {"status"});
    node.ready = status == "True"    ? Node::Ready::Yes
                 : status == "False" ? Node::Ready::No
                                     : Node::Ready::Silent;
    node.not_ready_because =
        fmt::format("{}: {}", textAt(condition, {"reason"}), textAt(condition, {"message"}));
  }
}

}  // namespace

Taint Taint::parse(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto name = text.substr(0, colon);
  const auto equals = name.find('=');
  return {std::string(name.substr(0, equals)),
          equals == std::string_view::npos ? std::string() : std::string(name.substr(equals + 1)),
          colon == std::string_view::npos ? "NoSchedule" : std::string(text.substr(colon + 1))};
}

nlohmann::json Taint::json() const {
  nlohmann::json out = {{"key", key}, {"effect", effect}};
  if (!value.empty()) out["value"] = value;
  return out;
}

Result<Node> Node::parse(const nlohmann::json& object) {
  Node node;
  node.name = textAt(object, {"metadata", "name"});
  node.resource_version = textAt(object, {"metadata", "resourceVersion"});
  if (textAt(object, {"kind"}) != "Node" || node.name.empty() || node.resource_version.empty())
    return fail(ErrorCode::Corrupt, "Kubernetes did not return a Node");
  const auto& off = valueAt(object, {"spec", "unschedulable"});
  node.unschedulable = off.is_boolean() && off.get<bool>();
  for (const auto& taint : valueAt(object, {"spec", "taints"})) node.taints.push_back(taint);
  node.annotations = objectAt(object, {"metadata", "annotations"});
  node.labels = objectAt(object, {"metadata", "labels"});
  readReadiness(object, node);
  return node;
}

/// A taint is its key and effect; two values of one are not possible.
bool Node::has(const Taint& taint) const {
  return std::any_of(taints.begin(), taints.end(), [&taint](const nlohmann::json& one) {
    return textAt(one, {"key"}) == taint.key && textAt(one, {"effect"}) == taint.effect;
  });
}

std::string Node::annotation(const char* key) const { return textAt(annotations, {key}); }

std::string Node::state() const {
  std::string text =
      ready == Ready::Yes ? "Ready" : fmt::format("NotReady ({})", not_ready_because);
  return unschedulable ? text + ",SchedulingDisabled" : text;
}

Result<Pod> Pod::parse(const nlohmann::json& object) {
  Pod pod;
  pod.name_space = textAt(object, {"metadata", "namespace"});
  pod.name = textAt(object, {"metadata", "name"});
  pod.uid = textAt(object, {"metadata", "uid"});
  if (pod.name_space.empty() || pod.name.empty())
    return fail(ErrorCode::Corrupt, "Kubernetes listed a pod without a name");
  pod.phase = textAt(object, {"status", "phase"});
  pod.restart_policy = textAt(object, {"spec", "restartPolicy"});
  pod.is_static = valueAt(object, {"metadata", "annotations"}).contains(kMirrorMark);
  for (const auto& owner : valueAt(object, {"metadata", "ownerReferences"})) {
    const auto& controls = valueAt(owner, {"controller"});
    if (controls.is_boolean() && controls.get<bool>()) pod.controller = textAt(owner, {"kind"});
  }
  for (const auto& volume : valueAt(object, {"spec", "volumes"}))
    if (volume.is_object() && volume.contains("emptyDir")) pod.empty_dir = textAt(volume, {"name"});
  if (const auto when = textAt(object, {"metadata", "deletionTimestamp"}); !when.empty()) {
    TRY(time, parseWallTime(when));
    pod.ends_by = time;
  }
  return pod;
}

Verdict evaluate(const Pod& pod, const Node& node, const inventory::EvictionRules& rules,
                 WallTime now) {
  if (pod.phase == "Succeeded" || pod.phase == "Failed" || pod.is_static ||
      pod.controller == kDaemonSet)
    return {};
  if (pod.ends_by) {
    // Kubernetes deletes the pods of a node that has gone silent, but only its kubelet could
    // confirm their end.
    if (node.ready == Node::Ready::Silent && now > *pod.ends_by) return {};
    return {Fate::Leaving, fmt::format("{} is ending, by {}", pod.str(), toString(*pod.ends_by))};
  }
  const bool ends_by_itself = pod.restart_policy == "Never" || pod.restart_policy == "OnFailure";
  if (ends_by_itself && rules.jobs == inventory::JobPods::Wait)
    return {Fate::Waits,
            fmt::format("{} runs to its end (restartPolicy {})", pod.str(), pod.restart_policy)};
  if (!pod.empty_dir.empty() && rules.empty_dir == inventory::FragilePods::Hold)
    return {Fate::Held, fmt::format("{} keeps data in the emptyDir {}; delete the pod, or let the "
                                    "pool evict such pods (evict.empty_dir)",
                                    pod.str(), pod.empty_dir)};
  if (pod.controller.empty() && rules.unmanaged == inventory::FragilePods::Hold)
    return {Fate::Held, fmt::format("{} has no controller that would start it again; delete it, or "
                                    "let the pool evict such pods (evict.unmanaged)",
                                    pod.str())};
  return {Fate::Evict, {}};
}

}  // namespace muster::pool::kube
