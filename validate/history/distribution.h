// SPDX-License-Identifier: Apache-2.0
// What is typical of values that hold outliers, how far noise reaches, and whether they are one
// population or two. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace muster::validate::history {

/// Of at least one value; reorders them.
double medianOf(std::vector<double>& values);

struct Scale {
  double median = 0;
  double sigma = 0;  ///< of a normal distribution with the same median absolute deviation
};
Scale scaleOf(std::vector<double> values);

/// σ that normal noise exceeds on one side with this probability.
double sigmasFor(double probability);

/// Values that lie in two places with nothing between them: two kinds of parts, two versions of a
/// firmware, or a half that is slow. A median of all of them is typical of neither.
struct Populations {
  Scale low, high;
  double border = 0;  ///< the first value of the upper one
  std::size_t below = 0, above = 0;
  double sigmas = 0;  ///< their distance, in σ of the wider one
  struct Part {
    double from;  ///< its first value
    Scale scale;
  };
  /// Ascending: where either side of the border falls into several parts itself. Empty: none does.
  std::vector<Part> parts;
  bool isLow(double value) const { return value < border; }
  /// Of the part that a value is in.
  const Scale& of(double value) const;
};
/// Their distance, from which on they are two. Halves of one normal distribution are 2.3 apart; of
/// 6,000 draws of 16 normal values 5 had a distance of more than 8 with a gap of 4.
inline constexpr double kTwoPopulations = 8, kTwoPopulationsGap = 4;
/// Nothing: they are one, or the smaller one has fewer than three values or less than a fiftieth.
std::optional<Populations> populationsOf(std::vector<double> values);
/// Three places and more, each with nothing between it and the next: one way to part them in two
/// for each gap, ascending. Empty: they have no such places, or are too few. A step of values that
/// are counted in whole steps is no gap.
std::vector<Populations> placesOf(std::vector<double> values);

/// Noise has heavier tails than a normal distribution. How far they reach is seen on the good
/// sides, where nothing is wrong, of all metrics together: one metric has too few values to tell.
/// Its furthest value would do, but for a single one that was mismeasured; so the tail's own shape
/// (Hill's estimator) has a say too.
class NoiseTail {
 public:
  /// Distances towards the good side of one group, in σ. A group of which many are far out is two
  /// populations, and no noise.
  void add(const std::vector<double>& good);
  static bool isMixed(const std::vector<double>& good);
  /// Where one side of `comparisons` values is expected to hold `alarms` by noise alone; at least
  /// what a normal distribution says.
  double limit(double alarms, std::size_t comparisons);

 private:
  std::vector<double> far_;
  std::size_t count_ = 0;
};

}  // namespace muster::validate::history
