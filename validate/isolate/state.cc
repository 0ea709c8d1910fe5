// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/state.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace muster::validate::isolate {
namespace {

constexpr double kRailBehind = 0.05;  ///< a rail that all nodes find slower than the others

/// Beyond what an all-to-all calls bad, so that its noise hides no pair.
constexpr double kSurelySeen = 0.1;

}  // namespace

std::string_view toString(Collective kind) {
  switch (kind) {
    case Collective::Pair:
      return "pair";
    case Collective::AllToAll:
      return "all-to-all";
    case Collective::AllReduce:
      return "all-reduce";
  }
  return "?";
}

std::string_view toString(Stage stage) {
  switch (stage) {
    case Stage::Matching:
      return "matching";
    case Stage::Confirm:
      return "confirm";
    case Stage::Grid:
      return "grid";
    case Stage::Ladder:
      return "ladder";
    case Stage::Hypercube:
      return "hypercube";
  }
  return "?";
}

Isolation::State::State(Layout layout_in, Options options_in)
    : layout(std::move(layout_in)),
      options(options_in),
      random(options_in.seed),
      evidence(layout, options_in.least_gbits),
      nics(layout.leaf.size() * static_cast<std::size_t>(layout.rails)),
      bad_entries(static_cast<std::size_t>(layout.rails)),
      whole(static_cast<std::size_t>(layout.rails)),
      dead_rails(static_cast<std::size_t>(layout.rails)) {}

Margins Isolation::State::margins() const {
  const double sigma = evidence.sigma();
  // What stays with a node from round to round is not averaged out by testing it again.
  const double boundary =
      std::max({options.tolerance, 2.5 * sigma, 8 * evidence.persistentSigma()});
  return {boundary, std::max(0.8 * options.tolerance, 2 * sigma),
          std::max(2.4 * options.tolerance, 4.8 * sigma),
          std::max(4 * options.tolerance, 7 * sigma), sigma};
}

double Nic::lacks() const {
  if (shares.empty()) return 0;
  auto sorted = shares;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const auto half = static_cast<std::ptrdiff_t>((sorted.size() + 1) / 2);
  return 1 -
         std::accumulate(sorted.begin(), sorted.begin() + half, 0.0) / static_cast<double>(half);
}

bool Isolation::State::isWatched(int node) const {
  for (int rail = 0; rail < layout.rails; ++rail)
    if (nic(node, rail).watched) return true;
  return false;
}

int Isolation::State::roundsOf(int node) const {
  std::optional<int> least;
  for (int rail = 0; rail < layout.rails; ++rail)
    if (!dead_rails[static_cast<std::size_t>(rail)])
      least = std::min(least.value_or(nic(node, rail).rounds), nic(node, rail).rounds);
  return least.value_or(0);
}

bool Isolation::State::hasProved(const Nic& nic, int rounds) const {
  return nic.rounds >= (areFew() ? roundsWithBad(rounds, nic.bad_rounds) : rounds);
}

bool Isolation::State::hasProved(int node, int rounds) const {
  for (int rail = 0; rail < layout.rails; ++rail)
    if (!dead_rails[static_cast<std::size_t>(rail)] && !hasProved(nic(node, rail), rounds))
      return false;
  return true;
}

bool Isolation::State::wasBad(int node) const {
  for (int rail = 0; rail < layout.rails; ++rail)
    if (!dead_rails[static_cast<std::size_t>(rail)] && nic(node, rail).bad_rounds > 0) return true;
  return false;
}

std::vector<RailBehind> Isolation::State::railsBehind() const {
  std::vector<RailBehind> out;
  if (layout.rails == 1) return out;
  const auto all = railShares([](const Sample&) { return true; });
  const auto isNear = [this](const Sample& sample) { return leafOf(sample.a) == leafOf(sample.b); };
  const auto near = railShares(isNear);
  const auto far = railShares([&](const Sample& sample) { return !isNear(sample); });
  const auto isBehind = [](const std::optional<double>& share) {
    return share && *share < 1 - kRailBehind;
  };
  for (std::size_t rail = 0; rail < all.size(); ++rail)
    if (const int number = static_cast<int>(rail);
        isBehind(far[rail]) && near[rail] && !isBehind(near[rail]))
      out.push_back({number, *far[rail], true});
    else if (isBehind(all[rail]))
      out.push_back({number, *all[rail]});
  return out;
}

/// Of these tests: each rail's median, as a share of the rails' median; nullopt: it has none.
std::vector<std::optional<double>> Isolation::State::railShares(
    const std::function<bool(const Sample&)>& counts) const {
  std::vector<std::vector<double>> rates(static_cast<std::size_t>(layout.rails));
  for (const auto& sample : evidence.samples())
    if (counts(sample)) rates[static_cast<std::size_t>(sample.rail)].push_back(sample.gbits);
  std::vector<double> medians;
  for (auto& of_rail : rates)
    if (!of_rail.empty()) medians.push_back(quantile(of_rail, 0.5));
  auto sorted = medians;
  const double typical = medians.size() < 2 ? 0 : quantile(sorted, 0.5);
  std::vector<std::optional<double>> out;
  for (auto& of_rail : rates)
    out.push_back(of_rail.empty() || typical <= 0
                      ? std::nullopt
                      : std::optional(quantile(of_rail, 0.5) / typical));
  return out;
}

