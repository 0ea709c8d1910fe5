// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/evidence.h"

#include <algorithm>
#include <map>

namespace muster::validate::isolate {
namespace {

constexpr std::size_t kEnoughLike =
    8;  ///< tests of one kind in a round that can be compared among themselves
constexpr std::size_t kFewest = 3;  ///< pairs; with fewer in all there is nothing to compare with
constexpr std::size_t kEnoughForNoise = 64;
constexpr double kPlausibleNoise = 0.005;  ///< σ that is assumed at least while there are few tests
constexpr double kLeastNoise = 0.001;
// From a quantile of normal noise to σ: the median of what lies above the median, and of what lies
// above the upper quartile.
constexpr double kAboveMedian = 1.4826, kAboveQuartile = 2.10;

}  // namespace

double quantile(std::vector<double>& values, double share) {
  const auto place =
      static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

Evidence::LikeKey Evidence::likeOf(int a, int b, int rail) const {
  const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
  return {rail, layout_.leaf[i] == layout_.leaf[j] ? 0 : layout_.pod[i] == layout_.pod[j] ? 1 : 2};
}

void Evidence::add(const Round& round, const RoundResult& result,
                   const std::vector<bool>& reference) {
  const std::size_t begin = samples_.size();
  for (std::size_t g = 0; g < std::min(round.groups.size(), result.size()); ++g) {
    const auto& group = round.groups[g];
    if (group.kind != Collective::Pair) continue;
    const auto& rates = result[g].rail_gbits;
    for (int rail = 0; rail < std::min(layout_.rails, static_cast<int>(rates.size())); ++rail)
      if (const double rate = rates[static_cast<std::size_t>(rail)]; std::isfinite(rate))
        samples_.push_back({round.number, group.members[0], group.members[1], rail,
                            std::max(rate, 0.0), 1, reference[g]});
  }
  compareWithin(begin);
  comparePooled();
  measureNoise();
  cables_.clear();
  cables_seen_ = 0;
  best_.assign(layout_.leaf.size() * static_cast<std::size_t>(layout_.rails), -1);
  for (const auto& sample : samples_)
    for (const int node : {sample.a, sample.b}) {
      auto& best = best_[index(node, sample.rail)];
      best = std::max(best, sample.share);
    }
}

/// A floor that was declared counts as well: who stays below it is slow, however its peers do.
void Evidence::share(Sample& sample, double typical) const {
  sample.share = typical > 0    ? sample.gbits / typical
                 : least_gbits_ ? std::min(1.0, sample.gbits / *least_gbits_)
                                : 0;
  if (least_gbits_ && sample.gbits < *least_gbits_)
    sample.share = std::min(sample.share, sample.gbits / *least_gbits_);
}

void Evidence::compareWithin(std::size_t begin) {
  std::map<LikeKey, std::vector<double>> like;
  for (std::size_t s = begin; s < samples_.size(); ++s)
    if (samples_[s].reference && samples_[s].gbits > 0)
      like[likeOf(samples_[s].a, samples_[s].b, samples_[s].rail)].push_back(samples_[s].gbits);
  std::map<LikeKey, double> typical;
  for (auto& [key, rates] : like)
    if (rates.size() >= kEnoughLike) typical[key] = quantile(rates, 0.5);
  for (std::size_t s = begin; s < samples_.size(); ++s) {
    auto& sample = samples_[s];
    const auto found = typical.find(likeOf(sample.a, sample.b, sample.rail));
    sample.pooled = found == typical.end();
    if (!sample.pooled) share(sample, found->second);
  }
}

/// A bad node of few takes part in half of their tests, so the upper quartile says what is typical.
void Evidence::comparePooled() {
  struct Pool {
    std::vector<double> rates;
    std::set<Pair>
        pairs;  ///< two nodes alone are no measure of each other, however often they are tested
    void put(const Sample& sample) {
      rates.push_back(sample.gbits);
      if (pairs.size() < kFewest)
        pairs.insert({std::min(sample.a, sample.b), std::max(sample.a, sample.b)});
    }
    bool isEnough() const { return pairs.size() >= kFewest; }
  };
  if (std::none_of(samples_.begin(), samples_.end(),
                   [](const auto& sample) { return sample.pooled; }))
    return;
  std::map<LikeKey, Pool> like;
  std::vector<Pool> of_rail(static_cast<std::size_t>(layout_.rails));
  for (const auto& sample : samples_) {
    if (sample.gbits <= 0) continue;
    like[likeOf(sample.a, sample.b, sample.rail)].put(sample);
    of_rail[static_cast<std::size_t>(sample.rail)].put(sample);
  }
  std::map<LikeKey, double> typical;
  for (auto& sample : samples_) {
    if (!sample.pooled) continue;
    const auto key = likeOf(sample.a, sample.b, sample.rail);
    auto found = typical.find(key);
    if (found == typical.end()) {
      auto& pool =
          like[key].isEnough() ? like[key] : of_rail[static_cast<std::size_t>(sample.rail)];
      found = typical
                  .emplace(key, pool.isEnough()
                                    ? quantile(pool.rates,
                                               pool.rates.size() >= kEnoughForNoise ? 0.5 : 0.75)
                                    : 0)
                  .first;
    }
    share(sample, found->second);
  }
}

void Evidence::measureNoise() {
  std::vector<double> within, pooled;
  for (const auto& sample : samples_)
    if (sample.share > 1) (sample.pooled ? pooled : within).push_back(sample.share - 1);
  if (within.size() >= kEnoughForNoise)
    sigma_ = std::max(kLeastNoise, kAboveMedian * quantile(within, 0.5));
  else if (!pooled.empty() || !within.empty())
    sigma_ = std::max(kPlausibleNoise, pooled.size() > within.size()
                                           ? kAboveQuartile * quantile(pooled, 0.5)
                                           : kAboveMedian * quantile(within, 0.5));
}

std::optional<double> Evidence::bestCable(int cable) const {
  for (; cables_seen_ < samples_.size(); ++cables_seen_) {
    const auto& sample = samples_[cables_seen_];
    for (const int each : layout_.cables(sample.a, sample.b, sample.rail)) {
      auto& best = cables_.try_emplace(each, -1).first->second;
      best = std::max(best, sample.share);
    }
  }
  const auto found = cables_.find(cable);
  return found == cables_.end() ? std::nullopt : std::optional(found->second);
}

double Evidence::medianGbits(std::optional<int> rail) const {
  std::vector<double> rates;
  for (const auto& sample : samples_)
    if (!rail || sample.rail == *rail) rates.push_back(sample.gbits);
  return rates.empty() ? 0 : quantile(rates, 0.5);
}

}  // namespace muster::validate::isolate
