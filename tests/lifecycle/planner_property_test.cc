// Properties that hold for any graph of goals; graphs are random, seeds are in the failure text.
#include "lifecycle/plan.h"
#include "tests/lifecycle/rack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace muster::lifecycle {
namespace {

constexpr int kGraphs = 400;

struct Graph {
  std::vector<std::string> names;
  std::vector<std::vector<Goal>> phases;  ///< goals by phase
  std::vector<Fact> facts;
  Policy policy;
};

Graph randomGraph(std::mt19937& random) {
  auto upTo = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Graph graph;
  const int nodes = 1 + upTo(5), facets = 1 + upTo(7), phases = 1 + upTo(3);
  for (int n = 0; n < nodes; ++n) graph.names.push_back("n" + std::to_string(n + 8));  // n8, n9, n10: natural order matters
  graph.phases.resize(static_cast<std::size_t>(phases));
  std::vector<std::string> subjects = graph.names;
  subjects.push_back("@cluster");
  std::vector<std::string> earlier;
  for (int f = 0; f < facets; ++f)
    for (const auto& subject : subjects) {
      if (upTo(5) == 0) continue;
      const auto name = subject + "/f" + std::to_string((f * 5) % 7) + std::to_string(f);
      std::vector<std::string> needs;
      for (int k = upTo(4); k > 0 && !earlier.empty(); --k) needs.push_back(earlier[random() % earlier.size()]);
      auto goal = test::goalOf(name, std::to_string(upTo(2)), static_cast<Disruption>(upTo(4)), needs);
      if (subject == "@cluster") goal.disruption = Disruption::None;
      graph.phases[random() % graph.phases.size()].push_back(goal);
      if (upTo(3) != 0) graph.facts.push_back(test::factOf(name, std::to_string(upTo(2))));
      earlier.push_back(name);
    }
  for (const auto& name : graph.names) {
    if (upTo(4) != 0) graph.phases[0].push_back(test::goalOf(name + "/pool", "in", Disruption::None, {}));
    const std::vector<std::string> pools{"in", "drained", "out"};
    if (upTo(6) != 0) graph.facts.push_back(test::factOf(name + "/pool", pools[random() % 3]));
    if (upTo(2) != 0) graph.facts.push_back(test::factOf(name + "/disk.system", upTo(2) ? "none" : "debian"));
    if (upTo(2) != 0) graph.policy.wipe_allowed.insert(NodeName(name));
    if (upTo(8) == 0) graph.policy.only.insert(Subject(NodeName(name)));
  }
  return graph;
}

/// The same input, said in another order.
Graph shuffled(Graph graph, std::mt19937& random) {
  std::shuffle(graph.names.begin(), graph.names.end(), random);
  std::shuffle(graph.facts.begin(), graph.facts.end(), random);
  std::shuffle(graph.phases.begin(), graph.phases.end(), random);
  for (auto& goals : graph.phases) {
    std::shuffle(goals.begin(), goals.end(), random);
    for (auto& goal : goals) std::shuffle(goal.needs.begin(), goal.needs.end(), random);
  }
  return graph;
}

FactSet factsOf(const Graph& graph) {
  FactSet facts;
  for (const auto& fact : graph.facts) facts.put(fact);
  return facts;
}

Result<Plan> planOf(const Graph& graph, const FactSet& facts) {
  auto cluster = test::clusterOf(graph.names);
  test::FakeWorld world;
  std::vector<std::unique_ptr<test::FakePhase>> owned;
  Phases phases;
  for (const auto& goals : graph.phases) {
    owned.push_back(std::make_unique<test::FakePhase>("p", world));
    owned.back()->want([&goals](const inventory::Cluster&, const Subject& subject, const FactSet&) {
      std::vector<Goal> out;
      std::copy_if(goals.begin(), goals.end(), std::back_inserter(out), [&](const Goal& goal) { return goal.facet.subject == subject; });
      return out;
    });
    phases.push_back(owned.back().get());
  }
  return makePlan(cluster, facts, graph.policy, phases);
}

std::map<FacetRef, Goal> goalsOf(const Graph& graph) {
  std::map<FacetRef, Goal> out;
  for (const auto& goals : graph.phases)
    for (const auto& goal : goals) out[goal.facet] = goal;
  return out;
}

/// One random graph and its plan.
struct Case {
  explicit Case(int seed) : random(static_cast<unsigned>(seed)), graph(randomGraph(random)), facts(factsOf(graph)) {
    auto made = planOf(graph, facts);
    if (!made)
      ADD_FAILURE() << made.error().str();
    else
      plan = *made;
    for (std::size_t i = 0; i < plan.actions.size(); ++i)
      if (!place.emplace(plan.actions[i].id, i).second) ADD_FAILURE() << "twice: " << plan.actions[i].id;
  }
  std::mt19937 random;
  Graph graph;
  FactSet facts;
  Plan plan;
  std::map<std::string, std::size_t> place;
};

template <class Check>
void forAnyGraph(Check check) {
  for (int seed = 0; seed < kGraphs && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case any(seed);
    check(any);
  }
}

TEST(PlannerProperty, anActionStandsAfterWhatItNeeds) {
  forAnyGraph([](Case& any) {
    for (const auto& action : any.plan.actions)
      for (const auto& need : action.needs) {
        ASSERT_TRUE(any.place.contains(need)) << action.id << " needs " << need;
        EXPECT_LT(any.place[need], any.place[action.id]) << action.id << " needs " << need;
      }
  });
}

TEST(PlannerProperty, everythingUnmetBelowAnActionComesBeforeIt) {
  forAnyGraph([](Case& any) {
    const auto goals = goalsOf(any.graph);
    for (const auto& action : any.plan.actions) {
      if (action.id.ends_with(kDrainSuffix)) continue;
      std::vector<FacetRef> below = goals.at(action.facet).needs;
      std::set<FacetRef> seen;
      for (std::size_t i = 0; i < below.size(); ++i) {
        if (!seen.insert(below[i]).second) continue;
        const auto goal = goals.at(below[i]);
        below.insert(below.end(), goal.needs.begin(), goal.needs.end());
        auto fact = any.facts.value(goal.facet.subject, goal.facet.facet);
        if (fact && matches(goal.want, *fact)) continue;
        const bool left_out =
            !any.graph.policy.only.empty() && !goal.facet.subject.isCluster() && !any.graph.policy.only.contains(goal.facet.subject);
        if (left_out) {
          EXPECT_FALSE(action.blocked.empty()) << action.id << " needs " << goal.facet.str() << ", which is left out";
        } else {
          EXPECT_LT(any.place.at(goal.facet.str()), any.place[action.id]);
        }
      }
    }
  });
}

TEST(PlannerProperty, nothingRunsAfterWhatIsBlocked) {
  forAnyGraph([](Case& any) {
    for (const auto& action : any.plan.actions)
      for (const auto& need : action.needs)
        if (!any.plan.actions[any.place[need]].blocked.empty()) {
          EXPECT_FALSE(action.blocked.empty()) << action.id << " needs " << need;
        }
  });
}

TEST(PlannerProperty, aNodeInItsPoolIsNeverDisturbedWithoutADrain) {
  forAnyGraph([](Case& any) {
    for (const auto& action : any.plan.actions) {
      if (action.disruption == Disruption::None || !action.blocked.empty() || action.facet.subject.isCluster() ||
          action.facet.facet.str() == kPoolFacet)
        continue;
      if (any.facts.value(action.facet.subject, FacetName("pool")) != kPoolIn) continue;
      const auto drain = action.facet.subject.str() + "/pool#drain", join = action.facet.subject.str() + "/pool";
      ASSERT_TRUE(any.place.contains(drain)) << action.id;
      ASSERT_TRUE(any.place.contains(join)) << action.id;
      EXPECT_LT(any.place[drain], any.place[action.id]);
      EXPECT_LT(any.place[action.id], any.place[join]);
    }
  });
}

TEST(PlannerProperty, noInstalledNodeIsWipedWithoutPermission) {
  forAnyGraph([](Case& any) {
    for (const auto& action : any.plan.actions) {
      if (action.disruption != Disruption::Wipe || !action.blocked.empty()) continue;
      const auto& subject = action.facet.subject;
      const auto installed = any.facts.value(subject, FacetName("disk.system"));
      if ((installed && *installed != "none") || any.facts.value(subject, FacetName("pool")) == kPoolIn) {
        EXPECT_TRUE(any.graph.policy.wipe_allowed.contains(subject.node())) << action.id;
      }
    }
  });
}

TEST(PlannerProperty, carriedOutItLeavesOnlyWhatWasBlocked) {
  forAnyGraph([](Case& any) {
    auto facts = any.facts;
    bool blocked = false;
    for (const auto& action : any.plan.actions) {
      if (!action.blocked.empty()) {
        blocked = true;
        continue;
      }
      facts.put(Fact{action.facet.subject, action.facet.facet, action.to, {}, "", ""});
    }
    auto next = planOf(any.graph, facts);
    ASSERT_TRUE(next);
    if (!blocked) {
      EXPECT_TRUE(next->empty()) << next->toJson();
    }
    for (const auto& action : next->actions)
      if (any.place.contains(action.id)) {
        EXPECT_FALSE(any.plan.actions[any.place[action.id]].blocked.empty()) << action.id;
      }
  });
}

TEST(PlannerProperty, theHashDoesNotDependOnTheOrderOfTheInput) {
  forAnyGraph([](Case& any) {
    for (int i = 0; i < 3; ++i) {
      const auto other = shuffled(any.graph, any.random);
      auto plan = planOf(other, factsOf(other));
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->hash(), any.plan.hash()) << plan->toJson() << any.plan.toJson();
    }
  });
}

}  // namespace
}  // namespace muster::lifecycle
