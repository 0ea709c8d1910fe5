// SPDX-License-Identifier: Apache-2.0
// Which switch is a leaf, a spine, a core, where only the cables say it.
//
// Nodes' HCAs make their switches leaves. Further switches are as many levels up as cables lie
// between them and a leaf, until the roots: the lowest level with a switch from which the most
// leaves can be reached on the way down. What is beyond the roots hangs at them (a leaf with
// storage, a leaf without nodes) and counts down again. An HCA of storage, UFM or a gateway never
// makes a leaf: on a spine it would take that spine out of the root GUIDs, and OpenSM's ftree would
// leave every pair of nodes that it routes over that spine without a way.
#include "fabric/topology/topology.h"

#include <algorithm>
#include <cstdint>

namespace muster::fabric {

namespace {

class Levels {
 public:
  explicit Levels(const Topology& topology) {
    std::map<std::string_view, int> ids;
    for (const auto& [name, device] : topology.devices) {
      if (!device.is_switch) continue;
      ids.emplace(name, static_cast<int>(names_.size()));
      names_.push_back(&name);
    }
    next_to_.resize(names_.size());
    is_leaf_.assign(names_.size(), false);
    has_hca_.assign(names_.size(), false);
    const bool nodes_only = std::any_of(
        topology.devices.begin(), topology.devices.end(),
        [](const auto& entry) { return !entry.second.is_switch && !entry.second.is_attached; });
    for (const auto& link : topology.links)
      for (const auto& [own, peer] : {std::pair(&link.a, &link.b), std::pair(&link.b, &link.a)}) {
        const auto id = ids.find(own->node);
        if (id == ids.end()) continue;
        const auto at = static_cast<std::size_t>(id->second);
        if (const auto other = ids.find(peer->node); other != ids.end()) {
          next_to_[at].push_back(other->second);
          continue;
        }
        has_hca_[at] = true;
        if (!nodes_only || !topology.devices.at(peer->node).is_attached) is_leaf_[at] = true;
      }
    for (auto& peers : next_to_) {
      std::sort(peers.begin(), peers.end());
      peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    }
  }

  std::map<std::string, int> run() {
    std::vector<int> leaves;
    for (std::size_t id = 0; id < names_.size(); ++id)
      if (is_leaf_[id]) leaves.push_back(static_cast<int>(id));
    level_ = distances(leaves);
    const auto reached = leavesBelow(leaves);
    for (const auto& part : parts()) settle(part, reached);
    std::map<std::string, int> out;
    for (std::size_t id = 0; id < names_.size(); ++id)
      if (level_[id] > 0) out.emplace(*names_[id], level_[id]);
    return out;
  }

 private:
  static constexpr int kUnknown = 0;

  /// 1 for these, one more for each cable; kUnknown: no cables lead there.
  std::vector<int> distances(const std::vector<int>& from) const {
    std::vector<int> out(names_.size(), kUnknown), front = from;
    for (int id : from) out[static_cast<std::size_t>(id)] = 1;
    for (int level = 2; !front.empty(); ++level) {
      std::vector<int> further;
      for (int id : front)
        for (int peer : next_to_[static_cast<std::size_t>(id)])
          if (auto& known = out[static_cast<std::size_t>(peer)]; known == kUnknown)
            known = level, further.push_back(peer);
      front = std::move(further);
    }
    return out;
  }

  /// How many leaves each switch reaches by cables that lead down only.
  std::vector<std::size_t> leavesBelow(const std::vector<int>& leaves) const {
    using Set = std::vector<std::uint64_t>;
    constexpr std::size_t kBits = 64;
    std::vector<Set> below(names_.size(), Set((leaves.size() + kBits - 1) / kBits));
    for (std::size_t i = 0; i < leaves.size(); ++i)
      below[static_cast<std::size_t>(leaves[i])][i / kBits] |= std::uint64_t{1} << (i % kBits);
    std::vector<std::size_t> order(names_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return level_[a] < level_[b]; });
    std::vector<std::size_t> out(names_.size(), 0);
    for (auto id : order) {
      for (int peer : next_to_[id])
        if (const auto& under = below[static_cast<std::size_t>(peer)];
            level_[static_cast<std::size_t>(peer)] < level_[id])
          for (std::size_t word = 0; word < under.size(); ++word) below[id][word] |= under[word];
      for (auto word : below[id]) out[id] += static_cast<std::size_t>(__builtin_popcountll(word));
    }
    return out;
  }

