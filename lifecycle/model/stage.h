// SPDX-License-Identifier: Apache-2.0
// The road of DESIGN §5 as a table: which word a facet stands for. Data; a new facet is a row.
// Internal to lifecycle/.
#pragma once

#include "lifecycle/model/facet.h"

#include <string_view>
#include <vector>

namespace muster::lifecycle {

struct Stage {
  std::string_view prefix;   ///< of the facet; one that ends in '.' stands for a family
  std::string_view doing;    ///< an action of it is under way
  std::string_view reached;  ///< it and everything before it is met
};

const std::vector<Stage>& stages();
/// Index into road(), or road().size() for a facet that it does not know.
std::size_t stageOf(const FacetName& facet);
/// Goals in the order of the road, those of one step by name.
std::vector<Goal> inStageOrder(std::vector<Goal> goals);
bool isMet(const Goal& goal, const FactSet& facts);

}  // namespace muster::lifecycle
