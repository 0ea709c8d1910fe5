// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/collective_learner.h"

#include "validate/isolate/test_history.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace muster::validate::isolate {
namespace {

constexpr int kFewestUneven = 3;         ///< bad entries of a row
constexpr double kUneven = 1e-3;         ///< rows of an all-to-all that are uneven by chance
constexpr std::size_t kFewEntries = 64;  ///< bad ones that are looked at one by one
constexpr std::size_t kFewestPeers = 8;  ///< below this a row has no median worth the name
constexpr std::size_t kFewestRows = 8;   ///< that say how a leaf does
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
    const bool whole = groups.front().kind == Collective::AllToAll &&
                       groups.front().members.size() + 8 > state_.clearNodes().size();
    state_.saw_all_pairs = state_.saw_all_pairs || whole;
    state_.entries = std::max(state_.entries, like.count);
    std::vector<Row> rows(state_.layout.leaf.size());
    std::vector<BadEntry> bad;
    const double least = 1 - std::max(like.farthest() * like.sigma, kLeastMissing);
    eachEntry([&](int a, int b, float rate) {
      const double typical = like.typical[kindOf(a, b)];
      const auto share = static_cast<float>(typical > 0 ? rate / typical : 0);
      auto &own = rows[static_cast<std::size_t>(a)], &other = rows[static_cast<std::size_t>(b)];
      own.shares.push_back(share), other.shares.push_back(share);
      const bool near = state_.leafOf(a) == state_.leafOf(b);
      own.near += near, other.near += near;
      if (share >= least) return;
      bad.push_back({a, b, share});
      own.bad_near += near, other.bad_near += near;
      ++own.bad_by_leaf[state_.leafOf(b)], ++other.bad_by_leaf[state_.leafOf(a)];
      ++own.bad, ++other.bad;
    });
    if (whole) {
      auto& then = state_.whole[static_cast<std::size_t>(rail)];
      then = {.nodes = std::vector<bool>(rows.size()), .bad = {}, .least = least};
      for (std::size_t n = 0; n < rows.size(); ++n) then.nodes[n] = !rows[n].shares.empty();
      for (const auto& entry : bad)
        then.bad.emplace_back(std::min(entry.a, entry.b), std::max(entry.a, entry.b));
      std::sort(then.bad.begin(), then.bad.end());
    }
    if (state_.areFew()) noteBadEntries(rows, bad, rail);
    evaluateRows(rows, rail, like.sigma, 2 * static_cast<double>(bad.size()),
                 2 * static_cast<double>(like.count));
    raiseEntries(rows, bad, rail, whole);
  }
}

/// Rows of few are not evaluated. A bad entry is of the end that has more of them, or of both.
void CollectiveLearner::noteBadEntries(const std::vector<Row>& rows,
                                       const std::vector<BadEntry>& bad, int rail) {
  const double least = 1 - state_.margins().path;
  const auto bad_of = [&rows](int node) { return rows[static_cast<std::size_t>(node)].bad; };
  for (const auto& entry : bad) {
    if (static_cast<double>(entry.share) >= least) continue;
    for (const auto& [node, other] : {Pair{entry.a, entry.b}, Pair{entry.b, entry.a}})
      if (rows[static_cast<std::size_t>(node)].shares.size() < kFewestPeers &&
          bad_of(node) >= bad_of(other))
        state_.nic(node, rail).bad_exchanges[state_.current->number].insert(other);
  }
}

/// What a leaf's rows lack together, where it is little: a leaf that drifts is no fault of its
/// nodes. Where it is much the leaf is bad, and each of its nodes says so. Sets the rows' medians.
std::map<int, double> CollectiveLearner::leafLacks(std::vector<Row>& rows) const {
  std::map<int, std::vector<double>> of_leaf;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    auto& row = rows[n];
    if (row.shares.size() < kFewestPeers) continue;
    const auto middle = row.shares.begin() + static_cast<std::ptrdiff_t>(row.shares.size() / 2);
    std::nth_element(row.shares.begin(), middle, row.shares.end());
    row.middle = *middle;
    of_leaf[state_.layout.leaf[n]].push_back(static_cast<double>(row.middle));
  }
  std::map<int, double> out;
  for (auto& [leaf, middles] : of_leaf)
    if (const double lacks = 1 - quantile(middles, 0.5);
        middles.size() >= kFewestRows && lacks > 0 && lacks < state_.margins().path)
      out[leaf] = lacks;
  return out;
}

