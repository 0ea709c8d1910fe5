// SPDX-License-Identifier: Apache-2.0
// The state of a node in one word (DESIGN §5), derived from facts, findings and open intents; never
// set by hand.
#pragma once

#include "lifecycle/model/facet_table.h"
#include "lifecycle/store/store.h"

namespace muster::lifecycle {

bool isMet(const Goal& goal, const FactSet& facts);

std::string nodeState(const Subject& subject, const FactSet& facts, const std::vector<Goal>& goals,
                      const std::vector<Finding>& findings, const std::vector<Intent>& open);

/// Whether it is one of the words that nodeState() has for a node. Work on a facet of no stage is
/// "working on FACET" besides.
bool isNodeState(std::string_view word);
/// All of them, for advice: "declared, enrolled, …".
std::string nodeStateWords();

}  // namespace muster::lifecycle
