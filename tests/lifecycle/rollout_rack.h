// SPDX-License-Identifier: Apache-2.0
// Racks of nodes that run driver 570 and work in a pool, and a rollout of driver 575 over them, in
// virtual time. A Life is one process: it may die at any write of the store; the world and the
// store live on.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fwd.h"
#include "inventory/model/images.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "inventory/model/rollout_policy.h"
#include "lifecycle/rollout/freeze.h"
#include "lifecycle/rollout/overlay.h"
#include "lifecycle/rollout/runner.h"
#include "tests/fakes/memory_store.h"
#include "tests/lifecycle/crash_store.h"
#include "tests/lifecycle/rack.h"
#include "tests/lifecycle/virtual_time.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace muster::test {

using lifecycle::Fact;
using lifecycle::RolloutDirection;
using lifecycle::RolloutNodeState;
using lifecycle::RolloutRecord;
using lifecycle::RolloutState;

/// A FakePhase whose gate facts carry measurements, and which tells when the place of a node in its
/// pool has changed.
class RolloutPhase final : public lifecycle::Phase {
 public:
  RolloutPhase(std::string name, FakeWorld& world) : inner(std::move(name), world) {}
  FakePhase inner;
  std::function<std::string(const Fact&)> evidence;
  std::function<void()> after_act;
  std::function<void(const lifecycle::Action&)> side_effects;
  std::function<bool()> away;  ///< does the other side not answer now?

  std::string_view name() const override { return inner.name(); }
  std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                          const FactSet& facts) const override {
    return inner.goals(cluster, subject, facts);
  }
  Async<std::vector<Fact>> observe(Subject subject) override {
    if (away && away()) co_return fail(ErrorCode::Unavailable, "slurmctld does not answer");
    auto facts = co_await inner.observe(subject);
    co_return withEvidence(std::move(facts));
  }
  Async<lifecycle::Outcome> act(lifecycle::Action action, lifecycle::ActContext& context) override {
    if (away && away())
      co_return lifecycle::Outcome(
          lifecycle::Again{std::chrono::seconds(15), "slurmctld to answer", true});
    auto outcome = co_await inner.act(action, context);
    if (side_effects) side_effects(action);
    if (after_act) after_act();
    co_return outcome;
  }
  Async<std::vector<Fact>> verify(lifecycle::Action action) override {
    if (away && away()) co_return fail(ErrorCode::Unavailable, "slurmctld does not answer");
    auto facts = co_await inner.verify(action);
    co_return withEvidence(std::move(facts));
  }

 private:
  Result<std::vector<Fact>> withEvidence(Result<std::vector<Fact>> facts) const {
    if (facts && evidence)
      for (auto& fact : *facts) fact.evidence = evidence(fact);
    return facts;
  }
};

inline constexpr const char* kToNoble2 =
    "images: {noble-2: {build: {suite: noble}}}\nprofiles: {gpu: {image: noble-2}}\n";
inline constexpr const char* kTo575 = "profiles: {gpu: {drivers: [nvidia-575]}}\n";

class RolloutRack {
 public:
  RolloutRack(int nodes, int per_rack) {
    declared.name = "hall";
    declared.digest = "declared";
    declared.pools["batch"] = {.name = "batch"};
    for (const auto* version : {"570", "575"})
      declared.drivers[fmt::format("nvidia-{}", version)] = {
          .name = fmt::format("nvidia-{}", version),
          .packages = {fmt::format("nvidia-driver={}.1", version)},
          .verify = {{"nvml.driver", fmt::format("{}.1", version)}}};
    declared.profiles["gpu"] = {
        .name = "gpu", .image = "noble", .drivers = {"nvidia-570"}, .pool = "batch"};
    declared.images["noble"] = {.name = "noble"};
    for (int i = 0; i < nodes; ++i) {
      inventory::Node node;
      node.name = NodeName(fmt::format("gpu{:04}", i + 1));
      node.profile = "gpu";
      node.rack = fmt::format("r{}", i / per_rack + 1);
      declared.nodes.push_back(node);
      at570(node.name.str());
    }
    provision.inner.want([this](const auto&, const Subject& subject, const FactSet&) {
      return driverGoals(subject);
    });
    validate.inner.want(
        [this](const auto&, const Subject& subject, const FactSet&) { return gateGoals(subject); });
    provision.inner.reads({"disk.system"});
    pool.inner.want(
        [this](const auto&, const Subject& subject, const FactSet&) { return poolGoals(subject); });
    provision.side_effects =
        [this](const lifecycle::Action& action) {  // one driver runs, whoever asks for it
          const auto& n = action.facet.subject.str();
          if (!action.facet.facet.str().starts_with("driver.")) return;
          const auto runs = world.value(action.facet.str());
          for (const auto* driver : {"/driver.nvidia-570", "/driver.nvidia-575"})
            world.set(n + driver, runs);
        };
    validate.evidence = [this](const Fact& fact) { return measured(fact); };
  }
  RolloutRack(const RolloutRack&) = delete;

