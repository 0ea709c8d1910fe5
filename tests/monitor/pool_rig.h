// SPDX-License-Identifier: Apache-2.0
// A pool of nodes whose certificates, health and jobs a test sets, and the monitor over it in
// virtual time.
#pragma once

#include "base/ids.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/json.h"
#include "monitor/health_phase.h"
#include "monitor/monitor.h"
#include "tests/fakes/memory_store.h"
#include "tests/virtual_loop.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::monitor::test {

using namespace lifecycle;

inline inventory::Cluster clusterOf(int nodes) {
  inventory::Cluster cluster;
  cluster.name = "hall";
  cluster.digest = "inventory-1";
  cluster.pools["batch"] = {"batch", inventory::SlurmPool{"gpu", {}}};
  auto& profile = cluster.profiles["gpu-node"];
  profile.name = "gpu-node";
  profile.pool = "batch";
  for (int i = 1; i <= nodes; ++i) {
    inventory::Node node;
    node.name = NodeName(fmt::format("gpu{:03}", i));
    node.profile = "gpu-node";
    cluster.nodes.push_back(node);
  }
  return cluster;
}

inline Subject subjectOf(const std::string& node) { return Subject(NodeName(node)); }
inline FacetRef facetOf(const std::string& node, std::string_view facet) {
  return {subjectOf(node), FacetName(std::string(facet))};
}

struct FakeNode {
  std::string certificate = "valid:1", void_because, void_by;
  std::map<std::string, std::string> health;           ///< group → value
  nlohmann::json evidence = nlohmann::json::object();  ///< of each of them
  bool drained = false;                                ///< told to take nothing new
  std::string reason;
  bool jobs = true;
  int orders = 0;  ///< how often its pool was told
  int reboots = 0;
  int joins = 0;
  int refuses = 0;  ///< so many orders or repairs fail
  int tries = 0;    ///< of repairs
};

inline Fact factOf(const std::string& node, std::string_view facet, std::string value,
                   const nlohmann::json& evidence, WallTime at) {
  return {subjectOf(node), FacetName(std::string(facet)), std::move(value), at, "test",
          evidence.dump()};
}

using Nodes = std::map<std::string, FakeNode>;

inline constexpr std::string_view kOfMuster = "muster: ";  ///< begins the reason of its drains

/// As the pool phase tells of a node.
inline nlohmann::json poolEvidence(bool ordered, const std::string& reason) {
  nlohmann::json out = {{"ordered", ordered}, {"reason", reason}};
  if (reason.starts_with(kOfMuster)) {
    const auto parsed = parsePoolReason(std::string_view(reason).substr(kOfMuster.size()));
    out["cause"] = toString(parsed.cause);
    if (!parsed.about.empty()) out["about"] = parsed.about;
  }
  return out;
}

/// The scheduler: a node is told once, and is drained when its jobs have ended.
class FakePool final : public Phase {
 public:
  FakePool(Nodes& nodes, Clock& clock) : nodes_(nodes), clock_(clock) {}
  std::string_view name() const override { return "pool"; }
  std::vector<Goal> goals(const inventory::Cluster&, const Subject& subject,
                          const FactSet&) const override {
    if (subject.isCluster()) return {};
    Goal goal;
    goal.facet = {subject, FacetName(std::string(kPoolFacet))};
    goal.want = std::string(kPoolIn);
    return {goal};
  }
  Async<std::vector<Fact>> observe(Subject subject) override {
    if (unreachable) co_return fail(ErrorCode::Unavailable, "slurmctld does not answer");
    std::vector<Fact> out;
    if (subject.isCluster()) co_return out;
    const auto& node = nodes_.at(subject.str());
    const auto value = node.jobs || !node.drained ? kPoolIn : kPoolDrained;
    auto evidence = poolEvidence(node.drained, node.reason);
    evidence["jobs"] = node.jobs;
    evidence["by_person"] = node.drained && !node.reason.starts_with(kOfMuster);
    out.push_back(factOf(subject.str(), kPoolFacet, std::string(value), evidence, clock_.now()));
    co_return out;
  }
  Async<Outcome> act(Action action, ActContext&) override {
    auto& node = nodes_.at(action.facet.subject.str());
    if (unreachable) co_return fail(ErrorCode::Unavailable, "slurmctld does not answer");
    if (node.refuses > 0 && node.refuses--)
      co_return fail(Error(ErrorCode::Denied, "scontrol: not now").retryable(false));
    if (action.to == kPoolIn) {
      node.drained = false;
      node.reason.clear();
      ++node.joins;
      co_return Done{};
    }
    if (!node.drained) {
      node.drained = true;
      node.reason =
          std::string(kOfMuster) + print({action.cause, action.about.str(), action.reason});
      ++node.orders;
    }
    if (node.jobs) co_return Again{std::chrono::seconds(2), "running jobs to end"};
    co_return Done{};
  }
  Async<std::vector<Fact>> verify(Action action) override { return observe(action.facet.subject); }

  bool unreachable = false;

 private:
  Nodes& nodes_;
  Clock& clock_;
};

