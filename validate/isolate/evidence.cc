// SPDX-License-Identifier: Apache-2.0
#include "validate/isolate/evidence.h"

#include "validate/isolate/upper_mode.h"

#include <algorithm>
#include <map>

namespace muster::validate::isolate {
namespace {

/// Tests of one kind in a round that can be compared among themselves, even when few are healthy.
/// Rounds that load all uplinks at once are compared with nothing else, so fewer must do.
constexpr std::size_t kEnoughLike = 128, kEnoughOfLoaded = 8;
constexpr int kSameLeaf = 0;       ///< LikeKey::second
constexpr double kSlowNear = 0.8;  ///< who never reaches more within its leaf measures no other way
constexpr std::size_t kEnoughForNoise = 64, kEnoughRepeats = 8;
constexpr double kPlausibleNoise = 0.005;  ///< σ that is assumed at least while there are few tests
constexpr double kLeastNoise = 0.001;
constexpr double kFarSigmas = 6;  ///< what is farther below is a fault or congestion, not noise
constexpr std::size_t kTestsOfMean = 3, kEnoughMeans = 24;
constexpr double kLowQuantile = 0.05, kLowSigmas = 1.645;
constexpr double kWidthOfSpread = 3;  ///< σ of a squared spread of n values: so many / √n
constexpr double kFasterShare = 0.1, kFasterSigmas = 5;
constexpr double kFewFaster = 0.001;  ///< of all tests: fewer are mistakes of measuring
// From a quantile of normal noise to σ: the median of what lies above the median, and of what lies
// above the upper quartile.
constexpr double kAboveMedian = 1.4826, kAboveQuartile = 2.10;

}  // namespace

Evidence::LikeKey Evidence::likeOf(int a, int b, int rail) const {
  const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
  return {rail, layout_.leaf[i] == layout_.leaf[j] ? kSameLeaf
                : layout_.pod[i] == layout_.pod[j] ? 1
                                                   : 2};
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
                            std::max(rate, 0.0), 1, reference[g], round.stage == Stage::Confirm});
  }
  compareWithin(begin, round.stage == Stage::Hypercube ? kEnoughOfLoaded : kEnoughLike);
  comparePooled();
  measureNoise();
  measurePersistent();
  countFaster();
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

void Evidence::compareWithin(std::size_t begin, std::size_t enough) {
  std::map<LikeKey, std::vector<double>> like;
  for (std::size_t s = begin; s < samples_.size(); ++s)
    if (samples_[s].reference && samples_[s].gbits > 0)
      like[likeOf(samples_[s].a, samples_[s].b, samples_[s].rail)].push_back(samples_[s].gbits);
  std::map<LikeKey, double> typical;
  for (auto& [key, rates] : like)
    if (rates.size() >= enough) typical[key] = upperMode(rates);
  for (std::size_t s = begin; s < samples_.size(); ++s) {
    auto& sample = samples_[s];
    const auto found = typical.find(likeOf(sample.a, sample.b, sample.rail));
    sample.pooled = found == typical.end();
    if (!sample.pooled) share(sample, found->second);
  }
}

void Evidence::comparePooled() {
  std::map<LikeKey, PairRates> like;  // of those that are compared so
  for (const auto& sample : samples_)
    if (sample.pooled) like[likeOf(sample.a, sample.b, sample.rail)];
  if (like.empty()) return;
  for (const auto& sample : samples_)
    if (sample.gbits > 0)
      if (const auto own = like.find(likeOf(sample.a, sample.b, sample.rail)); own != like.end())
        own->second.put(sample.a, sample.b, sample.gbits);
  std::map<int, PairRates> of_rail;  // where there are too few of them
  for (auto& [key, rates] : like)
    if (!rates.isEnough()) of_rail[key.first];
  for (const auto& sample : samples_)
    if (sample.gbits > 0)
      if (const auto own = of_rail.find(sample.rail); own != of_rail.end())
        own->second.put(sample.a, sample.b, sample.gbits);
  std::map<LikeKey, double> typical;
  for (auto& sample : samples_) {
    if (!sample.pooled) continue;
    const auto key = likeOf(sample.a, sample.b, sample.rail);
    auto found = typical.find(key);
    if (found == typical.end()) {
      auto& rates = like[key].isEnough() ? like[key] : of_rail[key.first];
      found = typical.emplace(key, typicalOf(key, rates)).first;
    }
    share(sample, found->second);
  }
}

