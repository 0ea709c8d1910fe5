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
}  // namespace

FabricPhase::FabricPhase(const inventory::Cluster& cluster, io::ProcessRunner& processes,
                         Clock& clock, FabricOptions options)
    : cluster_(cluster),
      clock_(clock),
      inspection_(cluster, processes, clock, std::move(options)),
      acting_(inspection_, clock) {}

std::vector<Goal> FabricPhase::goals(const inventory::Cluster& cluster, const Subject& subject,
                                     const lifecycle::FactSet&) const {
  std::vector<Goal> goals;
  auto ref = [](const Subject& of, std::string_view facet) {
    return FacetRef{of, FacetName(std::string(facet))};
  };
  const auto whole = Subject::cluster();
  auto add = [&](std::string_view facet, std::string want, std::chrono::seconds expected,
                 std::chrono::seconds deadline, std::vector<FacetRef> needs, std::string why) {
    goals.push_back(
        {ref(subject, facet), inspection_.declared() ? std::move(want) : std::string(kInvalid),
         lifecycle::Disruption::None, expected, deadline, std::move(needs), std::move(why)});
  };
  if (subject.isCluster()) {
    if (!isInfiniBand(cluster)) return goals;
    const auto only = onlyFabric(cluster);
    const auto& fabric = only ? **only : cluster.fabrics.begin()->second;
    add(kSm, inspection_.declared() ? wantedManager() : "", std::chrono::seconds(3), 2 * kSmSettle,
        {},
        FabricInspection::isExternal(fabric)
            ? fmt::format(
                  "fabric {} declares no subnet manager of muster: another one must be active",
                  fabric.name)
            : fmt::format("fabric {} declares the subnet manager on the controller, routing {}",
                          fabric.name, fabric.routing));
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
  if (FabricInspection::looksAtPartitions(cluster.fabrics.at(profile.fabric)))
    needs.push_back(ref(whole, kPartitions));
  add(kPorts, std::string(kAsDeclared), std::chrono::seconds(1), std::chrono::seconds(120),
      std::move(needs), fmt::format("profile {} is on fabric {}", profile.name, profile.fabric));
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
    auto partitions = inspection_.partitionsProblem(*now);
    auto partitions_problem = co_await std::move(partitions);
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

std::unique_ptr<lifecycle::Phase> makeFabricPhase(const inventory::Cluster& cluster,
                                                  io::ProcessRunner& processes, Clock& clock,
                                                  FabricOptions options) {
  return std::make_unique<FabricPhase>(cluster, processes, clock, std::move(options));
}

}  // namespace muster::fabric
