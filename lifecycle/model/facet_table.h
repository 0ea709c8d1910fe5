// SPDX-License-Identifier: Apache-2.0
// The one table of facets: who owns each, its stage, how long an action on it takes, whether
// recovery may try it again, and what a certificate makes of it. Status words, the table of stages,
// durations, recovery and the certificate's scope follow from it. Data; a new facet is a row.
#pragma once

#include "lifecycle/model/facet.h"

#include <span>

namespace muster::lifecycle {

/// What a change of the facet's value does to a node's validation.
enum class Revalidation {
  None,
  Certificate,  ///< the certificate names the value, and is void when it moves
  Gates,        ///< the same, and the gates' passes are worth nothing either
  Policy,       ///< what `certificates.parts` of the inventory says of this kind of part
};

struct FacetRow {
  std::string_view facet;  ///< a name; one that ends in '.' stands for a family
  std::string_view owner;  ///< the phase that observes it
  Stage stage = Stage::None;
  std::chrono::seconds expected{0};  ///< usual duration of an action, where its phase names none
  std::chrono::seconds bound{0};     ///< an action that takes longer has failed; 0: no action, or
                                     ///< its phase names one
  bool recoverable = false;          ///< a failed action may be tried again by steps of recovery
  Revalidation revalidation = Revalidation::None;
  std::string_view when_late = {};  ///< what an operator looks at when an action takes too long
};

struct StageRow {
  Stage stage = Stage::None;
  std::string_view title;        ///< of a column: "firmware"
  std::string_view in_progress;  ///< an action of it is under way: "updating firmware"
  std::string_view reached;      ///< it and everything before it is met: "firmware as declared"
};

std::span<const FacetRow> facetTable();
/// In their order, without Stage::None.
std::span<const StageRow> stageTable();

/// The row of the longest name that fits; null for a facet that the table does not know.
const FacetRow* findFacetRow(std::string_view facet);
inline const FacetRow* findFacetRow(const FacetName& facet) { return findFacetRow(facet.str()); }

Stage stageOf(const FacetName& facet);
/// The goal's own stage where it says one.
Stage stageOf(const Goal& goal);
/// Null for Stage::None.
const StageRow* findStageRow(Stage stage);

/// Goals by stage, those of one stage by name; those of none last.
std::vector<Goal> inStageOrder(std::vector<Goal> goals);

/// Turns `Goal::after` of a subject's goals into needs on the goals of those stages. Of one
/// subject; all phases' goals together.
void resolveStages(std::span<Goal*> goals);

}  // namespace muster::lifecycle
