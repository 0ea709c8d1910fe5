// SPDX-License-Identifier: Apache-2.0
// What a kind of GPU should reach: skus.json with its sources, checked for sense when it is read,
// and baselines taken from a fleet where no table knows the kind.
#pragma once

#include "base/result.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

struct Expectation {
  double value = 0;    ///< in the unit that ends its key
  std::string source;  ///< where the number comes from
};

struct Sku {
  std::string name;
  std::vector<std::string> match;             ///< parts of the model that the driver tells
  std::map<std::string, Expectation> expect;  ///< by key: "hbm_min_gbytes_per_s"
};

/// Whether these words stand in the model's name as whole ones: "H20" is not in "NVIDIA H200", nor
/// in "NVIDIA GH200 480GB"; no words are in none.
bool namesModel(std::string_view model, std::string_view words);

class Skus {
 public:
  /// Errors: InvalidInput with every entry that makes no sense: a key that is not known, a number
  /// outside what its unit allows (a floor in MB/s where GB/s are meant), a floor above its peak or
  /// below a third of it, no source, a model that two entries claim
  static Result<Skus> parse(std::string_view json);
  /// The table inside the program. A build whose table makes no sense aborts at its first use.
  static const Skus& builtIn();
  /// The entry whose match is the longest in `model`; nullptr: nobody knows this kind.
  const Sku* find(std::string_view model) const;
  const std::vector<Sku>& all() const { return skus_; }

 private:
  std::vector<Sku> skus_;
};

/// What a fleet of one kind shows by itself.
struct Baseline {
  std::size_t samples = 0;
  double median = 0,
         spread = 0;  ///< spread: 1.4826 × median absolute deviation, a standard deviation's worth
  double floor = 0;   ///< below it a node stands out: four spreads, and 5 % of the median at least
};
inline constexpr std::size_t kLeastSamples = 8;
/// Nullopt for fewer than kLeastSamples finite numbers above zero: then nothing is expected, and
/// that is said.
std::optional<Baseline> baselineFrom(std::vector<double> values);

}  // namespace muster::validate