/// A row is slow when its median is, against that of its leaf, and intermittent when more of it is
/// bad than of other rows. What is bad only towards one leaf, or only away from the own one, is the
/// way and not the NIC.
void CollectiveLearner::evaluateRows(std::vector<Row>& rows, int rail, double sigma, double all_bad,
                                     double all) {
  auto leaf_lacks = leafLacks(rows);
  for (std::size_t n = 0; n < rows.size(); ++n) {
    auto& row = rows[n];
    const int node = static_cast<int>(n);
    auto& nic = state_.nic(node, rail);
    nic.count(row.shares.size(), row.shares.size() >= kFewestPeers);
    if (row.shares.size() < kFewestPeers) continue;
    const double count = static_cast<double>(row.shares.size());
    const double width = kMedianWidth * sigma / std::sqrt(count);
    row.slow =
        static_cast<double>(row.middle) <
        1 - leaf_lacks[state_.leafOf(node)] - std::max(kRowSigmas * width, state_.margins().row);
    int worst_leaf = 0;
    for (const auto& [leaf, times] : row.bad_by_leaf)
      if (leaf != state_.leafOf(node)) worst_leaf = std::max(worst_leaf, times);
    const int rest = row.bad - (row.bad_by_leaf.size() > 1 ? worst_leaf : 0);
    const Background others{.bad = std::max(0.0, all_bad - row.bad), .tests = all - count};
    const bool only_far = row.near > 0 && row.bad_near == 0;
    row.uneven =
        !row.slow && !only_far && rest >= kFewestUneven &&
        others.tail(rest, static_cast<int>(count)) < kUneven / static_cast<double>(rows.size());
    if (nic.status == PartStatus::Clear || row.slow)
      state_.rows.push_back({.round = state_.current->number,
                             .node = node,
                             .rail = rail,
                             .bad = row.uneven || (row.slow && !only_far),
                             .near = row.near,
                             .bad_near = row.bad_near,
                             .share = row.middle});
    if (row.slow && nic.status == PartStatus::Clear)
      nic.suspectAgain();  // slow with many at a time
  }
}

/// A bad way makes a row slow as well; when the NIC turns out to be good, these tests are what is
/// left to explain. Where congestion makes more pairs bad than can be looked at one by one, the
/// all-to-all is made again: only what is bad in each of them is left.
void CollectiveLearner::raiseEntries(const std::vector<Row>& rows, const std::vector<BadEntry>& bad,
                                     int rail, bool whole) {
  if (!whole && state_.willSeeAllPairs()) return;
  const auto rowOf = [&rows](int node) -> const Row& {
    return rows[static_cast<std::size_t>(node)];
  };
  std::vector<const BadEntry*> single;
  std::map<int, std::size_t> by_leaf;
  std::vector<std::size_t> taken(rows.size());
  const double least_of_row = 1 - state_.margins().row;
  for (const auto& entry : bad) {
    const bool slow_a = rowOf(entry.a).slow, slow_b = rowOf(entry.b).slow;
    if (rowOf(entry.a).uneven || rowOf(entry.b).uneven) continue;
    if (!slow_a && !slow_b) {
      single.push_back(&entry);
      ++by_leaf[state_.leafOf(entry.a)];
      if (state_.leafOf(entry.a) != state_.leafOf(entry.b)) ++by_leaf[state_.leafOf(entry.b)];
    } else if (slow_a != slow_b && entry.share < least_of_row &&
               state_.leafOf(entry.a) != state_.leafOf(entry.b)) {
      auto& count = taken[static_cast<std::size_t>(slow_a ? entry.a : entry.b)];
      if (count < kPathsOfRow) ++count, state_.raisePath(entry.a, entry.b, rail, entry.share);
    }
  }
  const std::size_t few = std::max(kFewEntries, rows.size() / 2);
  const bool of_one_leaf = std::any_of(by_leaf.begin(), by_leaf.end(), [&](const auto& leaf) {
    return 2 * leaf.second > single.size();
  });
  auto& known = state_.bad_entries[static_cast<std::size_t>(rail)];
  const int before = known.empty() ? 0 : state_.exchanges;
  if (before)
    std::erase_if(single, [&](const auto* each) { return !known.contains({each->a, each->b}); });
  if (single.size() <= few || (of_one_leaf && by_leaf.size() > 2)) {
    for (const auto* each : single) state_.raisePath(each->a, each->b, rail, each->share, before);
    return;
  }
  known.clear();
  for (const auto* each : single) known.insert({each->a, each->b});
  state_.exchange_due = true;
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
            each.suspectAgain();
    }
  }
}

}  // namespace muster::validate::isolate
