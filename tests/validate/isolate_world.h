// SPDX-License-Identifier: Apache-2.0
// A simulated cluster for the isolation: two tiers of switches a rail, destination-based routes,
// parts that are slow or dead, noise, and tests that say nothing. The isolation sees only rates.
#pragma once

#include "tests/validate/normal_noise.h"
#include "validate/isolate/isolation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace muster::test {

namespace isolate = validate::isolate;

class IsolateWorld {
 public:
  int leaves = 32, nodes_per_leaf = 32, leaves_per_pod = 4, rails = 1;
  int spines = 32;        ///< cables of a leaf on a rail
  double noise = 0.005;   ///< σ of one pair test, relative
  double silent = 0;      ///< share of tests that say nothing
  double peer_noise = 5;  ///< times noise: an entry of an all-to-all is measured for a fraction of
                          ///< the time (0.2 s of 5 s)
  bool routes_known = true;
  bool matrix = true;  ///< the engine tells the rate of every pair
  double base_gbits = 380;

  explicit IsolateWorld(std::uint64_t seed) : random_(seed) {}
  IsolateWorld(const IsolateWorld&) = delete;

  int nodes() const { return leaves * nodes_per_leaf; }
  void slowNode(int node, double capacity) {
    for (int rail = 0; rail < rails; ++rail) slowNic(node, rail, capacity);
  }
  void slowNic(int node, int rail, double capacity) { nic_[node * rails + rail] = capacity; }
  void slowLeaf(int leaf, int rail, double capacity) {
    for (int place = 0; place < nodes_per_leaf; ++place)
      slowNic(leaf * nodes_per_leaf + place, rail, capacity);
  }
  void slowRail(int rail, double capacity) {
    for (int node = 0; node < nodes(); ++node) slowNic(node, rail, capacity);
  }
  void slowCable(int cable, double capacity) { cable_[cable] = capacity; }
  void slowPair(int a, int b, int rail, double capacity) {
    pair_[{std::min(a, b), std::max(a, b), rail}] = capacity;
  }
  int cable(int leaf, int spine, int rail) const { return (rail * leaves + leaf) * spines + spine; }
  std::mt19937_64& random() { return random_; }
  /// Different numbers below `limit`.
  std::vector<int> some(int count, int limit) {
    std::vector<int> all(static_cast<std::size_t>(limit));
    for (int i = 0; i < limit; ++i) all[static_cast<std::size_t>(i)] = i;
    std::shuffle(all.begin(), all.end(), random_);
    all.resize(static_cast<std::size_t>(count));
    return all;
  }
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  isolate::Layout layout() const {
    isolate::Layout out{.rails = rails};
    for (int node = 0; node < nodes(); ++node) {
      out.leaf.push_back(node / nodes_per_leaf);
      out.pod.push_back(node / nodes_per_leaf / leaves_per_pod);
    }
    if (routes_known) out.cables = [this](int a, int b, int rail) { return cables(a, b, rail); };
    return out;
  }

  isolate::RoundResult run(const isolate::Round& round) {
    isolate::RoundResult out;
    for (const auto& group : round.groups) out.push_back(run(group));
    return out;
  }

  /// Runs it to the end.
  isolate::Verdict isolated(isolate::Options options) {
    isolate::Isolation isolation(layout(), options);
    while (const auto round = isolation.next()) isolation.learn(run(*round));
    return isolation.verdict();
  }

 private:
  std::vector<int> cables(int a, int b, int rail) const {
    const int from = a / nodes_per_leaf, to = b / nodes_per_leaf;
    if (from == to) return {};
    const int there = b % nodes_per_leaf % spines,
              back = a % nodes_per_leaf % spines;  // a switch chooses by destination
    std::vector<int> out{cable(from, there, rail), cable(to, there, rail)};
    if (back != there) out.push_back(cable(from, back, rail)), out.push_back(cable(to, back, rail));
    return out;
  }
  template <class Key>
  static double of(const std::map<Key, double>& bad, const Key& key) {
    if (bad.empty()) return 1;
    const auto found = bad.find(key);
    return found == bad.end() ? 1 : found->second;
  }
  double capacity(int a, int b, int rail) const {
    double least = std::min(of(nic_, a * rails + rail), of(nic_, b * rails + rail));
    if (!pair_.empty()) least = std::min(least, of(pair_, {std::min(a, b), std::max(a, b), rail}));
    if (!cable_.empty())
      for (const int each : cables(a, b, rail)) least = std::min(least, of(cable_, each));
    return least;
  }
  double measured(double capacity, double sigma) {
    if (capacity < 0.02) return 0;
    return base_gbits * capacity * (1 + sigma * normal_(random_));
  }

  isolate::GroupResult run(const isolate::Group& group) {
    isolate::GroupResult out;
    const auto& members = group.members;
    const std::size_t m = members.size();
    const bool all_pairs = group.kind == isolate::Collective::AllToAll;
    if (all_pairs && matrix)
      out.peer_gbits.assign(static_cast<std::size_t>(rails) * m * m,
                            std::numeric_limits<float>::quiet_NaN());
    for (int rail = 0; rail < rails; ++rail) {
      double least = 1;
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = i + 1; j < m; ++j) {
          if (!all_pairs && j != i + 1 && !(i == 0 && j + 1 == m)) continue;  // a ring, or a pair
          const double capable = capacity(members[i], members[j], rail);
          least = std::min(least, capable);
          if (all_pairs && matrix)
            out.peer_gbits[(static_cast<std::size_t>(rail) * m + i) * m + j] =
                static_cast<float>(measured(capable, noise * peer_noise));
        }
      const bool says_nothing = silent > 0 && between(0, 1) < silent;
      out.rail_gbits.push_back(says_nothing ? std::nan("") : measured(least, noise));
    }
    return out;
  }

  std::mt19937_64 random_;
  NormalNoise normal_;
  std::map<int, double> nic_, cable_;
  std::map<std::array<int, 3>, double> pair_;
};

/// How a verdict compares with what was bad.
struct Score {
  int missed = 0, wrong = 0, unclear = 0;
};

/// Nodes that are bad on every rail; anything else that is accused is wrong.
inline Score scoreNodes(const isolate::Verdict& verdict, std::vector<int> bad) {
  Score score{.unclear = static_cast<int>(verdict.unclear.size())};
  for (const auto& culprit : verdict.culprits) {
    const auto found = culprit.kind == isolate::CulpritKind::Node
                           ? std::find(bad.begin(), bad.end(), culprit.a)
                           : bad.end();
    if (found == bad.end())
      ++score.wrong;
    else
      bad.erase(found);
  }
  score.missed = static_cast<int>(bad.size());
  return score;
}

/// Exactly one culprit, this one.
inline bool names(const isolate::Verdict& verdict, isolate::CulpritKind kind, int a, int b = -1,
                  int rail = -1) {
  if (verdict.culprits.size() != 1) return false;
  const auto& c = verdict.culprits.front();
  return c.kind == kind && (rail < 0 || c.rail == rail) &&
         ((c.a == a && c.b == b) || (b >= 0 && c.a == b && c.b == a));
}

}  // namespace muster::test