/// Of two leaves of which one is slow, all that crosses them is slow: it is no measure of itself.
/// `rates`: of tests like these. 0: too few pairs say it.
double Evidence::typicalOf(const LikeKey& key, PairRates& rates) const {
  if (!rates.isEnough()) return 0;
  const double own = rates.typical();
  if (key.second == kSameLeaf || rates.isManyPairs()) return own;
  const LikeKey near_key{key.first, kSameLeaf};
  PairRates near, of_good;
  std::map<int, double> best_near;
  for (const auto& sample : samples_) {
    if (likeOf(sample.a, sample.b, sample.rail) != near_key) continue;
    if (sample.gbits > 0) near.put(sample.a, sample.b, sample.gbits);
    for (const int node : {sample.a, sample.b})
      best_near[node] = std::max(best_near[node], sample.gbits);
  }
  if (!near.isEnough()) return own;
  const auto isSlow = [&, least = kSlowNear * near.typical()](int node) {
    const auto at = best_near.find(node);
    return at != best_near.end() && at->second < least;
  };
  bool is_any_slow = false;
  for (const auto& sample : samples_) {
    if (sample.gbits <= 0 || likeOf(sample.a, sample.b, sample.rail) != key) continue;
    if (isSlow(sample.a) || isSlow(sample.b))
      is_any_slow = true;
    else
      of_good.put(sample.a, sample.b, sample.gbits);
  }
  if (!is_any_slow) return own;
  return of_good.isEnough() ? of_good.typical() : std::max(own, near.typical());
}

void Evidence::measureNoise() {
  std::vector<double> within, pooled;
  for (const auto& sample : samples_)
    if (sample.share > 1 && sample.share < 1 + kFasterShare)
      (sample.pooled ? pooled : within).push_back(sample.share - 1);
  if (within.size() >= kEnoughForNoise)
    sigma_ = std::max(kLeastNoise, kAboveMedian * quantile(within, 0.5));
  else if (!pooled.empty() || !within.empty())
    sigma_ = std::max(kPlausibleNoise, pooled.size() > within.size()
                                           ? kAboveQuartile * quantile(pooled, 0.5)
                                           : kAboveMedian * quantile(within, 0.5));
  // Of few tests those above what is typical may lie close by chance; what a pair gives twice may
  // not.
  if (within.size() + pooled.size() < kEnoughForNoise) sigma_ = std::max(sigma_, repeatedSigma());
}

/// From what the same two gave one time and the next; 0: too few were tested twice.
double Evidence::repeatedSigma() const {
  std::map<std::array<int, 3>, double> before;
  std::vector<double> differences;
  for (const auto& sample : samples_) {
    if (sample.gbits <= 0) continue;
    const auto [at, fresh] = before.try_emplace(
        {std::min(sample.a, sample.b), std::max(sample.a, sample.b), sample.rail}, sample.gbits);
    if (fresh) continue;
    differences.push_back(std::abs(std::log(sample.gbits / at->second)));
    at->second = sample.gbits;
  }
  if (differences.size() < kEnoughRepeats) return 0;
  return kAboveMedian * quantile(differences, 0.5) / std::sqrt(2.0);
}

/// From the means of a NIC's first tests: if nothing stayed with it, they would differ by what its
/// own tests differ by, over √tests. Only the worse ones count, for a test is the least of two.
void Evidence::measurePersistent() {
  struct First {
    std::array<double, kTestsOfMean> shares{};
    std::size_t tests = 0;
  };
  std::vector<First> firsts(layout_.leaf.size() * static_cast<std::size_t>(layout_.rails));
  const double least = 1 - kFarSigmas * sigma_;
  for (const auto& sample : samples_)
    for (const int node : {sample.a, sample.b})
      if (auto& first = firsts[index(node, sample.rail)];
          first.tests < kTestsOfMean && sample.share > least)
        first.shares[first.tests++] = sample.share;
  std::vector<double> means;
  double within = 0;
  for (const auto& first : firsts) {
    if (first.tests < kTestsOfMean) continue;
    double mean = 0;
    for (const double share : first.shares) mean += share / kTestsOfMean;
    for (const double share : first.shares)
      within += (share - mean) * (share - mean) / (kTestsOfMean - 1);
    means.push_back(mean);
  }
  persistent_sigma_ = 0;
  if (means.size() < kEnoughMeans) return;
  const auto count = static_cast<double>(means.size());
  const double median = quantile(means, 0.5),
               spread = (median - quantile(means, kLowQuantile)) / kLowSigmas;
  // The estimate itself is uncertain by this share: it must show beyond twice that, and then counts
  // with its upper end.
  const double noise = within / count / kTestsOfMean, error = kWidthOfSpread / std::sqrt(count);
  if (spread * spread > noise * (1 + 2 * error))
    persistent_sigma_ = std::sqrt(spread * spread * (1 + error) - noise);
}

void Evidence::countFaster() {
  const double most = 1 + std::max(kFasterShare, kFasterSigmas * sigma_);
  std::set<std::array<int, 3>> faster;
  for (const auto& sample : samples_)
    if (sample.share > most)
      faster.insert({std::min(sample.a, sample.b), std::max(sample.a, sample.b), sample.rail});
  faster_pairs_ = static_cast<int>(faster.size());
  if (static_cast<double>(faster_pairs_) < kFewFaster * static_cast<double>(samples_.size()))
    faster_pairs_ = 0;
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