  /// Switches that cables connect.
  std::vector<std::vector<int>> parts() const {
    std::vector<std::vector<int>> out;
    std::vector<bool> seen(names_.size(), false);
    for (std::size_t begin = 0; begin < names_.size(); ++begin) {
      if (seen[begin]) continue;
      seen[begin] = true;
      std::vector<int> part = {static_cast<int>(begin)};
      for (std::size_t i = 0; i < part.size(); ++i)
        for (int peer : next_to_[static_cast<std::size_t>(part[i])])
          if (!seen[static_cast<std::size_t>(peer)])
            seen[static_cast<std::size_t>(peer)] = true, part.push_back(peer);
      out.push_back(std::move(part));
    }
    return out;
  }

  /// The lowest level with a switch that reaches the most leaves. Where a cable between switches is
  /// missing, a leaf with storage can reach more of them than any spine: if only switches that
  /// carry HCAs reach that many, and one level lower some reach nearly as many, those are the
  /// roots.
  int rootLevel(const std::vector<int>& part, const std::vector<std::size_t>& reached) const {
    constexpr int kLowest = 2;
    std::size_t most = 0, most_below = 0;
    int level = kUnknown;
    for (int one : part)
      if (const auto id = static_cast<std::size_t>(one);
          level_[id] >= kLowest &&
          (reached[id] > most || (reached[id] == most && level_[id] < level)))
        most = reached[id], level = level_[id];
    bool is_bare = level <= kLowest;
    for (int one : part) {
      const auto id = static_cast<std::size_t>(one);
      is_bare |= level_[id] == level && reached[id] == most && !has_hca_[id];
      if (level_[id] == level - 1) most_below = std::max(most_below, reached[id]);
    }
    return !is_bare && 4 * most_below >= 3 * most ? level - 1 : level;  // pods of a tree reach half
  }

  void settle(const std::vector<int>& part, const std::vector<std::size_t>& reached) {
    const int root_level = rootLevel(part, reached);
    if (root_level == kUnknown) return;
    std::vector<int> roots;
    for (int id : part)
      if (level_[static_cast<std::size_t>(id)] == root_level) roots.push_back(id);
    const auto from_roots = distances(roots);
    for (int one : part)
      if (auto& level = level_[static_cast<std::size_t>(one)]; level > root_level)
        level = std::max(1, root_level + 1 - from_roots[static_cast<std::size_t>(one)]);
  }

  std::vector<const std::string*> names_;
  std::vector<std::vector<int>> next_to_;
  std::vector<bool> is_leaf_, has_hca_;
  std::vector<int> level_;
};

}  // namespace

std::map<std::string, int> switchLevels(const Topology& topology) {
  std::map<std::string, int> declared;
  bool all = true;
  for (const auto& [name, device] : topology.devices) {
    if (!device.is_switch) continue;
    all &= device.level > 0;
    declared.emplace(name, device.level);
  }
  return all ? declared : Levels(topology).run();
}

std::vector<std::string> rootSwitches(const Topology& declared) {
  auto levels = switchLevels(declared);
  int highest = 1;
  for (const auto& [name, level] : levels) highest = std::max(highest, level);
  std::vector<std::string> roots;
  for (const auto& [name, level] : levels)
    if (highest > 1 && level == highest) roots.push_back(name);
  return roots;
}

std::map<std::string, std::string> switchesOfHcas(const Topology& topology) {
  std::map<std::string, std::string> out;
  for (const auto& link : topology.links)
    for (const auto& [hca, peer] : {std::pair(&link.a, &link.b), std::pair(&link.b, &link.a)})
      if (!topology.devices.at(hca->node).is_switch && topology.devices.at(peer->node).is_switch)
        out.try_emplace(hca->node, peer->node);
  return out;
}

}  // namespace muster::fabric
