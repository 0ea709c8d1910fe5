// SPDX-License-Identifier: Apache-2.0
// FabricPhase: what it wants and what it sees.
#include "fabric/phase.h"

#include "base/clock.h"
#include "base/json_output.h"
#include "fabric/compare/compare.h"
#include "fabric/discovery/discovery.h"
#include "fabric/fabric.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"

#include <algorithm>

namespace muster::fabric {

using lifecycle::FacetRef;
using lifecycle::Fact;
using lifecycle::Goal;
using lifecycle::Subject;

namespace {

constexpr std::string_view kAsDeclared = "as-declared";
constexpr std::string_view kStandingBy = "standing-by";
constexpr std::string_view kExternalMaster = "external-master";
constexpr std::string_view kUnreadable =
    "unreadable";  // fail closed: an old fact must not stand in for a lost discovery
constexpr std::string_view kInvalid =
    "valid-declaration";  // wanted when the declaration has an error: never observed

/// Of several, none of which is named, the first stands for all: what is wrong is told once.
std::string nameOf(const inventory::Cluster& cluster, const std::string& fabric) {
  if (const auto chosen = chosenFabric(cluster, fabric)) return (*chosen)->name;
  return !fabric.empty() || cluster.fabrics.empty() ? fabric : cluster.fabrics.begin()->first;
}

std::string suffixOf(const inventory::Cluster& cluster, const std::string& fabric) {
  const auto own = cluster.fabrics.find(fabric);
  return own == cluster.fabrics.end() ? std::string() : facetSuffix(cluster, own->second);
}

}  // namespace

FabricPhase::FabricPhase(const inventory::Cluster& cluster, io::ProcessRunner& processes,
                         Clock& clock, FabricOptions options, const std::string& fabric)
    : cluster_(cluster),
      clock_(clock),
      fabric_(fabric::nameOf(cluster, fabric)),
      suffix_(suffixOf(cluster, fabric_)),
      inspection_(cluster, processes, clock, std::move(options), fabric),
      acting_(inspection_, clock) {}

std::vector<Goal> FabricPhase::goals(const inventory::Cluster& cluster, const Subject& subject,
                                     const lifecycle::FactSet&) const {
  std::vector<Goal> goals;
  auto ref = [this](const Subject& of, std::string_view facet) {
    return FacetRef{of, nameOf(facet)};
  };
  const auto whole = Subject::cluster();
  auto add = [&](std::string_view facet, std::string want, std::chrono::seconds expected,
                 std::chrono::seconds deadline, std::vector<FacetRef> needs, std::string why) {
    goals.push_back(
        {ref(subject, facet), inspection_.declared() ? std::move(want) : std::string(kInvalid),
         lifecycle::Disruption::None, expected, deadline, std::move(needs), std::move(why)});
  };
  if (subject.isCluster()) {
    if (!isInfiniBand()) return goals;
    const auto& fabric = cluster.fabrics.at(fabric_);
    add(kSm, inspection_.declared() ? wantedManager() : "", std::chrono::seconds(3), 2 * kSmSettle,
        {},
        FabricInspection::isExternal(fabric)
            ? fmt::format(
                  "fabric {} declares no subnet manager of muster: another one must be active",
                  fabric.name)
            : fmt::format("fabric {} declares the subnet manager on the controller, routing {}",
                          fabric.name,
                          inspection_.declared()
                              ? routingOf(fabric, inspection_.declared()->topology)
                              : fabric.routing));
    if (inspection_.hasStandby())
      add(kStandby, std::string(kStandingBy), std::chrono::seconds(5), std::chrono::seconds(120),
          {ref(whole, kSm)},
          fmt::format("fabric {} declares {} subnet managers", fabric.name,
                      fabric.subnet_managers.size()));
    if (FabricInspection::looksAtPartitions(fabric))
      add(kPartitions,
          inspection_.declared()
              ? tablesDigest(inspection_.declared()->partitions, inspection_.declared()->topology)
              : "",
          std::chrono::seconds(3), std::chrono::seconds(120), {ref(whole, kSm)},
          fmt::format("fabric {} declares {} partitions", fabric.name, fabric.partitions.size()));
    add(kLinks, std::string(kAsDeclared), std::chrono::seconds(1), std::chrono::seconds(120),
        {ref(whole, FabricInspection::looksAtPartitions(fabric) ? kPartitions : kSm)},
        fmt::format("fabric {} declares every cable", fabric.name));
    return goals;
  }
  const auto* node = cluster.findNode(subject.node());
  if (!node || !onFabric(*node)) return goals;
  const auto& profile = cluster.profileOf(*node);
  std::vector<FacetRef> needs = {ref(whole, kSm)};
  if (FabricInspection::looksAtPartitions(cluster.fabrics.at(fabric_)))
    needs.push_back(ref(whole, kPartitions));
  add(kPorts, std::string(kAsDeclared), std::chrono::seconds(1), std::chrono::seconds(120),
      std::move(needs), fmt::format("profile {} is on fabric {}", profile.name, fabric_));
  goals.back().after = {profile.drivers.empty() ? lifecycle::Stage::Boot
                                                : lifecycle::Stage::Drivers};
  return goals;
}

Async<std::vector<Fact>> FabricPhase::look(Subject subject, std::chrono::milliseconds max_age) {
  std::vector<Fact> facts;
  if (!inspection_.declared() || !concerns(subject)) co_return facts;
  auto pass = co_await tools_semaphore_.enter();
  auto seen = co_await inspection_.picture(max_age);
  if (!seen) {
    for (auto facet : facetsOf(subject))
      facts.push_back(
          fact(subject, facet, std::string(kUnreadable), "ibnetdiscover", errorJson(seen.error())));
    co_return facts;
  }
  auto now = *seen;  // shared: it stays while we look, whoever renews the picture
  if (!subject.isCluster()) {
    auto problem = co_await inspection_.portsProblem(subject.node(), *now);
    facts.push_back(factOf(subject, kPorts, problem, std::string(kAsDeclared),
                           "ibnetdiscover, smpquery pkeys"));
    co_return facts;
  }
  auto sm_problem = co_await inspection_.smProblem(*now);
  facts.push_back(factOf(subject, kSm, sm_problem, wantedManager(), "sminfo, opensm.log"));
  if (inspection_.hasStandby()) {
    auto standby_problem = co_await inspection_.standbyProblem(*now);
    facts.push_back(factOf(subject, kStandby, standby_problem, std::string(kStandingBy), "sminfo"));
  }
  if (inspection_.looksAtPartitions()) {
    auto partitions_problem = co_await inspection_.partitionsProblem(*now);
    facts.push_back(
        factOf(subject, kPartitions, partitions_problem,
               tablesDigest(inspection_.declared()->partitions, inspection_.declared()->topology),
               "smpquery pkeys"));
  }
  facts.push_back(linksFact(*now));
  co_return facts;
}

/// A facet is as wanted only when reading it worked and showed no problem.
Fact FabricPhase::factOf(const Subject& subject, std::string_view facet,
                         const Result<std::string>& problem, std::string wanted,
                         std::string source) const {
  if (!problem)
    return fact(subject, facet, std::string(kUnreadable), std::move(source),
                errorJson(problem.error()));
  return fact(subject, facet, problem->empty() ? std::move(wanted) : "not-as-declared: " + *problem,
              std::move(source));
}

Fact FabricPhase::linksFact(const Picture& now) const {
  nlohmann::json evidence = {{"devices", now.found.devices.size()},
                             {"links", now.found.links.size()},
                             {"deviations", now.deviations.size()}};
  return fact(Subject::cluster(), kLinks,
              now.deviations.empty() ? std::string(kAsDeclared)
                                     : fmt::format("{} deviations: {}", now.deviations.size(),
                                                   repairs(now.deviations)),
              "ibnetdiscover", jsonText(evidence));
}

std::string FabricPhase::wantedManager() const {
  return inspection_.managerIsExternal()
             ? std::string(kExternalMaster)
             : "master:" + declaredSmDigest(*inspection_.declared()->fabric,
                                            inspection_.declared()->topology);
}

Async<lifecycle::Outcome> FabricPhase::act(lifecycle::Action action,
                                           lifecycle::ActContext& context) {
  if (!inspection_.declared()) co_return lifecycle::Blocked{inspection_.declared().error().str()};
  auto pass = co_await tools_semaphore_.enter();
  co_return co_await acting_.act(action.facet, context);
}

namespace {

/// The phases of several fabrics as one: each facet has its fabric's name behind.
class FabricPhases final : public lifecycle::Phase {
 public:
  explicit FabricPhases(std::map<std::string, std::unique_ptr<FabricPhase>> by_suffix)
      : phases_(std::move(by_suffix)) {}

