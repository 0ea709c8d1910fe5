// SPDX-License-Identifier: Apache-2.0
// Random graphs of goals, for properties that hold for any.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/plan.h"
#include "tests/lifecycle/rack.h"

#include <algorithm>
#include <random>

namespace muster::test {

using namespace lifecycle;

struct Graph {
  std::vector<std::string> names;
  std::vector<std::vector<Goal>> phases;  ///< goals by phase
  std::vector<Fact> facts;
  Policy policy;
};

inline Graph randomGraph(std::mt19937& random) {
  auto upTo = [&random](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Graph graph;
  const int nodes = 1 + upTo(5), facets = 1 + upTo(7), phases = 1 + upTo(3);
  for (int n = 0; n < nodes; ++n)
    graph.names.push_back("n" + std::to_string(n + 8));  // n8, n9, n10: natural order matters
  graph.phases.resize(static_cast<std::size_t>(phases));
  std::vector<std::string> subjects = graph.names;
  subjects.push_back("@cluster");
  std::vector<std::string> earlier;
  for (int f = 0; f < facets; ++f)
    for (const auto& subject : subjects) {
      if (upTo(5) == 0) continue;
      const auto name = subject + "/f" + std::to_string((f * 5) % 7) + std::to_string(f);
      std::vector<std::string> needs;
      for (int k = upTo(4); k > 0 && !earlier.empty(); --k)
        needs.push_back(earlier[random() % earlier.size()]);
      auto goal = goalOf(name, std::to_string(upTo(2)), static_cast<Disruption>(upTo(4)), needs);
      if (subject == "@cluster") goal.disruption = Disruption::None;
      graph.phases[random() % graph.phases.size()].push_back(goal);
      if (upTo(3) != 0) graph.facts.push_back(factOf(name, std::to_string(upTo(2))));
      earlier.push_back(name);
    }
  for (const auto& name : graph.names) {
    if (upTo(4) != 0) graph.phases[0].push_back(goalOf(name + "/pool", "in", Disruption::None, {}));
    const std::vector<std::string> pools{"in", "drained", "out"};
    if (upTo(6) != 0) graph.facts.push_back(factOf(name + "/pool", pools[random() % 3]));
    if (upTo(2) != 0)
      graph.facts.push_back(factOf(name + "/disk.system", upTo(2) ? "none" : "debian"));
    if (upTo(2) != 0) graph.policy.wipe_allowed.insert(NodeName(name));
    if (upTo(8) == 0) graph.policy.only.insert(Subject(NodeName(name)));
  }
  return graph;
}

/// The same input, said in another order.
inline Graph shuffled(Graph graph, std::mt19937& random) {
  std::shuffle(graph.names.begin(), graph.names.end(), random);
  std::shuffle(graph.facts.begin(), graph.facts.end(), random);
  std::shuffle(graph.phases.begin(), graph.phases.end(), random);
  for (auto& goals : graph.phases) {
    std::shuffle(goals.begin(), goals.end(), random);
    for (auto& goal : goals) std::shuffle(goal.needs.begin(), goal.needs.end(), random);
  }
  return graph;
}

inline FactSet factsOf(const Graph& graph) {
  FactSet facts;
  for (const auto& fact : graph.facts) facts.put(fact);
  return facts;
}

/// The phases that answer the graph's goals.
class GraphPhases {
 public:
  explicit GraphPhases(const Graph& graph, bool drive_on = false) {
    for (const auto& goals : graph.phases) {
      owned_.push_back(std::make_unique<FakePhase>("p", world_));
      owned_.back()->drives_on = drive_on;
      owned_.back()->want(
          [&goals](const inventory::Cluster&, const Subject& subject, const FactSet&) {
            std::vector<Goal> out;
            std::copy_if(goals.begin(), goals.end(), std::back_inserter(out),
                         [&](const Goal& goal) { return goal.facet.subject == subject; });
            return out;
          });
      phases.push_back(owned_.back().get());
    }
  }
  Phases phases;

 private:
  FakeWorld world_;
  std::vector<std::unique_ptr<FakePhase>> owned_;
};

inline Result<Plan> planOf(const Graph& graph, const FactSet& facts) {
  GraphPhases world(graph);
  return makePlan(clusterOf(graph.names), facts, graph.policy, world.phases);
}

}  // namespace muster::test
