// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/collective_learner.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace muster::validate::isolate {
namespace {

constexpr std::size_t kFewestPeers = 8;  ///< below this a row has no median worth the name
constexpr double kMedianWidth = 1.25;    ///< σ of a median of m values: so many σ/√m
constexpr double kRowSigmas = 5;
constexpr double kLeastMissing = 0.1;  ///< of one entry: shares of a collective are coarse
constexpr double kAboveMedian = 1.4826;
constexpr std::size_t kFewestGroups = 4;  ///< that can be compared among themselves
constexpr double kSlowGroup = 0.1;
constexpr std::size_t kPathsOfRow = 2;

/// Entries are compared with those between places alike: same leaf, same pod, or neither.
struct Like {
  std::array<std::vector<double>, 3> rates;
  std::array<double, 3> typical{};
  double sigma = 0;
  std::size_t count = 0;

  void measure() {
    std::vector<double> above;
    for (std::size_t k = 0; k < rates.size(); ++k) {
      count += rates[k].size();
      std::vector<double> alive;
      for (const double rate : rates[k])
        if (rate > 0) alive.push_back(rate);
      if (alive.empty()) continue;
      typical[k] = quantile(alive, 0.5);
      for (const double rate : alive)
        if (rate > typical[k]) above.push_back(rate / typical[k] - 1);
    }
    if (!above.empty()) sigma = kAboveMedian * quantile(above, 0.5);
  }
  /// What normal noise reaches in less than one of a thousand such rounds.
  double farthest() const {
    return std::sqrt(2 * std::log(1'000.0 * static_cast<double>(std::max<std::size_t>(count, 2))));
  }
};

}  // namespace

void CollectiveLearner::learn(const RoundResult& result) {
  learnMatrices(result);
  learnSpread(result);
  learnFailed(result);
}

void CollectiveLearner::learnMatrices(const RoundResult& result) {
  const auto& groups = state_.current->groups;
  const auto kindOf = [this](int a, int b) -> std::size_t {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    return state_.layout.leaf[i] == state_.layout.leaf[j] ? 0
           : state_.layout.pod[i] == state_.layout.pod[j] ? 1
                                                          : 2;
  };
  for (int rail = 0; rail < state_.layout.rails; ++rail) {
    if (state_.dead_rails[static_cast<std::size_t>(rail)]) continue;
    Like like;
    const auto eachEntry = [&](auto&& visit) {
      for (std::size_t g = 0; g < std::min(groups.size(), result.size()); ++g) {
        const auto& members = groups[g].members;
        const std::size_t m = members.size(), offset = static_cast<std::size_t>(rail) * m * m;
        if (groups[g].kind != Collective::AllToAll || result[g].peer_gbits.size() < offset + m * m)
          continue;
        for (std::size_t i = 0; i < m; ++i)
          for (std::size_t j = i + 1; j < m; ++j)
            if (const float rate = result[g].peer_gbits[offset + i * m + j];
                std::isfinite(rate) && !state_.isExplained(members[i], members[j], rail))
              visit(members[i], members[j], std::max(0.0f, rate));
      }
    };
    eachEntry([&](int a, int b, float rate) { like.rates[kindOf(a, b)].push_back(rate); });
    like.measure();
    if (like.count == 0) continue;
    state_.saw_all_pairs =
        state_.saw_all_pairs || (groups.front().kind == Collective::AllToAll &&
                                 groups.front().members.size() + 8 > state_.clearNodes().size());
    std::vector<std::vector<float>> rows(state_.layout.leaf.size());
    const auto shareOf = [&](int a, int b, float rate) {
      const double typical = like.typical[kindOf(a, b)];
      return typical > 0 ? rate / typical : 0;
    };
    eachEntry([&](int a, int b, float rate) {
      const auto share = static_cast<float>(shareOf(a, b, rate));
      rows[static_cast<std::size_t>(a)].push_back(share),
          rows[static_cast<std::size_t>(b)].push_back(share);
    });
    std::vector<bool> slow_row(rows.size());
    for (std::size_t node = 0; node < rows.size(); ++node) {
      auto& row = rows[node];
      if (row.size() < kFewestPeers) continue;
      std::nth_element(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(row.size() / 2),
                       row.end());
      const double width = kMedianWidth * like.sigma / std::sqrt(static_cast<double>(row.size()));
      slow_row[node] = row[row.size() / 2] < 1 - std::max(kRowSigmas * width, state_.margins().row);
      if (auto& each = state_.nic(static_cast<int>(node), rail);
          slow_row[node] && each.status == PartStatus::Clear) {
        each = {};  // good with one partner at a time, slow with many: asked again
        each.status = PartStatus::Suspect;
      }
    }
    // A bad way makes a row slow as well; when the NIC turns out to be good, these tests are what
    // is left to explain.
    std::vector<std::size_t> taken(rows.size());
    const double least = 1 - std::max(like.farthest() * like.sigma, kLeastMissing);
    const double least_of_row = 1 - state_.margins().row;
    eachEntry([&](int a, int b, float rate) {
      const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
      const double share = shareOf(a, b, rate);
      if (!slow_row[i] && !slow_row[j]) {
        if (share < least) state_.raisePath(a, b, rail, share);
      } else if (!(slow_row[i] && slow_row[j]) && share < least_of_row &&
                 state_.layout.leaf[i] != state_.layout.leaf[j]) {
        auto& count = taken[slow_row[i] ? i : j];
        if (count < kPathsOfRow) ++count, state_.raisePath(a, b, rail, share);
      }
    });
  }
}

/// A ring touches few pairs, so a slow group only says where to look closer.
void CollectiveLearner::learnSpread(const RoundResult& result) {
  const auto& groups = state_.current->groups;
  std::set<std::size_t> slow;
  for (int rail = 0; rail < state_.layout.rails; ++rail) {
    const auto rateOf = [&](std::size_t g) {
      const auto& rates = result[g].rail_gbits;
      return static_cast<std::size_t>(rail) < rates.size() ? rates[static_cast<std::size_t>(rail)]
                                                           : std::nan("");
    };
    std::vector<double> rates;
    for (std::size_t g = 0; g < std::min(groups.size(), result.size()); ++g)
      if (groups[g].kind == Collective::AllReduce && rateOf(g) > 0) rates.push_back(rateOf(g));
    if (rates.size() < kFewestGroups) continue;
    const double typical = quantile(rates, 0.5);
    for (std::size_t g = 0; g < std::min(groups.size(), result.size()); ++g)
      if (groups[g].kind == Collective::AllReduce && !(rateOf(g) >= (1 - kSlowGroup) * typical))
        slow.insert(g);
  }
  for (const auto g : slow) state_.slow_groups.push_back(groups[g].members);
}

/// A collective that ended without any number: somebody has gone, or it only fails at that size. Of
/// an all-reduce every pair is looked at; the members of a small all-to-all are asked again one by
/// one; what is large is cut up first. What finds no culprit is told by the verdict.
void CollectiveLearner::learnFailed(const RoundResult& result) {
  const auto& groups = state_.current->groups;
  const auto clear = state_.clearNodes().size();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].kind == Collective::Pair) continue;
    const bool numbers =
        g < result.size() && (std::any_of(
                                  result[g].rail_gbits.begin(), result[g].rail_gbits.end(),
                                  [](double rate) { return rate > 0; }) ||
                              std::any_of(
                                  result[g].peer_gbits.begin(), result[g].peer_gbits.end(),
                                  [](float rate) { return rate > 0; }));
    if (numbers) continue;
    const auto& members = groups[g].members;
    state_.failed_groups.push_back(members);
    std::erase(state_.slow_groups, members);
    if (2 * members.size() > clear) {
      for (auto& part :
           blocks(members,
                  std::max(2, static_cast<int>(std::sqrt(static_cast<double>(members.size()))))))
        state_.slow_groups.push_back(std::move(part));
    } else if (groups[g].kind == Collective::AllReduce) {
      state_.slow_groups.push_back(members);
    } else {
      for (const int node : members)
        for (int rail = 0; rail < state_.layout.rails; ++rail)
          if (auto& each = state_.nic(node, rail); each.status == PartStatus::Clear)
            each = {.status = PartStatus::Suspect};
    }
  }
}

}  // namespace muster::validate::isolate
