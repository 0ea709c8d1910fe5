// SPDX-License-Identifier: Apache-2.0
// A fabric as physics has it, for examining the isolation from outside: ports, uplinks, a hash that
// spreads flows over them, hosts whose rates drift, background traffic, and faults that come and
// go.
//
// It shares no formula, threshold or constant with the isolation and includes only its interface:
// rates follow from what a test crosses at the time it runs, not from a "share of typical".
#pragma once

#include "tests/validate/normal_noise.h"
#include "validate/isolate/isolation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace muster::test {

class PhysicalFabric {
 public:
  // What it is built of.
  int leaves = 32, hosts_per_leaf = 32, leaves_per_pod = 4, rails = 1;
  int uplinks = 32;            ///< of a leaf, one cable each
  double line_gbits = 400;     ///< of a port and a cable
  double efficiency = 0.97;    ///< what headers leave of it
  double host_spread = 0.001;  ///< σ of what a host's PCIe and memory cost it for ever
  // How it disturbs tests; all σ are relative.
  double white = 0.005;     ///< of one test of seconds
  double short_factor = 3;  ///< an entry of an all-to-all is measured for a fraction of a second
  double drift = 0, drift_memory = 0.8;     ///< of a host, autoregressive from round to round
  double leaf_drift = 0;                    ///< the same, of all hosts of a leaf together
  double tail_chance = 0, tail_loss = 0.1;  ///< a stall: exponential loss of a test
  double busy = 0;              ///< chance that background traffic fills a part of a cable just now
  double struck = 0;            ///< chance that any test at all is struck by it
  bool own_collisions = false;  ///< tests of a round that are hashed onto one cable share it
  bool whole_fails = true;      ///< a collective with a dead member gives nothing, not zeros

  explicit PhysicalFabric(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15ull + 17) {}
  PhysicalFabric(const PhysicalFabric&) = delete;

  int hosts() const { return leaves * hosts_per_leaf; }
  std::mt19937_64& random() { return random_; }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  std::set<int> pick(int count) {
    std::set<int> out;
    while (static_cast<int>(out.size()) < std::min(count, hosts()))
      out.insert(static_cast<int>(random_() % static_cast<std::uint64_t>(hosts())));
    return out;
  }
  // Faults.
  void slow(int host, double rate) { slow_[host] = rate; }
  void dies(int host, int round) { dies_[host] = round; }
  /// Of each test (or, `whole_rounds`, of each round) with this chance, down to `rate`.
  void flaky(int host, double chance, double rate, bool whole_rounds) {
    flaky_[host] = {chance, rate, whole_rounds};
  }
  void slowCable(int leaf, int uplink, double rate) { cable_[{leaf, uplink}] = rate; }

  validate::isolate::Layout layout() const {
    validate::isolate::Layout out{.rails = rails};
    for (int host = 0; host < hosts(); ++host) {
      out.leaf.push_back(host / hosts_per_leaf);
      out.pod.push_back(host / hosts_per_leaf / leaves_per_pod);
    }
    return out;
  }

  validate::isolate::RoundResult run(const validate::isolate::Round& round) {
    using validate::isolate::Collective;
    begin(round);
    validate::isolate::RoundResult out;
    for (const auto& group : round.groups) {
      auto& result = out.emplace_back();
      const auto& members = group.members;
      const std::size_t m = members.size();
      const bool matrix = group.kind == Collective::AllToAll;
      const bool gone =
          std::any_of(members.begin(), members.end(), [this](int host) { return dead(host); });
      for (int rail = 0; rail < rails; ++rail) {
        if (gone && (m == 2 || whole_fails)) {
          result.rail_gbits.push_back(0);
          continue;
        }
        double least = std::numeric_limits<double>::infinity();
        if (!matrix) {
          for (std::size_t i = 0; i < (m == 2 ? 1 : m); ++i)  // two, or a ring
            least = std::min(least, rate(members[i], members[(i + 1) % m], 0, 1));
        } else {
          if (result.peer_gbits.empty())
            result.peer_gbits.assign(static_cast<std::size_t>(rails) * m * m, std::nanf(""));
          for (std::size_t i = 0; i < m; ++i)
            for (std::size_t j = i + 1; j < m; ++j) {
              const double got =
                  rate(members[i], members[j], static_cast<int>((i + j) % m), short_factor);
              least = std::min(least, got);
              result.peer_gbits[(static_cast<std::size_t>(rail) * m + i) * m + j] =
                  static_cast<float>(got);
            }
        }
        result.rail_gbits.push_back(least);
      }
    }
    return out;
  }

  /// `after` sees what is known after each round.
  validate::isolate::Verdict isolated(
      validate::isolate::Options options,
      const std::function<void(int round, const validate::isolate::Isolation&)>& after = {}) {
    validate::isolate::Isolation isolation(layout(), options);
    while (const auto round = isolation.next()) {
      isolation.learn(run(*round));
      if (after) after(round->number, isolation);
    }
    return isolation.verdict();
  }

