// SPDX-License-Identifier: Apache-2.0
#include "pool/kube_scheduler.h"

#include "inventory/model/pools.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::pool {

namespace {

using kube::Answer;
using kube::Fate;
using kube::Node;
using kube::Pod;
using lifecycle::ActContext;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::Outcome;

constexpr std::chrono::milliseconds kRegisterPoll{2000};
constexpr std::chrono::milliseconds kDrainPoll{5000};
constexpr int kMaxConflicts = 5;  ///< of one change, with other writers of the node
constexpr const char* kNodes = "/api/v1/nodes";
constexpr const char* kCertificateFacet = "certificate";

std::string podPath(const Pod& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", pod.name_space, pod.name);
}

/// Only the very pod that was evaluated, not one of the same name that came after it.
nlohmann::json deleteOptions(const Pod& pod) {
  nlohmann::json options = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (!pod.uid.empty()) options["preconditions"] = {{"uid", pod.uid}};
  return options;
}

}  // namespace

KubeScheduler::KubeScheduler(inventory::KubernetesPool pool, kube::HttpFactory http, Clock& clock)
    : pool_(std::move(pool)),
      taint_(kube::Taint::parse(pool_.taint)),
      clock_(clock),
      api_(pool_, std::move(http), clock),
      roster_(api_, clock) {}

std::string KubeScheduler::nameOf(const NodeName& node) const {
  return pool_.domain.empty() ? node.str() : node.str() + "." + pool_.domain;
}

std::string KubeScheduler::unknownNode(const NodeName& node) const {
  return fmt::format("Kubernetes at {} has no node {}: its kubelet has not registered",
                     pool_.server, nameOf(node));
}

bool KubeScheduler::isOrdered(const Node& node) const {
  const bool uncordoned_meanwhile =
      !node.unschedulable && !node.annotation(kube::kCordonedMark).empty();
  return node.has(taint_) && !node.annotation(kube::kSinceMark).empty() && !uncordoned_meanwhile;
}

Async<std::optional<Node>> KubeScheduler::read(NodeName name) {
  co_return co_await roster_.node(nameOf(name));
}

/// Reads, changes, and begins anew when another writer was faster. Answers the node as it is then;
/// nullopt: there is none.
Async<std::optional<Node>> KubeScheduler::change(NodeName name, std::string what, Change change) {
  for (int conflicts = 0;; ++conflicts) {
    CO_TRY(node, co_await read(name));
    if (!node) co_return std::optional<Node>();
    CO_TRY(patch, change(*node));
    if (patch.is_null()) co_return std::move(node);
    patch["metadata"]["resourceVersion"] = node->resource_version;
    kube::Request request;
    request.method = "PATCH";
    request.path = fmt::format("{}/{}", kNodes, nameOf(name));
    request.query = {{"fieldManager", "muster"}, {"fieldValidation", "Strict"}};
    request.content_type = kube::kMergePatch;
    request.body = std::move(patch);
    roster_.ordered();
    auto answered = co_await api_.send(std::move(request));
    roster_.ordered();
    CO_TRY(answer, std::move(answered));
    if (answer.status == 409 && conflicts < kMaxConflicts) continue;
    if (answer.status == 404) co_return std::optional<Node>();
    if (!answer.ok())
      co_return fail(api_.failure(answer, fmt::format("{} node {}", what, nameOf(name))));
    CO_TRY(changed, Node::parse(answer.body));
    co_return std::optional<Node>(std::move(changed));
  }
}

std::vector<KubeScheduler::Evaluated> KubeScheduler::evaluated(const std::vector<Pod>& pods,
                                                               const Node& node) const {
  std::vector<Evaluated> out;
  for (const auto& pod : pods) {
    auto verdict = kube::evaluate(pod, node, pool_.evict, clock_.now());
    if (verdict.fate != Fate::None) out.push_back({pod, std::move(verdict)});
  }
  return out;
}

Async<std::vector<KubeScheduler::Evaluated>> KubeScheduler::podsOf(NodeName name, Node seen) {
  CO_TRY(pods, co_await roster_.podsOf(nameOf(name)));
  co_return evaluated(pods, seen);
}

Async<std::optional<Member>> KubeScheduler::look(NodeName name) {
  CO_TRY(entry, co_await roster_.look(nameOf(name)));
  if (!entry) co_return std::optional<Member>();
  const auto* node = &entry->node;
  const auto pods = evaluated(entry->pods, *node);
  Member member;
  member.draining = node->unschedulable || node->has(taint_);
  member.takes_work = !member.draining && node->ready == Node::Ready::Yes;
  member.has_work = !pods.empty();
  member.silent = !member.draining && !member.takes_work;
  member.ordered = isOrdered(*node);
  member.by_person = node->cordonedByPerson();
  member.state = node->state();
  if (member.draining)
    member.reason = member.by_person ? "cordoned" : node->annotation(kube::kReasonMark);
  if (auto since = parseWallTime(node->annotation(kube::kSinceMark)))
    member.draining_since = *since;
  co_return std::optional<Member>(std::move(member));
}

