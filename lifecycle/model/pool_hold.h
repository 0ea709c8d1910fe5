// SPDX-License-Identifier: Apache-2.0
// A person's drain: who took a node out of its pool, in their words. It binds: nothing disturbs the
// node until they give it back, or somebody overrides exactly this drain with a reason.
#pragma once

#include "lifecycle/model/facet.h"

#include <optional>
#include <string>

namespace muster::lifecycle {

/// "none", or who took the node out, when and why: as the scheduler tells it. Observed by the
/// pool's phase beside kPoolFacet.
inline constexpr std::string_view kPoolHoldFacet = "pool.hold";
inline constexpr std::string_view kPoolNotHeld = "none";
/// The value of kPoolHoldFacet that a person has overridden. Another drain is another value, so an
/// override ends with the drain that it was given for.
inline constexpr std::string_view kPoolOverrideFacet = "pool.override";

/// The hold's words; nothing: no person holds the node, or it is not known.
std::optional<std::string> poolHoldOf(const FactSet& facts, const Subject& subject);
/// As poolHoldOf, unless somebody has overridden this hold.
std::optional<std::string> bindingHoldOf(const FactSet& facts, const Subject& subject);
/// Why the node must not be disturbed, and what a person does about it.
std::string poolHoldText(const Subject& subject, const std::string& hold);

}  // namespace muster::lifecycle