  std::string_view name() const override { return "fabric"; }
  std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                          const lifecycle::FactSet& facts) const override {
    std::vector<Goal> out;
    for (const auto& [suffix, phase] : phases_)
      for (auto& goal : phase->goals(cluster, subject, facts)) out.push_back(std::move(goal));
    return out;
  }
  Async<std::vector<Fact>> observe(Subject subject) override {
    std::vector<Fact> out;
    for (const auto& [suffix, phase] : phases_) {
      CO_TRY(facts, co_await phase->observe(subject));
      out.insert(out.end(), std::make_move_iterator(facts.begin()),
                 std::make_move_iterator(facts.end()));
    }
    co_return out;
  }
  Async<lifecycle::Outcome> act(lifecycle::Action action, lifecycle::ActContext& context) override {
    auto* phase = phaseOf(action);
    if (!phase) co_return lifecycle::Blocked{notManaged(action)};
    co_return co_await phase->act(std::move(action), context);
  }
  Async<std::vector<Fact>> verify(lifecycle::Action action) override {
    auto* phase = phaseOf(action);
    if (!phase) co_return fail(ErrorCode::NotFound, notManaged(action));
    co_return co_await phase->verify(std::move(action));
  }

 private:
  FabricPhase* phaseOf(const lifecycle::Action& action) const {
    const auto& facet = action.facet.facet.str();
    const auto found = phases_.find(facet.substr(baseOf(facet).size()));
    return found == phases_.end() ? nullptr : found->second.get();
  }
  static std::string notManaged(const lifecycle::Action& action) {
    return fmt::format("the inventory has no InfiniBand fabric any more that {} belongs to",
                       action.facet.facet.str());
  }

  std::map<std::string, std::unique_ptr<FabricPhase>> phases_;
};

}  // namespace

std::unique_ptr<lifecycle::Phase> makeFabricPhase(const inventory::Cluster& cluster,
                                                  io::ProcessRunner& processes, Clock& clock,
                                                  FabricOptions options,
                                                  const std::string& fabric) {
  return std::make_unique<FabricPhase>(cluster, processes, clock, std::move(options), fabric);
}

std::unique_ptr<lifecycle::Phase> makeFabricPhases(
    const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
    const std::function<FabricOptions(const std::string& fabric)>& options) {
  const auto fabrics = inventory::infiniBandFabrics(cluster);
  std::map<std::string, std::unique_ptr<FabricPhase>> phases;
  for (const auto* fabric : fabrics)
    phases.emplace(facetSuffix(cluster, *fabric),
                   std::make_unique<FabricPhase>(cluster, processes, clock, options(fabric->name),
                                                 fabric->name));
  if (phases.size() == 1) return std::move(phases.begin()->second);
  return std::make_unique<FabricPhases>(std::move(phases));
}

}  // namespace muster::fabric