/// Certificates and health, as facts that a test has set; a reboot heals what wants one.
class FakeSenses final : public Phase {
 public:
  FakeSenses(Nodes& nodes, Clock& clock) : nodes_(nodes), clock_(clock) {}
  std::string_view name() const override { return "senses"; }
  std::vector<Goal> goals(const inventory::Cluster&, const Subject& subject,
                          const FactSet& facts) const override {
    std::vector<Goal> out;
    if (outdated.contains(subject.str())) {
      Goal goal;
      goal.facet = {subject, FacetName("driver.nvidia")};
      goal.want = "575";
      goal.disruption = Disruption::Drain;
      out.push_back(std::move(goal));
    }
    if (gated.contains(subject.str())) {
      Goal goal;
      goal.facet = {subject, FacetName("gate.burn-in")};
      goal.want = "pass";
      goal.deadline = std::chrono::seconds(600);
      out.push_back(std::move(goal));
    }
    for (const auto& fact : facts.of(subject)) {
      const auto action = actionWordOf(fact);
      if (action != "reboot" && action != "reset") continue;
      Goal goal;
      goal.facet = {subject, fact.facet};
      goal.want = std::string(kHealthy);
      goal.disruption = Disruption::Reset;
      goal.deadline = std::chrono::seconds(600);
      out.push_back(std::move(goal));
    }
    return out;
  }
  Async<std::vector<Fact>> observe(Subject subject) override {
    std::vector<Fact> out;
    if (subject.isCluster()) co_return out;
    const auto& node = nodes_.at(subject.str());
    out.push_back(factOf(subject.str(), "certificate", node.certificate,
                         {{"void_because", node.void_because}, {"void_by", node.void_by}},
                         clock_.now()));
    for (const auto& [group, value] : node.health)
      out.push_back(factOf(subject.str(), "health." + group, value, node.evidence, clock_.now()));
    out.push_back(
        factOf(subject.str(), "quarantine", "none", nlohmann::json::object(), clock_.now()));
    co_return out;
  }
  Async<Outcome> act(Action action, ActContext&) override {
    auto& node = nodes_.at(action.facet.subject.str());
    if (action.facet.facet.str().starts_with("gate."))
      co_return fail(Error(ErrorCode::Conflict, "gpu.ecc failed").retryable(false));
    EXPECT_FALSE(node.jobs) << "a job was killed by a reboot";
    ++node.tries;
    if (node.refuses > 0 && node.refuses--)
      co_return fail(Error(ErrorCode::Unavailable, "no answer").retryable(false));
    ++node.reboots;
    for (auto& [group, value] : node.health) value = std::string(kHealthy);
    co_return Done{};
  }
  Async<std::vector<Fact>> verify(Action action) override { return observe(action.facet.subject); }

  std::set<std::string> gated;     ///< nodes that have to pass a gate, and never do
  std::set<std::string> outdated;  ///< nodes whose declaration wants another driver

 private:
  Nodes& nodes_;
  Clock& clock_;
};

class MonitorTest : public ::testing::Test {
 protected:
  explicit MonitorTest(int nodes = 10) : cluster_(clusterOf(nodes)) {
    for (const auto& node : cluster_.nodes) nodes_[node.name.str()];
  }
  MonitorServices services() {
    return {cluster_, {&senses_, &pool_}, {&senses_, &pool_},
            *used_,   loop_.clock,        [this](const Event& event) { shown_.push_back(event); },
            {}};
  }
  /// A new monitor on the same store for this long, as after a restart.
  void keepFor(std::chrono::seconds duration) { keepDuring(services(), pause(duration)); }
  /// One monitor, as long as this lasts.
  void keepDuring(MonitorServices services, Task<void> life) {
    using namespace asio::experimental::awaitable_operators;
    Monitor monitor(std::move(services));
    auto script = [](Monitor& monitor, Task<void> life) -> Task<bool> {
      auto work = monitor.run();
      (void)co_await (std::move(work) || std::move(life));
      co_return true;
    };
    loop_.run(script(monitor, std::move(life)));
  }
  Task<void> pause(std::chrono::seconds duration) { co_await loop_.clock.sleep(duration); }
  std::size_t requests() { return store_.requests(100'000)->size(); }
  FakeNode& node(const std::string& name) { return nodes_.at(name); }
  void expire(const std::string& name) {
    node(name).certificate = "void:1";
    node(name).void_because = "expired at 2026-11-01";
  }
  std::vector<Intent> intents(const std::string& name) {
    return *store_.intentsOf(subjectOf(name), 100);
  }
  int drainedNodes() {
    return static_cast<int>(std::count_if(nodes_.begin(), nodes_.end(),
                                          [](const auto& entry) { return entry.second.drained; }));
  }
  std::vector<std::string> findings(const Subject& subject) {
    std::vector<std::string> out;
    const auto open = *store_.findings(&subject);
    for (const auto& finding : open) out.push_back(finding.facet.facet.str() + ": " + finding.text);
    return out;
  }
  int shown(std::string_view text) {
    return static_cast<int>(std::count_if(shown_.begin(), shown_.end(), [&](const Event& event) {
      return event.text.find(text) != std::string::npos;
    }));
  }

  inventory::Cluster cluster_;
  Nodes nodes_;
  muster::test::VirtualLoop loop_;
  muster::test::MemoryStore store_;
  Store* used_ = &store_;  ///< by keepers
  FakePool pool_{nodes_, loop_.clock};
  FakeSenses senses_{nodes_, loop_.clock};
  std::vector<Event> shown_;
};

}  // namespace muster::monitor::test
