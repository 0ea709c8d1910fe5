// SPDX-License-Identifier: Apache-2.0
// Evidence: every test of two nodes, set against its like. Internal to the isolation.
#pragma once

#include "validate/isolate/isolation.h"
#include "validate/isolate/pair_rates.h"

#include <array>
#include <cmath>
#include <unordered_map>

namespace muster::validate::isolate {

struct Sample {
  int round, a, b, rail;
  double gbits;
  double share =
      1;  ///< of what tests between such places on this rail typically give; 0: it failed
  bool reference = true;
  bool watching = false;  ///< of a round that tests again, not one that looks at everybody first
  bool pooled = false;    ///< too few of its like in the round: compared with those of all rounds
};

/// The probability that standard normal noise goes at least so far.
inline double tail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

class Evidence {
 public:
  Evidence(const Layout& layout, std::optional<double> least_gbits)
      : layout_(layout), least_gbits_(least_gbits) {}

  /// `reference`: groups of the round that say what is typical. A round that was made of suspects
  /// must not be its own measure.
  void add(const Round& round, const RoundResult& result, const std::vector<bool>& reference);
  const std::vector<Sample>& samples() const { return samples_; }
  /// The best share of all tests of this NIC; -1: none said anything.
  double best(int node, int rail) const { return best_.empty() ? -1 : best_[index(node, rail)]; }
  /// The best share of all tests over this cable; nullopt: none.
  std::optional<double> bestCable(int cable) const;
  /// Of one test; never below what is plausible for so few tests.
  double sigma() const { return sigma_; }
  /// Of what a NIC keeps from test to test, beyond noise: good NICs differ so much for a while.
  double persistentSigma() const { return persistent_sigma_; }
  /// Pairs that reach far more than what is typical: then it is not what the healthy reach.
  /// Zero, or enough of them to say so.
  int fasterPairs() const { return faster_pairs_; }
  double medianGbits(std::optional<int> rail = std::nullopt) const;
  std::size_t index(int node, int rail) const {
    return static_cast<std::size_t>(node) * static_cast<std::size_t>(layout_.rails) +
           static_cast<std::size_t>(rail);
  }

 private:
  using LikeKey = std::pair<int, int>;  ///< rail; same leaf, same pod, or neither
  LikeKey likeOf(int a, int b, int rail) const;
  void compareWithin(std::size_t begin, std::size_t enough);
  void comparePooled();
  double typicalOf(const LikeKey& key, PairRates& rates) const;
  void share(Sample& sample, double typical) const;
  void measureNoise();
  double repeatedSigma() const;
  void measurePersistent();
  void countFaster();

  const Layout& layout_;
  std::optional<double> least_gbits_;
  std::vector<Sample> samples_;
  std::vector<double> best_;
  mutable std::unordered_map<int, double> cables_;
  mutable std::size_t cables_seen_ = 0;  ///< samples that are in cables_
  double sigma_ = 0.005, persistent_sigma_ = 0;
  int faster_pairs_ = 0;
};

}  // namespace muster::validate::isolate