/// The cordon of somebody else stays theirs, and what somebody has uncordoned while muster drains
/// is not cordoned again: the taint is enough.
nlohmann::json KubeScheduler::closing(const Node& node, const std::string& reason) const {
  const bool begun = !node.annotation(kube::kSinceMark).empty();
  nlohmann::json annotations = {{kube::kReasonMark, reason}}, spec;
  if (!begun) annotations[kube::kSinceMark] = toString(clock_.now());
  if (!node.unschedulable && begun) annotations[kube::kCordonedMark] = nullptr;
  if (!node.unschedulable && !begun) {
    annotations[kube::kCordonedMark] = "yes";
    spec["unschedulable"] = true;
  }
  if (!node.has(taint_)) {
    spec["taints"] = node.taints;
    spec["taints"].push_back(taint_.json());
  }
  nlohmann::json patch = {
      {"metadata",
       {{"annotations", std::move(annotations)}, {"labels", {{kube::kCertifiedLabel, nullptr}}}}}};
  if (!spec.is_null()) patch["spec"] = std::move(spec);
  return patch;
}

nlohmann::json KubeScheduler::opening(const Node& node, const std::string& certificate) const {
  nlohmann::json labels = pool_.labels, annotations, spec;
  labels[kube::kCertifiedLabel] = "true";
  for (const char* mark : {kube::kReasonMark, kube::kSinceMark, kube::kCordonedMark})
    if (node.annotations.contains(mark)) annotations[mark] = nullptr;
  if (!certificate.empty()) annotations[kube::kCertificateMark] = certificate;
  if (node.has(taint_)) {
    auto left = nlohmann::json::array();
    for (const auto& taint : node.taints)
      if (kube::textAt(taint, {"key"}) != taint_.key ||
          kube::textAt(taint, {"effect"}) != taint_.effect)
        left.push_back(taint);
    spec["taints"] = left.empty() ? nlohmann::json() : left;
  }
  if (node.unschedulable) spec["unschedulable"] = nullptr;
  nlohmann::json patch = {{"metadata", {{"labels", std::move(labels)}}}};
  if (!annotations.is_null()) patch["metadata"]["annotations"] = std::move(annotations);
  if (!spec.is_null()) patch["spec"] = std::move(spec);
  return patch;
}

Async<Outcome> KubeScheduler::admit(NodeName name, ActContext& context) {
  CO_TRY(node, co_await read(name));
  if (!node) co_return Again{kRegisterPoll, unknownNode(name)};
  if (node->ready != Node::Ready::Yes)
    co_return Again{kRegisterPoll,
                    fmt::format("{} to be Ready ({})", nameOf(name), node->not_ready_because)};
  context.progress(0.7, node->state());
  const auto certificate =
      context.facts().value(lifecycle::Subject(name), FacetName(kCertificateFacet)).value_or("");
  Change change_it = [this, certificate](const Node& now) -> Result<nlohmann::json> {
    if (now.cordonedByPerson())
      return fail(ErrorCode::Denied,
                  now.name + " was cordoned by a person just now; uncordon it by hand");
    return opening(now, certificate);
  };
  auto opened = co_await change(name, "opening", std::move(change_it));
  if (!opened && opened.error().code() == ErrorCode::Denied)
    co_return Blocked{opened.error().text()};
  if (!opened) co_return fail(std::move(opened).error());
  if (*opened && (*opened)->ready == Node::Ready::Yes && !(*opened)->unschedulable)
    co_return Done{};
  co_return Again{kRegisterPoll,
                  *opened ? fmt::format("{} to take pods ({})", nameOf(name), (*opened)->state())
                          : unknownNode(name)};
}

Async<void> KubeScheduler::close(NodeName name, std::string reason) {
  Change change_it = [this, reason](const Node& now) -> Result<nlohmann::json> {
    return isOrdered(now) ? nlohmann::json() : closing(now, reason);
  };
  CO_TRY(closed, co_await change(name, "cordoning", std::move(change_it)));
  if (!closed) co_return fail(ErrorCode::NotFound, unknownNode(name));
  co_return Result<void>();
}

