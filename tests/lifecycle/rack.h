// SPDX-License-Identifier: Apache-2.0
// A rack with all stages as goals of five fake phases, as small as it can be while keeping
// every kind of dependency: another subject (fabric.sm), facts that are learned on the way
// (hw.serial in the scope of gates), a wipe, a pool.
#pragma once

#include "base/ids.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "lifecycle/executor/engine.h"
#include "tests/fakes/fake_phase.h"

namespace muster::test {

using lifecycle::Disruption;
using lifecycle::FacetRef;
using lifecycle::FactSet;
using lifecycle::Goal;
using lifecycle::Subject;

inline Goal goalOf(const std::string& facet, std::string want, Disruption disruption,
                   const std::vector<std::string>& needs) {
  Goal goal;
  goal.facet = FakeWorld::ref(facet);
  goal.want = std::move(want);
  goal.disruption = disruption;
  goal.expected = std::chrono::seconds(60);
  goal.deadline = std::chrono::seconds(600);
  for (const auto& need : needs) goal.needs.push_back(FakeWorld::ref(need));
  goal.why = "the profile wants it";
  return goal;
}

inline lifecycle::Fact factOf(const std::string& facet, std::string value) {
  const auto ref = FakeWorld::ref(facet);
  return {ref.subject, ref.facet, std::move(value), {}, "test", ""};
}

inline inventory::Cluster clusterOf(const std::vector<std::string>& names) {
  inventory::Cluster cluster;
  cluster.name = "rack";
  cluster.digest = "inventory-1";
  for (const auto& name : names) {
    inventory::Node node;
    node.name = NodeName(name);
    cluster.nodes.push_back(node);
  }
  return cluster;
}

class Rack {
 public:
  explicit Rack(const std::vector<std::string>& names) : cluster(clusterOf(names)) {
    auto bind = [this](auto method) {
      return [this, method](const inventory::Cluster&, const Subject& subject,
                            const FactSet& facts) { return (this->*method)(subject, facts); };
    };
    provision.want(bind(&Rack::provisionGoals));
    firmware.want(bind(&Rack::firmwareGoals));
    fabric.want(bind(&Rack::fabricGoals));
    validate.want(bind(&Rack::validateGoals));
    pool.want(bind(&Rack::poolGoals));
    provision.reads({"hw.serial", "disk.system"});
    for (const auto& name : names) fresh(name);
  }
  Rack(const Rack&) = delete;

  /// Powered off, with an empty disk, known to the scheduler as out.
  void fresh(const std::string& name) {
    world.set(name + "/pool", "out");
    world.behave(name + "/inspected").also = {{"hw.serial", "serial-of-" + name},
                                              {"disk.system", "none"}};
    auto& image = world.behave(name + "/image");
    image.polls = 2;
    image.destroys = {"disk.system", "os", "driver.nvidia", "inspected"};
    image.also = {{"disk.system", "image"}, {"inspected", "fits"}};
    world.behave(name + "/firmware.BMC").polls = 2;
    world.behave(name + "/firmware.BMC").server_ids = true;
    world.behave(name + "/gate.burn-in").polls = 1;
  }
  lifecycle::Phases phases() { return {&provision, &firmware, &fabric, &validate, &pool}; }

  inventory::Cluster cluster;
  FakeWorld world;
  FakePhase provision{"provision", world}, firmware{"firmware", world}, fabric{"fabric", world},
      validate{"validate", world}, pool{"pool", world};
  std::string image = "noble@1", driver = "570", bmc_firmware = "2.1.0";
  std::string bmc_firmware_blocked;  ///< what the phase says about it

 private:
  std::vector<Goal> provisionGoals(const Subject& subject, const FactSet&) const {
    if (subject.isCluster()) return {};
    const auto n = subject.str() + "/";
    return {goalOf(n + "enrolled", "yes", Disruption::None, {}),
            goalOf(n + "inspected", "fits", Disruption::Reset,
                   {n + "enrolled", n + "firmware.BMC", n + "firmware.BIOS"}),
            goalOf(n + "image", image, Disruption::Wipe, {n + "inspected"}),
            goalOf(n + "os", "running", Disruption::Reset, {n + "image"}),
            goalOf(n + "driver.nvidia", driver, Disruption::Drain, {n + "os"})};
  }
  std::vector<Goal> firmwareGoals(const Subject& subject, const FactSet&) const {
    if (subject.isCluster()) return {};
    const auto n = subject.str() + "/";
    std::vector<Goal> goals = {
        goalOf(n + "firmware.BMC", bmc_firmware, Disruption::Reset, {n + "enrolled"}),
        goalOf(n + "firmware.BIOS", "1.4.2", Disruption::Reset,
               {n + "enrolled", n + "firmware.BMC"})};
    goals[0].blocked = bmc_firmware_blocked;
    return goals;
  }
  std::vector<Goal> fabricGoals(const Subject& subject, const FactSet&) const {
    if (subject.isCluster())
      return {goalOf("@cluster/fabric.sm", "master:1", Disruption::None, {})};
    const auto n = subject.str() + "/";
    return {goalOf(n + "fabric.ports", "as-declared", Disruption::None,
                   {n + "os", "@cluster/fabric.sm"})};
  }
  std::string scope(const Subject& subject, const FactSet& facts) const {
    return facts.value(subject, FacetName("hw.serial")).value_or("unknown") + "+" + image + "+" +
           driver + "+" + bmc_firmware;
  }
  std::vector<Goal> validateGoals(const Subject& subject, const FactSet& facts) const {
    if (subject.isCluster()) return {};
    const auto n = subject.str() + "/";
    return {goalOf(n + "gate.burn-in", "pass:" + scope(subject, facts), Disruption::Drain,
                   {n + "driver.nvidia", n + "fabric.ports"}),
            goalOf(n + "certificate", "valid:" + scope(subject, facts), Disruption::None,
                   {n + "gate.burn-in"})};
  }
  std::vector<Goal> poolGoals(const Subject& subject, const FactSet&) const {
    if (subject.isCluster()) return {};
    const auto n = subject.str() + "/";
    return {goalOf(n + "pool", "in", Disruption::None, {n + "certificate"})};
  }
};

/// Every goal of these phases met: what the world looks like when all is met.
inline FactSet factsAtTheEnd(Rack& rack) {
  FactSet facts;
  for (const auto& node : rack.cluster.nodes) {
    facts.put(factOf(node.name.str() + "/hw.serial", "serial-of-" + node.name.str()));
    facts.put(factOf(node.name.str() + "/disk.system", "image"));
  }
  std::vector<Subject> subjects{Subject::cluster()};
  for (const auto& node : rack.cluster.nodes) subjects.emplace_back(node.name);
  for (const auto& subject : subjects)
    for (auto* phase : rack.phases())
      for (const auto& goal : phase->goals(rack.cluster, subject, facts))
        facts.put(factOf(goal.facet.str(), goal.want));
  return facts;
}

}  // namespace muster::test
