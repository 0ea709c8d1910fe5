// SPDX-License-Identifier: Apache-2.0
// Properties that hold for any graph of goals; graphs are random, seeds are in the failure text.
#include "tests/lifecycle/random_graph.h"

#include <gtest/gtest.h>

namespace muster::lifecycle {
namespace {

using test::factsOf;
using test::Graph;
using test::planOf;
using test::randomGraph;
using test::shuffled;

constexpr int kGraphs = 400;

std::map<FacetRef, Goal> goalsOf(const Graph& graph) {
  std::map<FacetRef, Goal> out;
  for (const auto& goals : graph.phases)
    for (const auto& goal : goals) out[goal.facet] = goal;
  return out;
}

/// One random graph and its plan.
struct Case {
  explicit Case(int seed)
      : random(static_cast<unsigned>(seed)), graph(randomGraph(random)), facts(factsOf(graph)) {
    auto made = planOf(graph, facts);
    if (!made)
      ADD_FAILURE() << made.error().str();
    else
      plan = *made;
    for (std::size_t i = 0; i < plan.actions.size(); ++i)
      if (!place.emplace(plan.actions[i].id, i).second)
        ADD_FAILURE() << "twice: " << plan.actions[i].id;
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
        const bool left_out = !any.graph.policy.only.empty() && !goal.facet.subject.isCluster() &&
                              !any.graph.policy.only.contains(goal.facet.subject);
        if (left_out) {
          EXPECT_FALSE(action.blocked.empty())
              << action.id << " needs " << goal.facet.str() << ", which is left out";
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
      if (action.disruption == Disruption::None || !action.blocked.empty() ||
          action.facet.subject.isCluster() || action.facet.facet.str() == kPoolFacet)
        continue;
      if (any.facts.value(action.facet.subject, FacetName("pool")) != kPoolIn) continue;
      const auto drain = action.facet.subject.str() + "/pool#drain",
                 join = action.facet.subject.str() + "/pool";
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
      if ((installed && *installed != "none") ||
          any.facts.value(subject, FacetName("pool")) == kPoolIn) {
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

/// Of what the same driving phase has on the same node. What was begun may need something elsewhere
/// that needs the other.
TEST(PlannerProperty, whatWasBegunMakesNoCircleAndComesFirst) {
  forAnyGraph([](Case& any) {
    std::map<std::string, std::size_t> phase_of;
    for (std::size_t phase = 0; phase < any.graph.phases.size(); ++phase)
      for (const auto& goal : any.graph.phases[phase]) {
        phase_of[goal.facet.str()] = phase;
        if (goal.facet.facet.str() != kPoolFacet && any.random() % 4 == 0)
          any.graph.policy.interrupted.insert(goal.facet);
      }
    test::GraphPhases world(any.graph, true);
    const auto plan =
        makePlan(test::clusterOf(any.graph.names), any.facts, any.graph.policy, world.phases);
    ASSERT_TRUE(plan) << plan.error().str();
    std::map<std::string, std::set<std::string>> above;  // all that an action needs
    for (const auto& action : plan->actions) {
      auto& all = above[action.id];
      for (const auto& need : action.needs) {
        ASSERT_TRUE(above.contains(need)) << action.id << " stands before " << need;
        all.insert(need);
        all.insert(above[need].begin(), above[need].end());
      }
    }
    for (const auto& begun : plan->actions) {
      if (!any.graph.policy.interrupted.contains(begun.facet)) continue;
      for (const auto& other : plan->actions)
        if (other.facet.subject == begun.facet.subject && phase_of.contains(other.id) &&
            phase_of[other.id] == phase_of[begun.id] &&
            !any.graph.policy.interrupted.contains(other.facet)) {
          EXPECT_TRUE(above[other.id].contains(begun.id) || above[begun.id].contains(other.id))
              << begun.id << ", then " << other.id;
        }
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