  struct Life {
    bool crashed = false;
    int writes = 0;
    std::string error;
  };
  using During = std::function<void(lifecycle::Store&)>;

  /// Freezes and runs.
  Life start(lifecycle::Store& store, inventory::RolloutPolicy policy = {},
             int crash_at = CrashStore::kNever, bool lost = false) {
    return live(store, policy, RolloutDirection::Forward, true, crash_at, lost);
  }
  /// Goes on with what is in the store, as a new process does.
  Life resume(lifecycle::Store& store, int crash_at = CrashStore::kNever, bool lost = false,
              const std::string& accepted_by = "") {
    accepted_by_ = accepted_by;
    return live(store, {}, RolloutDirection::Forward, false, crash_at, lost);
  }
  Life rollBack(lifecycle::Store& store, int crash_at = CrashStore::kNever, bool lost = false) {
    return live(store, {}, RolloutDirection::Back, false, crash_at, lost);
  }
  static RolloutRecord record(lifecycle::Store& store) { return *RolloutRecord::newest(store); }
  lifecycle::Phases phases() { return {&provision, &validate, &pool}; }
  std::string value(const std::string& facet) const { return world.value(facet); }
  int working() const {
    int count = 0;
    for (const auto& node : declared.nodes) count += world.value(node.name.str() + "/pool") == "in";
    return count;
  }

  inventory::Cluster declared;
  FakeWorld world;
  RolloutPhase provision{"provision", world}, validate{"validate", world}, pool{"pool", world};
  std::string change = kTo575;
  std::string id = "r1";       ///< of what is started
  std::string going;           ///< what goes on or back; empty: the current one
  std::vector<NodeName> only;  ///< empty: all
  bool with_images = false;    ///< the system on the disk is a goal too
  std::string wipe_reason;
  std::set<std::string> extra;        ///< nodes that need more than the others
  std::set<std::string> more_drains;  ///< … and that no more than the rollout does
  std::map<std::string, double>
      speed_575;  ///< node → GFLOP/s with the new driver; absent: as before
  FakeClock clock;

 private:
  void at570(const std::string& n) {
    for (const auto& [facet, value] :
         std::map<std::string, std::string>{{"driver.nvidia-570", "570.1"},
                                            {"driver.nvidia-575", "570.1"},
                                            {"gate.burn-in", "pass:nvidia-570"},
                                            {"certificate", "valid:nvidia-570"},
                                            {"image", "noble"},
                                            {"disk.system", "noble"},
                                            {"pool", "in"}})
      world.set(n + "/" + facet, value);
    world.behave(n + "/driver.nvidia-575").polls = 3;
    world.behave(n + "/image").polls = 2;
  }
  const inventory::Profile* profileOf(const Subject& subject) const {
    const auto* node = subject.isCluster() || !now_ ? nullptr : now_->findNode(subject.node());
    return node ? &now_->profileOf(*node) : nullptr;
  }
  std::vector<Goal> driverGoals(const Subject& subject) const {
    std::vector<Goal> goals;
    const auto* profile = profileOf(subject);
    if (profile && with_images)
      goals.push_back(goalOf(subject.str() + "/image", profile->image, Disruption::Wipe, {}));
    if (profile)
      for (const auto& name : profile->drivers)
        goals.push_back(goalOf(subject.str() + "/driver." + name,
                               now_->drivers.at(name).verify.at("nvml.driver"), Disruption::Drain,
                               with_images ? std::vector<std::string>{subject.str() + "/image"}
                                           : std::vector<std::string>{}));
    if (extra.contains(subject.str()))
      goals.push_back(goalOf(subject.str() + "/firmware.BMC", "2", Disruption::Reset, {}));
    if (more_drains.contains(subject.str()))
      goals.push_back(goalOf(subject.str() + "/driver.fabric", "1", Disruption::Drain, {}));
    return goals;
  }
  std::vector<Goal> gateGoals(const Subject& subject) const {
    const auto* profile = profileOf(subject);
    if (!profile) return {};
    std::vector<std::string> needs;
    for (const auto& name : profile->drivers) needs.push_back(subject.str() + "/driver." + name);
    const auto scope = fmt::format("{}", fmt::join(profile->drivers, "+"));
    return {goalOf(subject.str() + "/gate.burn-in", "pass:" + scope, Disruption::Drain, needs),
            goalOf(subject.str() + "/certificate", "valid:" + scope, Disruption::None,
                   {subject.str() + "/gate.burn-in"})};
  }
  std::vector<Goal> poolGoals(const Subject& subject) const {
    if (!profileOf(subject)) return {};
    return {
        goalOf(subject.str() + "/pool", "in", Disruption::None, {subject.str() + "/certificate"})};
  }
  /// 100 GFLOP/s, a little different on every node, and what the test says with the new driver.
  std::string measured(const Fact& fact) const {
    if (fact.facet.str() != "gate.burn-in") return "";
    const auto& node = fact.subject.str();
    double gflops = 100 + 0.1 * (node.back() - '0');
    if (const auto slow = speed_575.find(node);
        slow != speed_575.end() && fact.value.ends_with("575"))
      gflops = slow->second;
    return nlohmann::json{
        {"results",
         {{{"id", "host.gemm"}, {"values", {{"gemm_gflops", gflops}, {"products", 12}}}}}}}
        .dump();
  }

