// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/rollout/effective_cluster.h"

#include "base/io/crypto.h"
#include "base/json_output.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/firmware.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "inventory/parse/hostlist.h"
#include "inventory/schema/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::lifecycle {
namespace {

inventory::Profile changed(inventory::Profile profile, const inventory::ProfileChange& change) {
  if (change.image) profile.image = *change.image;
  if (change.firmware) profile.firmware = *change.firmware;
  if (change.drivers) profile.drivers = *change.drivers;
  return profile;
}

bool same(const inventory::Profile& a, const inventory::Profile& b) {
  return a.image == b.image && a.firmware == b.firmware && a.drivers == b.drivers;
}

/// What the change brings, so that two changes under one name do not give one digest.
std::string digestOf(const inventory::Change& change) {
  inventory::Cluster alone;
  alone.images = change.images;
  alone.drivers = change.drivers;
  alone.firmware = change.firmware;
  return io::sha256Hex(jsonText(inventory::declaredJson(alone)));
}

/// Exclusive or: the digest of a set, in whatever order it came to be, at the cost of the one node
/// that moved.
void mix(std::string& digest, const std::string& mark) {
  for (std::size_t i = 0; i < mark.size(); ++i) digest[i] = static_cast<char>(digest[i] ^ mark[i]);
}

}  // namespace

EffectiveCluster::EffectiveCluster(inventory::Cluster declared)
    : cluster_(std::move(declared)), declared_digest_(cluster_.digest) {}

void EffectiveCluster::add(const std::string& rollout, inventory::Change change) {
  cluster_.images.insert(change.images.begin(), change.images.end());
  cluster_.drivers.insert(change.drivers.begin(), change.drivers.end());
  cluster_.firmware.insert(change.firmware.begin(), change.firmware.end());
  auto digest = digestOf(change);
  layers_.push_back({rollout, std::move(digest), std::move(change)});
}

bool EffectiveCluster::knows(const std::string& rollout) const {
  return std::any_of(layers_.begin(), layers_.end(),
                     [&rollout](const Layer& layer) { return layer.rollout == rollout; });
}

inventory::Node* EffectiveCluster::find(const NodeName& node) {
  auto found = std::lower_bound(cluster_.nodes.begin(), cluster_.nodes.end(), node,
                                [](const inventory::Node& a, const NodeName& b) {
                                  return inventory::naturalLess(a.name.str(), b.str());
                                });
  return found != cluster_.nodes.end() && found->name == node ? &*found : nullptr;
}

std::string EffectiveCluster::keyFor(const std::string& declared,
                                     const std::set<std::string>& rollouts) {
  auto profile = cluster_.profiles.at(declared);
  std::string key = declared;
  for (const auto& layer : layers_) {
    if (!rollouts.contains(layer.rollout)) continue;
    const auto change = layer.change.profiles.find(declared);
    if (change == layer.change.profiles.end()) continue;
    auto next = changed(profile, change->second);
    if (same(next, profile)) continue;  // the inventory, or an earlier rollout, says so already
    profile = std::move(next);
    key += "~" + layer.rollout;
  }
  cluster_.profiles.try_emplace(key, std::move(profile));
  return key;
}

void EffectiveCluster::updateNode(const NodeName& name) {
  auto* node = find(name);
  if (!node) return;
  const auto& declared = declared_profile_.try_emplace(name, node->profile).first->second;
  const auto& rollouts = changed_[name];
  node->profile = keyFor(declared, rollouts);
  auto& mark = marks_[name];
  mix(digest_, mark);  // takes the old one out
  mark = node->profile == declared ? std::string() : markOf(*node, rollouts);
  mix(digest_, mark);
  const bool none = std::all_of(digest_.begin(), digest_.end(), [](char c) { return c == 0; });
  cluster_.digest = none ? declared_digest_ : io::sha256Hex(declared_digest_ + digest_);
}

std::string EffectiveCluster::markOf(const inventory::Node& node,
                                     const std::set<std::string>& rollouts) const {
  const auto& profile = cluster_.profiles.at(node.profile);
  std::string text = fmt::format("{} {} {} {} {}", node.name.str(), node.profile, profile.image,
                                 profile.firmware, fmt::join(profile.drivers, " "));
  for (const auto& layer : layers_)
    if (rollouts.contains(layer.rollout)) text += " " + layer.digest;
  return io::sha256Hex(text);
}

bool EffectiveCluster::has(const std::string& rollout, const NodeName& node) const {
  const auto found = changed_.find(node);
  return found != changed_.end() && found->second.contains(rollout);
}

void EffectiveCluster::change(const std::string& rollout, const NodeName& node) {
  if (changed_[node].insert(rollout).second) updateNode(node);
}

void EffectiveCluster::revert(const std::string& rollout, const NodeName& node) {
  if (changed_[node].erase(rollout) > 0) updateNode(node);
}

const inventory::Profile& EffectiveCluster::profileUnder(const std::set<std::string>& rollouts,
                                                         const NodeName& node) {
  auto* found = find(node);
  if (!found) std::abort();  // callers name nodes of the cluster
  return cluster_.profiles.at(
      keyFor(declared_profile_.try_emplace(node, found->profile).first->second, rollouts));
}

const inventory::Profile& EffectiveCluster::profileWithout(const std::string& rollout,
                                                           const NodeName& node) {
  auto rollouts = changed_[node];
  rollouts.erase(rollout);
  return profileUnder(rollouts, node);
}

const inventory::Profile& EffectiveCluster::profileWith(const std::string& rollout,
                                                        const NodeName& node) {
  auto rollouts = changed_[node];
  rollouts.insert(rollout);
  return profileUnder(rollouts, node);
}

}  // namespace muster::lifecycle
