// SPDX-License-Identifier: Apache-2.0
// Plans of whole halls: nodes with 40 goals each, most of them met, and what one node's change
// costs then.
#include "bench/lifecycle_bench.h"
#include "inventory/model/cluster.h"
#include "lifecycle/planner/replanner.h"

namespace muster::bench {
namespace {

using namespace lifecycle;

constexpr int kFacets = 40;
constexpr int kHall = 100'000;
constexpr int kSmallHall = 10'000;
constexpr int kOneInBehind = 100;  ///< of the nodes whose driver is not the wanted one
constexpr int kChanges = 50;
constexpr double kHallSeconds = 2.0, kSmallHallSeconds = 0.2, kHallMebibytes = 2048,
                 kReplanMillis = 10;

Fact factOf(const Subject& subject, const std::string& facet, const std::string& value) {
  return {subject,
          FacetName(facet),
          value,
          WallTime(std::chrono::milliseconds(1)),
          "agent " + subject.str(),
          ""};
}

/// Components, the image, drivers, ports, gates, the pool: as many goals as an HGX node has.
class Wide final : public Phase {
 public:
  std::string_view name() const override { return "wide"; }
  std::vector<Goal> goals(const inventory::Cluster&, const Subject& subject,
                          const FactSet& facts) const override {
    if (subject.isCluster()) return {goal(subject, "fabric.sm", "master:1", Disruption::None, "")};
    std::vector<Goal> out;
    out.reserve(kFacets);
    const auto serial = facts.value(subject, FacetName("hw.serial")).value_or("");
    out.push_back(goal(subject, "enrolled", "yes", Disruption::None, ""));
    for (int i = 0; i < 18; ++i)
      out.push_back(goal(subject, kFirmware[static_cast<std::size_t>(i)], "2.1.0",
                         Disruption::Reset, "enrolled"));
    out.push_back(goal(subject, "image", "noble@1", Disruption::Wipe, "enrolled"));
    out.push_back(goal(subject, "os", "running", Disruption::Reset, "image"));
    out.push_back(goal(subject, "driver.nvidia", "575.57.08", Disruption::Drain, "os"));
    out.push_back(goal(subject, "driver.rdma", "44.*", Disruption::Drain, "os"));
    for (int i = 0; i < 14; ++i)
      out.push_back(goal(subject, kPorts[static_cast<std::size_t>(i)], "active", Disruption::None,
                         "driver.rdma"));
    out.back().needs.push_back({Subject::cluster(), FacetName("fabric.sm")});
    out.push_back(
        goal(subject, "gate.burn-in", "pass:" + serial, Disruption::Drain, "driver.nvidia"));
    out.push_back(
        goal(subject, "certificate", "valid:" + serial, Disruption::None, "gate.burn-in"));
    out.push_back(goal(subject, "pool", "in", Disruption::None, "certificate"));
    return out;
  }
  Async<std::vector<Fact>> observe(Subject) override { co_return std::vector<Fact>(); }
  Async<Outcome> act(Action, ActContext&) override { co_return Outcome(Done{}); }
  Async<std::vector<Fact>> verify(Action) override { co_return std::vector<Fact>(); }

 private:
  static std::vector<std::string> numbered(const char* head, int count) {
    std::vector<std::string> out;
    for (int i = 0; i < count; ++i) out.push_back(fmt::format("{}{}", head, i));
    return out;
  }
  static Goal goal(const Subject& subject, const std::string& facet, std::string want,
                   Disruption disruption, const char* need) {
    Goal out;
    out.facet = {subject, FacetName(facet)};
    out.want = std::move(want);
    out.disruption = disruption;
    out.deadline = std::chrono::seconds(600);
    if (*need) out.needs.push_back({subject, FacetName(need)});
    out.why = "profile hgx-h100 wants it";
    return out;
  }
  const std::vector<std::string> kFirmware = numbered("firmware.HGX_FW_", 18),
                                 kPorts = numbered("fabric.port.mlx5_", 14);
};

inventory::Cluster clusterOf(int nodes) {
  inventory::Cluster cluster;
  cluster.digest = "bench";
  for (int i = 1; i <= nodes; ++i)
    cluster.nodes.emplace_back().name = NodeName(fmt::format("gpu{:06}", i));
  return cluster;
}

/// Everything met, but the driver of one node in kOneInBehind.
FactSet factsOf(const inventory::Cluster& cluster, const Wide& phase, int one_in_behind) {
  FactSet facts;
  int index = 0;
  for (const auto& node : cluster.nodes) {
    const Subject subject(node.name);
    facts.put(factOf(subject, "hw.serial", "S" + node.name.str()));
    for (const auto& goal : phase.goals(cluster, subject, facts))
      facts.put(factOf(subject, goal.facet.facet.str(), goal.want == "44.*" ? "44.0" : goal.want));
    if (++index % one_in_behind == 0) facts.put(factOf(subject, "driver.nvidia", "570.124.06"));
  }
  facts.put(factOf(Subject::cluster(), "fabric.sm", "master:1"));
  return facts;
}

void benchPlan(Report& report, int nodes, double bar_s) {
  const auto cluster = clusterOf(nodes);
  Wide phase;
  const auto facts = factsOf(cluster, phase, kOneInBehind);
  const double before = peakMebibytes();
  Plan plan;
  const double seconds =
      fastestCpuSeconds(3, [&] { plan = *makePlan(cluster, facts, {}, {&phase}); });
  if (plan.actions.size() != 3u * static_cast<std::size_t>(nodes / kOneInBehind))
    std::abort();  // drain, driver, join
  report.record(
      {.name = fmt::format("plan {} nodes × {} facets, a driver behind on 1 %", nodes, kFacets),
       .value = seconds,
       .unit = "s CPU",
       .bar = bar_s});
  if (nodes == kHall)
    report.record(
        {.name = fmt::format(
             "… memory at its peak, the facts included ({:.0f} MiB before planning)", before),
         .value = peakMebibytes(),
         .unit = "MiB",
         .bar = kHallMebibytes});
}

/// A hall at work: one node in a thousand has something to do, and one node's facts change at a
/// time.
void benchReplan(Report& report) {
  const auto cluster = clusterOf(kHall);
  Wide phase;
  auto facts = factsOf(cluster, phase, kHall / 100);
  Replanner replanner(cluster, {}, {&phase});
  if (!replanner.plan(facts, {})) std::abort();
  double slowest = 0;
  for (int i = 0; i < kChanges; ++i) {
    const Subject subject(cluster.nodes[static_cast<std::size_t>(i) * 997 + 5].name);
    facts.put(factOf(subject, "driver.rdma", "43.0"));
    Plan plan;
    slowest =
        std::max(slowest, fastestCpuSeconds(1, [&] { plan = *replanner.plan(facts, {subject}); }));
    if (i == 0 && plan.hash() != makePlan(cluster, facts, {}, {&phase})->hash()) std::abort();
  }
  report.record(
      {.name = fmt::format(
           "plan again after one node of {} changed (the slowest of {}; 100 nodes have work)",
           kHall, kChanges),
       .value = slowest * 1e3,
       .unit = "ms CPU",
       .bar = kReplanMillis});
}

}  // namespace

void benchScaleOfPlans(Report& report) {
  benchPlan(report, kSmallHall, kSmallHallSeconds);
  benchPlan(report, kHall, kHallSeconds);
  benchReplan(report);
}

}  // namespace muster::bench