  Async<void> work(lifecycle::EffectiveCluster& live, lifecycle::Engine& engine,
                   lifecycle::Store& store, const lifecycle::Phases& all,
                   inventory::RolloutPolicy policy, RolloutDirection direction, bool fresh) {
    lifecycle::RolloutServices services{live, engine, all, store, clock, nullptr, nullptr};
    std::optional<RolloutRecord> record;
    if (fresh) {
      lifecycle::RolloutRequest request;
      request.id = id;
      request.at = clock.now();
      request.change_text = change;
      request.change_file = "change.yaml";
      request.policy = policy;
      request.wipe_reason = wipe_reason;
      request.nodes = only;
      if (only.empty())
        for (const auto& node : declared.nodes) request.nodes.push_back(node.name);
      auto loaded = inventory::loadChangeText(change, "change.yaml", live.cluster());
      if (!loaded.change)
        co_return fail(ErrorCode::InvalidInput, loaded.diagnostics.all().front().str());
      live.add(id, *loaded.change);
      CO_TRY(facts, co_await engine.observe({}));
      CO_TRY(frozen, lifecycle::freezeRollout(live, all, store, facts, std::move(request)));
      record.emplace(std::move(frozen));
    } else {
      CO_TRY(known,
             going.empty() ? RolloutRecord::current(store) : RolloutRecord::open(store, going));
      record.emplace(std::move(known));
      if (direction == RolloutDirection::Forward) {
        CO_TRY(next, lifecycle::prepareResume(*record, accepted_by_));
        direction = next;
      }
    }
    lifecycle::RolloutRunner runner(services, *record);
    co_return co_await runner.run(direction);
  }

  Life live(lifecycle::Store& durable, const inventory::RolloutPolicy& policy,
            RolloutDirection direction, bool fresh, int crash_at, bool lost) {
    CrashStore store(durable, crash_at, lost);
    lifecycle::EffectiveCluster live(declared);
    now_ = &live.cluster();
    Life life;
    auto laid = lifecycle::applyOverlays(live, durable);
    if (!laid) life.error = laid.error().str();
    lifecycle::Engine engine(live.cluster(), phases(), store, clock, nullptr);
    const auto all = phases();
    auto answer = runInVirtualTime(clock, work(live, engine, store, all, policy, direction, fresh),
                                   &store.crashed);
    life.crashed = store.crashed;
    life.writes = store.writes;
    if (answer && !*answer) life.error = answer->error().str();
    now_ = &declared;
    return life;
  }

  const inventory::Cluster* now_ = nullptr;
  std::string accepted_by_;
};

inline std::string reasonsOf(MemoryStore& store) {
  return fmt::format("{}", fmt::join(RolloutRack::record(store).rollout().reasons, "\n"));
}

inline inventory::RolloutPolicy withRoomFor(int nodes) {
  inventory::RolloutPolicy policy;
  policy.max_unavailable.pool = {nodes, std::nullopt};
  return policy;
}

}  // namespace muster::test