 private:
  struct Flaky {
    double chance, rate;
    bool whole_rounds;
  };
  double normal() { return normal_(random_); }
  bool chance(double share) { return share > 0 && uniform(0, 1) < share; }
  bool dead(int host) const {
    const auto found = dies_.find(host);
    return found != dies_.end() && round_ >= found->second;
  }
  static std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 33, x *= 0xff51afd7ed558ccdull, x ^= x >> 33, x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
  }
  /// A flow's source port is new in each test, so its cable is.
  int hashed(int from, int to, int step) const {
    const auto key = (static_cast<std::uint64_t>(from) << 40) ^
                     (static_cast<std::uint64_t>(to) << 20) ^
                     (static_cast<std::uint64_t>(round_) << 10) ^ static_cast<std::uint64_t>(step);
    return static_cast<int>(mix(key + salt_) % static_cast<std::uint64_t>(uplinks));
  }
  void begin(const validate::isolate::Round& round) {
    if (spread_.empty()) {
      salt_ = random_();
      for (int host = 0; host < hosts(); ++host)
        spread_.push_back(std::abs(host_spread * normal()));
      host_state_.resize(spread_.size()), leaf_state_.resize(static_cast<std::size_t>(leaves));
      for (auto& state : host_state_) state = normal();
      for (auto& state : leaf_state_) state = normal();
    }
    round_ = round.number;
    const double fresh = std::sqrt(1 - drift_memory * drift_memory);
    for (auto& state : host_state_) state = drift_memory * state + fresh * normal();
    for (auto& state : leaf_state_) state = drift_memory * state + fresh * normal();
    bad_now_.clear(), load_.clear();
    for (const auto& [host, how] : flaky_)
      if (how.whole_rounds && chance(how.chance)) bad_now_.insert(host);
    if (!own_collisions) return;
    for (const auto& group : round.groups)
      if (group.members.size() == 2) {
        const int a = group.members[0], b = group.members[1];
        if (a / hosts_per_leaf == b / hosts_per_leaf) continue;
        const int way = hashed(a, b, 0);
        ++load_[{a / hosts_per_leaf, way, 0}], ++load_[{b / hosts_per_leaf, way, 1}];
      }
  }
  double hostRate(int host) {
    const auto h = static_cast<std::size_t>(host);
    double out = line_gbits * efficiency * (1 - spread_[h]);
    if (drift > 0) out *= 1 + drift * host_state_[h];
    if (leaf_drift > 0)
      out *= 1 + leaf_drift * leaf_state_[h / static_cast<std::size_t>(hosts_per_leaf)];
    if (const auto found = slow_.find(host); found != slow_.end()) out *= found->second;
    if (const auto found = flaky_.find(host); found != flaky_.end())
      if (found->second.whole_rounds ? bad_now_.contains(host) : chance(found->second.chance))
        out *= found->second.rate;
    return out;
  }
  double rate(int a, int b, int step, double factor) {
    if (dead(a) || dead(b)) return 0;
    double out = std::min(hostRate(a), hostRate(b));
    const int from = a / hosts_per_leaf, to = b / hosts_per_leaf;
    if (from != to && (busy > 0 || own_collisions || !cable_.empty())) {
      const int way = hashed(a, b, step);
      for (const int leaf : {from, to}) {
        double left = line_gbits * efficiency;
        if (const auto found = cable_.find({leaf, way}); found != cable_.end())
          left *= found->second;
        if (busy > 0) {
          const auto moment = mix((static_cast<std::uint64_t>(leaf * uplinks + way) << 32) ^
                                  static_cast<std::uint64_t>(round_ * 4'096 + step / 16) ^ salt_);
          if (static_cast<double>(moment >> 11) * 0x1p-53 < busy)
            left *= 0.25 + 0.6 * static_cast<double>(mix(moment) >> 11) * 0x1p-53;
        }
        if (const auto found = load_.find({leaf, way, leaf == to}); found != load_.end())
          left /= found->second;
        out = std::min(out, left);
      }
    }
    if (chance(struck)) out *= uniform(0.3, 0.85);
    if (chance(tail_chance)) out *= std::exp(tail_loss * std::log(uniform(1e-9, 1)));
    return std::max(0.0, out * (1 + white * factor * normal()));
  }

  std::mt19937_64 random_;
  NormalNoise normal_;
  std::uint64_t salt_ = 0;
  int round_ = 0;
  std::vector<double> spread_, host_state_, leaf_state_;
  std::map<int, double> slow_;
  std::map<int, int> dies_;
  std::map<int, Flaky> flaky_;
  std::map<std::pair<int, int>, double> cable_;
  std::map<std::array<int, 3>, int> load_;
  std::set<int> bad_now_;
};

}  // namespace muster::test
