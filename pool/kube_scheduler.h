// SPDX-License-Identifier: Apache-2.0
// Scheduler on Kubernetes: a node is closed by a cordon and a taint, emptied by evictions, and
// opened when both are gone.
//
// Closing and opening are one patch each, bound to the resourceVersion that was read: nobody's
// change in between is lost, and a crash leaves the node either open or closed.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "inventory/model/fwd.h"
#include "inventory/model/pools.h"
#include "pool/kube_api.h"
#include "pool/kube_objects.h"
#include "pool/kube_roster.h"
#include "pool/scheduler.h"

namespace muster::pool {

class KubeScheduler final : public Scheduler {
 public:
  KubeScheduler(inventory::KubernetesPool pool, kube::HttpFactory http, Clock& clock);

  std::string describe() const override { return "Kubernetes at " + pool_.server; }
  std::string source() const override { return "Kubernetes API"; }
  std::string unknownNode(const NodeName& node) const override;
  bool registersItself() const override { return true; }
  Async<std::optional<Member>> look(NodeName node) override;
  Async<lifecycle::Outcome> admit(NodeName node, lifecycle::ActContext& context) override;
  Async<void> close(NodeName node, std::string reason) override;
  Async<Remains> release(NodeName node) override;
  Async<void> reopen(NodeName node) override;
  Async<std::vector<std::string>> endWork(NodeName node) override;

 private:
  struct Evaluated {
    kube::Pod pod;
    kube::Verdict verdict;
  };
  /// What of a node changes; null: nothing. Called anew with what another writer has made of it.
  using Change = std::function<Result<nlohmann::json>(const kube::Node&)>;

  std::string nameOf(const NodeName& node) const;
  Async<std::optional<kube::Node>> read(NodeName node);
  Async<std::optional<kube::Node>> change(NodeName node, std::string what, Change change);
  std::vector<Evaluated> evaluated(const std::vector<kube::Pod>& pods,
                                   const kube::Node& node) const;
  Async<std::vector<Evaluated>> podsOf(NodeName node, kube::Node seen);
  Async<std::optional<std::string>> evict(kube::Pod pod);
  Async<kube::Answer> sendEviction(kube::Pod pod);
  Async<std::string> servedEviction();
  Async<bool> remove(kube::Pod pod);
  nlohmann::json closing(const kube::Node& node, const std::string& reason) const;
  nlohmann::json opening(const kube::Node& node, const std::string& certificate) const;
  bool isOrdered(const kube::Node& node) const;

  const inventory::KubernetesPool pool_;
  const kube::Taint taint_;
  Clock& clock_;
  kube::Api api_;
  kube::Roster roster_;
  std::string eviction_version_ = "policy/v1";  ///< since Kubernetes 1.22; an older server has said
                                                ///< which it serves
};

}  // namespace muster::pool
