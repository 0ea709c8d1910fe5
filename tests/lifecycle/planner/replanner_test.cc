// SPDX-License-Identifier: Apache-2.0
// A Replanner answers what makePlan answers, whatever changes; and a change of one node costs one
// node.
#include "lifecycle/planner/replanner.h"
#include "inventory/model/cluster.h"
#include "tests/lifecycle/random_graph.h"

#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

constexpr int kReplannedGraphs = 200;
constexpr int kChanges = 12;

/// As a hall is: the cluster needs no node, and few nodes need another one.
void looseLinks(test::Graph& graph, std::mt19937& random) {
  for (auto& goals : graph.phases)
    for (auto& goal : goals)
      std::erase_if(goal.needs, [&](const FacetRef& need) {
        return goal.facet.subject.isCluster()
                   ? !need.subject.isCluster()
                   : need.subject != goal.facet.subject && random() % 8 != 0;
      });
}

/// Some facts change, come or go. Answers of whom.
std::set<Subject> disturb(const test::Graph& graph, FactSet& facts, std::mt19937& random) {
  std::vector<FacetRef> facets;
  for (const auto& goals : graph.phases)
    for (const auto& goal : goals) facets.push_back(goal.facet);
  for (const auto& name : graph.names)
    facets.push_back(test::FakeWorld::ref(name + "/disk.system"));
  std::set<Subject> changed;
  for (auto left = 1 + random() % 3; left > 0; --left) {
    const auto& facet = facets[random() % facets.size()];
    changed.insert(facet.subject);
    if (random() % 4 == 0)
      facts.forget(facet.subject, facet.facet);
    else if (facet.facet.str() == kPoolFacet)
      facts.put(test::factOf(facet.str(), random() % 2 ? "in" : "drained"));
    else
      facts.put(test::factOf(facet.str(), std::to_string(random() % 2)));
  }
  return changed;
}

TEST(Replanner, givesThePlanThatMakePlanGives) {
  int partial = 0;
  for (unsigned seed = 0; seed < kReplannedGraphs && !testing::Test::HasFailure(); ++seed) {
    std::mt19937 random(seed);
    auto graph = test::randomGraph(random);
    if (seed % 4 != 0) looseLinks(graph, random);
    auto facts = test::factsOf(graph);
    const auto cluster = test::clusterOf(graph.names);
    test::GraphPhases world(graph);
    Replanner replanner(cluster, graph.policy, world.phases);
    std::set<Subject> changed;
    for (int change = 0; change < kChanges; ++change) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", change " + std::to_string(change));
      auto again = replanner.plan(facts, changed);
      auto plan = makePlan(cluster, facts, graph.policy, world.phases);
      ASSERT_TRUE(again && plan);
      ASSERT_EQ(again->hash(), plan->hash()) << again->toJson() << plan->toJson();
      ASSERT_EQ(again->actions, plan->actions);
      partial += replanner.lastCost().whole ? 0 : 1;
      changed = disturb(graph, facts, random);
    }
  }
  EXPECT_GT(partial, kReplannedGraphs)
      << "hardly anything was planned in part, so nothing was tested";
}

/// Nodes with a chain of goals each; those of n1 to n3 rest on the serial of the node before.
class ReplannerFleet : public testing::Test {
 protected:
  ReplannerFleet() : phase_("p", world_) {
    phase_.want([](const inventory::Cluster&, const Subject& subject,
                   const FactSet& facts) -> std::vector<Goal> {
      if (subject.isCluster()) return {test::goalOf("@cluster/sm", "on", Disruption::None, {})};
      const auto& name = subject.str();
      std::string partner = name == "n1" ? "n0" : name == "n2" ? "n1" : name == "n3" ? "n2" : "";
      const auto serial =
          facts.value(Subject::parse(partner), FacetName("serial")).value_or("none");
      return {test::goalOf(name + "/a", "1", Disruption::Reset, {"@cluster/sm"}),
              test::goalOf(name + "/b", serial, Disruption::None, {name + "/a"})};
    });
    for (const auto& node : cluster_.nodes) {
      facts_.put(test::factOf(node.name.str() + "/a", "1"));
      facts_.put(test::factOf(node.name.str() + "/b", "none"));
    }
    facts_.put(test::factOf("@cluster/sm", "on"));
  }
  void expectPlan(const std::set<Subject>& changed, std::size_t subjects, std::size_t actions) {
    auto plan = replanner_.plan(facts_, changed);
    auto whole = makePlan(cluster_, facts_, {}, {&phase_});
    ASSERT_TRUE(plan && whole);
    EXPECT_EQ(plan->hash(), whole->hash());
    EXPECT_EQ(plan->actions.size(), actions);
    EXPECT_EQ(replanner_.lastCost().subjects, subjects);
  }
  static Subject node(const char* name) { return Subject::parse(name); }

  test::FakeWorld world_;
  test::FakePhase phase_;
  inventory::Cluster cluster_ = test::clusterOf({"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"});
  FactSet facts_;
  Replanner replanner_{cluster_, {}, {&phase_}};
};

TEST_F(ReplannerFleet, asksOnlyTheNodeThatChanged) {
  expectPlan({}, 9, 0);
  facts_.put(test::factOf("n6/a", "0"));
  expectPlan({node("n6")}, 2, 1);  // and the cluster
  facts_.put(test::factOf("n5/a", "0"));
  expectPlan({node("n5")}, 2, 2);
  facts_.put(test::factOf("n6/a", "1"));
  expectPlan({node("n6")}, 2, 1);
}

TEST_F(ReplannerFleet, asksThoseWhoseGoalsRestOnTheFactsThatChanged) {
  expectPlan({}, 9, 0);
  facts_.put(test::factOf("n0/serial", "S0"));
  expectPlan({node("n0")}, 5, 1);  // n1 reads n0, and n2 n1, and n3 n2
  facts_.put(test::factOf("n4/serial", "S4"));
  expectPlan({node("n4")}, 2, 1);
}

TEST_F(ReplannerFleet, plansEverythingWhenTheClusterChanged) {
  expectPlan({}, 9, 0);
  facts_.put(test::factOf("@cluster/sm", "off"));
  expectPlan({Subject::cluster()}, 9, 1);
}

TEST_F(ReplannerFleet, aPlanThatFailedIsMadeAnew) {
  expectPlan({}, 9, 0);
  phase_.want(
      [](const inventory::Cluster&, const Subject& subject, const FactSet&) -> std::vector<Goal> {
        return {test::goalOf(subject.str() + "/a", "1", Disruption::None,
                             {subject.str() + "/nobody-has-this"})};
      });
  EXPECT_FALSE(replanner_.plan(facts_, {node("n3")}));
  phase_.want(
      [](const inventory::Cluster&, const Subject& subject, const FactSet&) -> std::vector<Goal> {
        return {test::goalOf(subject.str() + "/a", "2", Disruption::None, {})};
      });
  expectPlan({}, 9, 9);
}

}  // namespace
}  // namespace muster::lifecycle