Async<void> KubeScheduler::reopen(NodeName name) {
  Change change_it = [this](const Node& now) -> Result<nlohmann::json> {
    if (now.cordonedByPerson())
      return fail(ErrorCode::Denied,
                  now.name + " was cordoned by a person; muster does not uncordon it");
    return opening(now, now.annotation(kube::kCertificateMark));
  };
  CO_TRY_OK(co_await change(name, "uncordoning", std::move(change_it)));
  co_return Result<void>();
}

/// The version in which the server takes evictions, as its discovery says. An empty text: it says
/// nothing of it, or may not be asked.
Async<std::string> KubeScheduler::servedEviction() {
  kube::Request request;
  request.path = "/api/v1";
  CO_TRY(answer, co_await api_.send(std::move(request)));
  const auto& resources = kube::valueAt(answer.body, {"resources"});
  if (!answer.ok() || !resources.is_array()) co_return std::string();
  for (const auto& resource : resources)
    if (kube::textAt(resource, {"name"}) == "pods/eviction") {
      const auto version = kube::textAt(resource, {"version"});
      co_return version.empty() ? std::string() : kube::textAt(resource, {"group"}) + "/" + version;
    }
  co_return std::string();
}

Async<kube::Answer> KubeScheduler::sendEviction(Pod pod) {
  kube::Request request;
  request.method = "POST";
  request.path = podPath(pod) + "/eviction";
  request.body = {{"apiVersion", eviction_version_},
                  {"kind", "Eviction"},
                  {"metadata", {{"name", pod.name}, {"namespace", pod.name_space}}},
                  {"deleteOptions", deleteOptions(pod)}};
  co_return co_await api_.send(std::move(request));
}

/// Asks the server to evict one pod. Answers what holds it; nullopt: it goes, or has gone.
Async<std::optional<std::string>> KubeScheduler::evict(Pod pod) {
  auto answered = co_await sendEviction(pod);
  roster_.ordered();
  if (answered && answered->status == 400) {  // perhaps of a version that the server does not know
    CO_TRY(served, co_await servedEviction());
    if (!served.empty() && served != eviction_version_) {
      eviction_version_ = served;
      answered = co_await sendEviction(pod);
    }
  }
  CO_TRY(answer, std::move(answered));
  if (answer.ok() || answer.status == 404) co_return std::optional<std::string>();
  if (const auto* budget = answer.cause("DisruptionBudget"))
    co_return fmt::format("{} is held by its disruption budget: {}", pod.str(), budget->message);
  const bool two_budgets =
      answer.status == 500 &&
      answer.message.find("more than one PodDisruptionBudget") != std::string::npos;
  if (answer.status == 429 || answer.status == 409 || two_budgets ||
      answer.cause("NamespaceTerminating"))
    co_return fmt::format("{} could not be evicted: {}", pod.str(), answer.message);
  co_return fail(api_.failure(answer, "evicting pod " + pod.str()));
}

Async<Remains> KubeScheduler::release(NodeName name) {
  Remains remains;
  remains.look_again = kDrainPoll;
  CO_TRY(node, co_await read(name));
  if (!node) co_return remains;
  CO_TRY(pods, co_await podsOf(name, *node));
  remains.all_leaving = true;
  for (auto& [pod, verdict] : pods) {
    auto why = std::move(verdict.why);
    if (verdict.fate == Fate::Evict) {
      CO_TRY(held, co_await evict(pod));
      why = held ? *held : pod.str() + " is being evicted";
      if (held) remains.all_leaving = false;
    } else if (verdict.fate != Fate::Leaving) {
      remains.all_leaving = false;
    }
    remains.work.push_back(std::move(why));
  }
  co_return remains;
}

/// Answers false when the pod had gone already.
Async<bool> KubeScheduler::remove(Pod pod) {
  kube::Request request;
  request.method = "DELETE";
  request.path = podPath(pod);
  request.body = deleteOptions(pod);
  auto answered = co_await api_.send(std::move(request));
  roster_.ordered();
  CO_TRY(answer, std::move(answered));
  if (!answer.ok() && answer.status != 404 && answer.status != 409)
    co_return fail(api_.failure(answer, "deleting pod " + pod.str()));
  co_return answer.ok();
}

Async<std::vector<std::string>> KubeScheduler::endWork(NodeName name) {
  std::vector<std::string> ended;
  CO_TRY(node, co_await read(name));
  if (!node) co_return std::move(ended);
  CO_TRY(pods, co_await podsOf(name, *node));
  for (auto& [pod, verdict] : pods) {
    if (verdict.fate == Fate::Leaving) continue;
    CO_TRY(removed, co_await remove(pod));
    if (removed) ended.push_back(pod.str());
  }
  co_return std::move(ended);
}

}  // namespace muster::pool
