// SPDX-License-Identifier: Apache-2.0
// EngineTest: a rack, a store, virtual time, and an engine that sees them.
#pragma once

#include "lifecycle/executor/engine.h"
#include "tests/fakes/memory_store.h"
#include "tests/lifecycle/rack.h"
#include "tests/lifecycle/virtual_time.h"
#include "tests/slowed_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::lifecycle {

class EngineTest : public testing::Test {
 protected:
  void build(const std::vector<std::string>& names) { rack_ = std::make_unique<test::Rack>(names); }
  Engine engine() {
    Engine made(rack_->cluster, rack_->phases(), store_, place_,
                [this](const Event& event) { shown_.push_back(event); });
    made.limitSubjects(subjects_at_once_);
    made.readConsoles(console_);
    return made;
  }
  FactSet observe() {
    auto e = engine();
    auto facts = test::runInVirtualTime(clock_, e.observe({}));
    EXPECT_TRUE(facts && *facts);
    return facts && *facts ? **facts : FactSet();
  }
  Plan plan() {
    auto policy = policyOf(store_, {});
    EXPECT_TRUE(policy);
    auto made = makePlan(rack_->cluster, observe(), *policy, rack_->phases());
    if (!made) ADD_FAILURE() << made.error().str();
    return made ? *made : Plan();
  }
  ApplyReport apply(const Plan& plan) {
    auto e = engine();
    auto report = test::runInVirtualTime(clock_, e.apply(plan));
    EXPECT_TRUE(report && *report);
    return report && *report ? **report : ApplyReport();
  }
  ApplyReport apply() { return apply(plan()); }
  /// Everything when all is met, in the world and in the store.
  void arrive(const std::vector<std::string>& names) {
    build(names);
    EXPECT_TRUE(apply().ok());
    rack_->world.effect_counts.clear();
    rack_->world.log.clear();
    shown_.clear();
  }
  std::vector<std::string> findings(const std::string& node) {
    const Subject subject{NodeName(node)};
    std::vector<std::string> out;
    const auto open = *store_.findings(&subject);
    for (const auto& finding : open) out.push_back(finding.facet.facet.str() + ": " + finding.text);
    return out;
  }
  std::vector<Intent> history(const std::string& node) {
    return *store_.intentsOf(Subject(NodeName(node)), 1'000);
  }
  std::vector<std::string> shown(EventKind kind) {
    std::vector<std::string> out;
    for (const auto& event : shown_)
      if (event.kind == kind) out.push_back(event.action_id + " " + event.text);
    return out;
  }
  test::FakeWorld& world() { return rack_->world; }

  std::unique_ptr<test::Rack> rack_;
  test::MemoryStore store_;
  FakeClock clock_;
  test::SlowedClock place_{clock_, 1};
  std::vector<Event> shown_;
  std::size_t subjects_at_once_ = kMaxConcurrentSubjects;
  ConsoleLines console_;
};

}  // namespace muster::lifecycle
