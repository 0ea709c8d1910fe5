// SPDX-License-Identifier: Apache-2.0
// The words of lifecycle: subject, facet, fact, goal, action. See docs/architecture.md for the
// facets in use.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "lifecycle/model/action_cause.h"
#include "lifecycle/model/stage.h"

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace muster::lifecycle {

/// What a facet belongs to: a node by its name, or the whole cluster.
class Subject {
 public:
  Subject() = default;
  explicit Subject(const NodeName& node) : name_(node.str()) {}
  static Subject cluster() { return Subject(std::string(kCluster)); }
  static Subject parse(std::string name) { return Subject(std::move(name)); }
  bool isCluster() const { return name_ == kCluster; }
  NodeName node() const { return NodeName(name_); }
  const std::string& str() const { return name_; }
  friend auto operator<=>(const Subject&, const Subject&) = default;

  static constexpr std::string_view kCluster = "@cluster";

 private:
  explicit Subject(std::string name) : name_(std::move(name)) {}
  std::string name_;
};

struct FacetRef {
  Subject subject;
  FacetName facet;
  std::string str() const { return subject.str() + "/" + facet.str(); }
  friend auto operator<=>(const FacetRef&, const FacetRef&) = default;
};

/// An observed value: of what, when, from where. Values compare as text; evidence is for people.
struct Fact {
  Subject subject;
  FacetName facet;
  std::string value;  ///< "" is never stored: an unknown facet has no fact
  WallTime observed_at{};
  std::string source;    ///< "redfish https://10.20.250.1", "agent gpu001"
  std::string evidence;  ///< optional JSON
};

/// The facts of all subjects; what the planner reads. By subject, then ordered by facet: a fleet's
/// facts are some million, and almost every question is about one subject.
class FactSet {
 public:
  /// Whose facts were asked for while a Watch lived.
  struct Reads {
    std::set<std::string> subjects;
    bool all = false;
  };
  /// Notes in `reads` what is asked of `facts`; one at a time, on one thread.
  class Watch {
   public:
    Watch(const FactSet& facts, Reads& reads) : facts_(facts) { facts_.reads_.to = &reads; }
    Watch(const Watch&) = delete;
    ~Watch() { facts_.reads_.to = nullptr; }

   private:
    const FactSet& facts_;
  };

  void put(Fact fact);
  void forget(const Subject& subject, const FacetName& facet);
  /// Valid until a fact of the same subject is put or forgotten.
  const Fact* find(const Subject& subject, const FacetName& facet) const;
  std::optional<std::string> value(const Subject& subject, const FacetName& facet) const;
  std::vector<Fact> of(const Subject& subject) const;
  /// Ordered by facet; valid as long as `find`.
  std::span<const Fact> view(const Subject& subject) const;
  std::map<FacetRef, Fact> all() const;
  std::size_t size() const;

 private:
  /// A copy of the facts is not watched.
  struct Listener {
    Reads* to = nullptr;
    Listener() = default;
    Listener(const Listener&) {}
    Listener& operator=(const Listener&) { return *this; }
  };
  std::unordered_map<std::string, std::vector<Fact>> facts_;
  mutable Listener reads_;
};

/// What an action does to work that runs on the node.
enum class Disruption { None, Drain, Reset, Wipe };
std::string_view toString(Disruption disruption);
std::optional<Disruption> parseDisruption(std::string_view text);

/// One facet that must have one value. Goals come from phases and are pure functions of Cluster and
/// facts.
struct Goal {
  FacetRef facet;
  std::string want;  ///< exact text, or a glob with '*' and '?'
  Disruption disruption = Disruption::None;
  std::chrono::seconds expected{
      0};  ///< how long the action usually takes; 0: as facet_table.h says
  std::chrono::seconds deadline{0};  ///< after this it has failed; 0: as facet_table.h says
  std::vector<FacetRef> needs;       ///< goals that must be met first: of the same phase
  std::string why;                   ///< "profile gpu-node pins driver nvidia to 575.57.08"
  std::string blocked =
      {};  ///< why its phase cannot reach it as things are, and what would help; empty: it can
  std::vector<Stage> after = {};    ///< stages of the same subject, whoever's goals they are, that
                                    ///< must be met first
  std::optional<Stage> stage = {};  ///< its own, where that is another than its facet's
};

bool matches(std::string_view glob, std::string_view value);

/// One step of a plan: facet from → to, with its reason.
struct Action {
  std::string id;  ///< "gpu001/firmware.BMC"; a drain is "gpu001/pool#drain"
  FacetRef facet;
  std::string phase;  ///< who acts
  std::string from;   ///< "" when unknown
  std::string to;
  std::string reason;
  Disruption disruption = Disruption::None;
  std::chrono::seconds expected{0};
  std::chrono::seconds deadline{0};
  std::vector<std::string> needs;  ///< ids of actions in the same plan
  std::string blocked;             ///< why it cannot run, and what would allow it; empty: it can
  ActionCause cause = ActionCause::Declared;
  FacetName about = {};  ///< what the cause is about: the facet that excludes the node, the facet
                         ///< of the failed action

  friend bool operator==(const Action&, const Action&) = default;
};

// Facets that lifecycle itself must understand; every other facet belongs to a phase.
inline constexpr std::string_view kPoolFacet = "pool";  ///< "in", "silent", "drained", "out"
inline constexpr std::string_view kInstalledFacet =
    "disk.system";  ///< "none", or what is installed there
inline constexpr std::string_view kNothingInstalled = "none";
inline constexpr std::string_view kPoolIn = "in";
inline constexpr std::string_view kPoolDrained = "drained";
inline constexpr std::string_view kPoolSilent =
    "silent";  ///< does not answer its pool, which would give it jobs as soon as it does
/// Whether jobs run there or can start there without anybody's asking.
inline bool mayTakeJobs(const std::optional<std::string>& pool) {
  return pool == kPoolIn || pool == kPoolSilent;
}

}  // namespace muster::lifecycle
