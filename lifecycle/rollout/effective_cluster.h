// SPDX-License-Identifier: Apache-2.0
// EffectiveCluster: the inventory as it holds at this moment, while nodes step over to a change one
// by one. docs/adr/0013
//
// Phases, engine and planner borrow the Cluster. Between two steps nothing of it moves; a step
// changes the profile of one node that nobody works on. Entries and profiles that a change brings
// are there from the beginning, so that what is looked up once at the start (repositories, images)
// is found, and are never taken away, so that no reference to one dies.
//
// A node that is changed has a profile under the key PROFILE~ROLLOUT. The profile keeps its name:
// its declaration, and so its certificate, is the same as it will be when the inventory itself says
// so.
#pragma once

#include "base/ids.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "inventory/parse/change.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::lifecycle {

class EffectiveCluster {
 public:
  explicit EffectiveCluster(inventory::Cluster declared);
  EffectiveCluster(const EffectiveCluster&) = delete;

  const inventory::Cluster& cluster() const { return cluster_; }
  /// Of the inventory alone, whatever lies over it.
  const std::string& declaredDigest() const { return declared_digest_; }

  /// Makes a change known; no node is changed yet. Changes lie on each other in the order in which
  /// they are added.
  void add(const std::string& rollout, inventory::Change change);
  /// Whether add() was told of it.
  bool knows(const std::string& rollout) const;
  /// Whether the change would make a difference to the node's declaration; none to a node that the
  /// inventory does not know.
  bool affects(const std::string& rollout, const NodeName& node) {
    return cluster_.findNode(node) && &profileWith(rollout, node) != &profileWithout(rollout, node);
  }
  /// Whether the node has the change now.
  bool has(const std::string& rollout, const NodeName& node) const;
  void change(const std::string& rollout, const NodeName& node);
  void revert(const std::string& rollout, const NodeName& node);
  /// The node's profile with and without this rollout.
  const inventory::Profile& profileWithout(const std::string& rollout, const NodeName& node);
  const inventory::Profile& profileWith(const std::string& rollout, const NodeName& node);

 private:
  struct Layer {
    std::string rollout, digest;
    inventory::Change change;
  };
  inventory::Node* find(const NodeName& node);
  const inventory::Profile& profileUnder(const std::set<std::string>& rollouts,
                                         const NodeName& node);
  /// The key of the node's profile under these rollouts; the profile is made when it is new.
  std::string keyFor(const std::string& declared, const std::set<std::string>& rollouts);
  void updateNode(const NodeName& node);
  std::string markOf(const inventory::Node& node, const std::set<std::string>& rollouts) const;

  inventory::Cluster cluster_;
  const std::string declared_digest_;
  std::vector<Layer> layers_;
  std::map<NodeName, std::string> declared_profile_;  ///< of nodes that were ever changed
  std::map<NodeName, std::set<std::string>> changed_;
  std::map<NodeName, std::string> marks_;       ///< hex: what each changed node adds to the digest
  std::string digest_ = std::string(64, '\0');  ///< of all marks; zeros: no node is different
};

}  // namespace muster::lifecycle
