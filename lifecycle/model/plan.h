// SPDX-License-Identifier: Apache-2.0
// Plan: a value. Computed by a pure function, printed, saved, reviewed; apply runs exactly it.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/facet.h"
#include "lifecycle/model/phase.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::lifecycle {

struct Policy {
  std::set<Subject> only;           ///< empty: all subjects. Of the cluster what these rest on
  std::set<NodeName> wipe_allowed;  ///< open, journaled wipe permissions
  /// Set by a plan of some actions only (muster monitor): of the open intents that it
  /// does not name just these are ended, by action id; all others belong to somebody's apply. Not
  /// part of a saved plan.
  std::optional<std::set<std::string>> intents_to_end = std::nullopt;
  /// Facets whose journaled action has recorded an operation and was interrupted; those of phases
  /// that drive on are acted upon although they are met. Not part of a saved plan.
  std::set<FacetRef> interrupted = {};
};

struct Plan {
  std::string inventory_digest;  ///< of the Cluster it was computed from
  std::string facts_digest;      ///< of the facts it read (values, not times)
  Policy policy;
  std::vector<Action> actions;  ///< ordered: an action stands after those it needs
  std::map<FacetRef, std::string>
      facts_used;  ///< facet → value, of every subject that has actions; "" where an action starts
                   ///< from the unknown

  bool empty() const { return actions.empty(); }
  std::string hash() const;    ///< SHA-256 of the canonical JSON without the hash
  std::string toJson() const;  ///< includes "hash" and "format": "muster-plan/1"
  /// Errors: Corrupt (hash differs, unknown format, what is missing)
  static Result<Plan> fromJson(std::string_view text);
};

using Phases = std::vector<Phase*>;

inline constexpr std::string_view kDrainSuffix = "#drain";  ///< ends the id of a drain action
inline constexpr std::chrono::seconds kDrainExpected{600};
inline constexpr std::chrono::seconds kDrainDeadline{
    24 * 3600};  ///< running jobs may take their time, where the pool sets no deadline
inline constexpr std::chrono::seconds kDrainGrace{
    900};  ///< beyond the pool's own deadline, so that its policy has the last word
inline constexpr std::chrono::seconds kDefaultDeadline{
    1800};  ///< where neither the goal nor the facet table names one

/// Shape:  (Cluster, facts, policy) → Plan. Pure: no clock, no I/O, same input → same hash, in
/// whatever order it comes. Order:  an action stands after those it needs; where needs leave it
/// open: the cluster first, then nodes naturally. A goal is unmet when its fact is absent or does
/// not match, or when a goal of the same node that it needs is wiped or therefore re-made. (A reset
/// or a drain re-makes nothing: what depends on a version says so in its wanted value.) A node in
/// the pool that will be disturbed is drained first and joins again last. It is not taken out when
/// an action of it is blocked, nor disturbed while it is unknown whether it is in the pool: those
/// actions are blocked too. An image action on a node that holds a system or is in a pool is
/// blocked unless policy.wipe_allowed names it. Errors: Internal when goals depend on each other in
/// a circle (named), on a goal that nobody has (both named), or when
///         two phases claim one facet; NotFound when policy.only names a subject that the inventory
///         does not have
Result<Plan> makePlan(const inventory::Cluster& cluster, const FactSet& facts, const Policy& policy,
                      const Phases& phases);

/// How long a drain of this node may take: its pool's drain.deadline_minutes and kDrainGrace, or
/// kDrainDeadline where the pool sets none.
std::chrono::seconds drainDeadlineOf(const inventory::Cluster& cluster, const Subject& subject);
/// What an operator does to let a node be wiped; ends every text that refuses it.
std::string wipeAdvice(const Subject& subject);
/// SHA-256 over facets and values.
std::string digestOf(const std::map<FacetRef, std::string>& facts);

/// What changed between the plan's facts and these, one line each; empty: the plan still holds.
std::vector<std::string> staleReasons(const Plan& plan, const inventory::Cluster& cluster,
                                      const FactSet& facts);

}  // namespace muster::lifecycle