bool Isolation::State::isBelowFloor() const {
  return options.least_gbits && !evidence.samples().empty() &&
         evidence.medianGbits() < *options.least_gbits;
}

bool Isolation::State::isClear(int node) const {
  for (int rail = 0; rail < layout.rails; ++rail)
    if (nic(node, rail).status != PartStatus::Clear) return false;
  return true;
}

std::vector<int> Isolation::State::clearNodes() const {
  std::vector<int> out;
  for (int node = 0; node < layout.nodes(); ++node)
    if (isClear(node)) out.push_back(node);
  return out;
}

std::vector<int> Isolation::State::suspects() const {
  std::vector<int> out;
  for (int node = 0; node < layout.nodes(); ++node)
    for (int rail = 0; rail < layout.rails; ++rail)
      if (const auto& each = nic(node, rail);
          each.status == PartStatus::Suspect && each.silent < kMaxSilent) {
        out.push_back(node);
        break;
      }
  return out;
}

bool Isolation::State::willSeeAllPairs() const {
  if (!options.groups || saw_all_pairs) return false;
  const auto clear = clearNodes().size();
  return clear >= kFewestOfGroups && clear <= static_cast<std::size_t>(kMaxExchange) &&
         ladders < static_cast<int>(ladderSizes(static_cast<int>(clear)).size());
}

bool Isolation::State::isPathOpen(const PathSuspect& path) const {
  return !path.explained && nic(path.a, path.rail).status != PartStatus::Accused &&
         nic(path.b, path.rail).status != PartStatus::Accused;
}

void Isolation::State::raisePath(int a, int b, int rail, double share, int seen_before) {
  if (paths.size() >= kMaxPaths) return;
  if (!raised.insert({std::min(a, b), std::max(a, b), rail}).second) return;
  paths.push_back({.a = a,
                   .b = b,
                   .rail = rail,
                   .share = share,
                   .repeated = seen_before,
                   .seen_before = seen_before,
                   .round = round});
}

bool Isolation::State::isExplained(int a, int b, int rail) const {
  if (!bad_cables.empty()) {
    const auto used = layout.cables(a, b, rail);
    return std::any_of(used.begin(), used.end(),
                       [this](int cable) { return bad_cables.contains(cable); });
  }
  return leafOf(a) != leafOf(b) &&
         std::any_of(uplinks.begin(), uplinks.end(), [&](const auto& each) {
           return each.rail == rail && (each.leaf == leafOf(a) || each.leaf == leafOf(b));
         });
}

bool Isolation::State::wasGoodTogether(const PathSuspect& path) const {
  const double better = path.best + kSurelySeen;
  const auto isGoodTest = [&](const Sample& sample) {
    return sample.rail == path.rail &&
           std::minmax(sample.a, sample.b) == std::minmax(path.a, path.b) &&
           sample.share >= 1 - margins().path && sample.share > better;
  };
  if (std::ranges::any_of(evidence.samples(), isGoodTest)) return true;
  const auto& then = whole[static_cast<std::size_t>(path.rail)];
  const auto wasIn = [&then](int node) {
    return !then.nodes.empty() && then.nodes[static_cast<std::size_t>(node)];
  };
  return wasIn(path.a) && wasIn(path.b) && better < then.least &&
         !std::binary_search(then.bad.begin(), then.bad.end(),
                             Pair(std::min(path.a, path.b), std::max(path.a, path.b)));
}

bool Isolation::State::isGoodElsewhere(int node, int rail, int partner, int since) const {
  const double least = 1 - margins().path;
  const auto& samples = evidence.samples();  // in the order of rounds
  for (auto each = samples.rbegin(); each != samples.rend() && each->round >= since; ++each) {
    if (each->rail != rail || each->share < least || (each->a != node && each->b != node)) continue;
    const int other = each->a == node ? each->b : each->a;
    if (other != partner && nic(other, rail).status == PartStatus::Clear) return true;
  }
  return std::ranges::any_of(rows, [&](const RowResult& row) {
    return row.node == node && row.rail == rail && row.round >= since && !row.bad;
  });
}

bool Isolation::State::isCableOpen(const CableSuspect& cable) const {
  return cable.fresh == 0 || (cable.fresh < kCableTests && cable.share < 1 - margins().path);
}

bool Isolation::State::isCableBad(const CableSuspect& cable) const {
  return cable.fresh >= kCableTests && cable.share < 1 - margins().path &&
         evidence.bestCable(cable.cable).value_or(-1) < 1 - margins().path;
}

}  // namespace muster::validate::isolate
