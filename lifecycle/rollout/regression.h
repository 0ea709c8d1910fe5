// SPDX-License-Identifier: Apache-2.0
// Have nodes become slower? The same nodes before and after, by a paired one-sided t-test.
//
// Each node gives one difference, in percent of what it had before, positive when it lost. Three
// answers at the stated confidence: slower (the loss is proven to be above what is tolerated),
// holds (it is proven to be below), inconclusive (neither is proven). "Not proven slower" is never
// taken for "holds": with few nodes or much scatter that would let everything pass.
#pragma once

#include "inventory/model/node.h"
#include "inventory/parse/change.h"
#include "lifecycle/model/facet.h"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <string>
#include <vector>

namespace muster::lifecycle {

/// Measured numbers of a node, by a name that ends in the unit: "gemm_gflops", "boot_seconds".
using Measures = std::map<std::string, double>;

/// The numbers that the facts' evidence holds: of checks {"results": […]} (what gates keep), each
/// with "values" {name: number}. Rates and durations only; of several with one name the worst.
Measures measuresOf(const std::vector<Fact>& facts);

enum class Direction { HigherIsBetter, LowerIsBetter };
/// By the unit that the name ends in; nullopt: it is neither a rate nor a duration (a count).
std::optional<Direction> directionOf(std::string_view measure);

enum class RegressionVerdict { Holds, Slower, Inconclusive };
std::string_view toString(RegressionVerdict verdict);

struct Comparison {
  std::string measure;
  std::size_t nodes = 0;
  double mean_loss_percent = 0, least_loss_percent = 0,
         most_loss_percent = 0;  ///< mean, and its one-sided bounds
  double tolerated_percent = 0;
  int confidence_percent = 0;
  RegressionVerdict verdict = RegressionVerdict::Inconclusive;
  std::string worst_node;
  double worst_loss_percent = 0;
  std::string text() const;
};

struct NodeMeasures {
  NodeName node;
  Measures before, after;
};

/// One comparison for each measure that at least one node has on both sides.
std::vector<Comparison> compareMeasures(const std::vector<NodeMeasures>& nodes,
                                        const inventory::RegressionRule& rule);

nlohmann::json toJson(const Comparison& comparison);

}  // namespace muster::lifecycle
