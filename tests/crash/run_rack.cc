// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/run_rack.h"

#include "app/runs/rollout_plans.h"
#include "app/validation/isolation_work.h"
#include "inventory/model/cluster.h"
#include "lifecycle/audit/audit.h"
#include "lifecycle/rollout/overlay.h"
#include "monitor/health_phase.h"
#include "monitor/monitor.h"
#include "provision/storage/erase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace muster::test {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 12h;

Task<bool> waitFor(SimulatedRack& rack, std::function<bool()> until) {
  const auto end = rack.clock.steady() + kPatience;
  while (rack.clock.steady() < end) {
    if (until()) co_return true;
    co_await rack.clock.sleep(1s);
  }
  co_return false;
}

Task<void> monitorBeside(Beside beside, monitor::Monitor& monitor, Clock& clock) {
  if (beside == Beside::Monitor) {
    co_await monitor.run();
  }
  for (;;) co_await clock.sleep(1h);
}

provision::Erasures* erasuresOf(const lifecycle::Phases& phases) {
  for (auto* phase : phases)
    if (auto* erasures = dynamic_cast<provision::Erasures*>(phase)) return erasures;
  return nullptr;
}

Async<lifecycle::ApplyReport> serveUntil(SimulatedRack& rack, lifecycle::EffectiveCluster& live,
                                         lifecycle::Engine& engine, lifecycle::Store& store,
                                         lifecycle::Phases phases,
                                         std::shared_ptr<MemoryRuns::Data> rows,
                                         std::function<bool()> until, Beside beside) {
  using namespace asio::experimental::awaitable_operators;
  const auto health = monitor::makeHealthPhase(live.cluster(), rack.agents, store, rack.wall);
  const auto steps = monitor::makeRecoverySteps(rack.bmcs, rack.wall);
  auto all = phases;
  if (beside == Beside::Monitor) all.insert(all.end() - 1, {health.get(), steps.get()});
  lifecycle::Phases light{health.get()};
  for (auto* phase : phases)
    if (phase->name() == "validate" || phase->name() == "pool") light.push_back(phase);
  lifecycle::Engine own(live.cluster(), all, store, rack.wall, [](const lifecycle::Event&) {});
  own.useOneThread();
  auto& used = beside == Beside::Monitor ? own : engine;
  MemoryRuns runs(store, std::move(rows));
  CO_TRY_OK(app::layRolloutRuns(live, runs, store));
  const auto memory = std::make_shared<app::RunMemory>();
  memory->is_reload_due = rack.is_reload_due;
  app::RunExecutor executor(
      {live.cluster(),
       runs,
       store,
       used,
       rack.wall,
       "ctl1",
       [&used](lifecycle::Policy policy) { return used.observe(std::move(policy)); },
       [&](const lifecycle::FactSet& facts, const lifecycle::Policy& policy) {
         return lifecycle::makePlan(live.cluster(), facts, policy, all);
       },
       [&](lifecycle::Subject subject) { return phases.back()->observe(std::move(subject)); },
       {},
       {},
       erasuresOf(phases),
       &live,
       &all,
       [&](const lifecycle::RolloutRecord& record) {
         return lifecycle::mayRollBack(rack.cluster, store, record);
       },
       nullptr,
       std::make_shared<const app::IsolationServices>(app::IsolationServices{
           live.cluster(),
           rack.agents,
           store,
           rack.measurements,
           rack.wall,
           [&](lifecycle::Subject subject) { return phases.back()->observe(std::move(subject)); },
           {},
           {},
           rack.folder / rack.state / "validation"}),
       rack.image_builder,
       rack.bmc_changer},
      memory);
  monitor::Monitor nodes({live.cluster(),
                          all,
                          light,
                          store,
                          rack.wall,
                          [](const lifecycle::Event&) {},
                          {},
                          steps.get(),
                          {},
                          {},
                          &used});
  auto work = executor.run();
  auto watch = monitorBeside(beside, nodes, rack.clock);
  auto end = waitFor(rack, std::move(until));
  const auto first = co_await (std::move(work) || std::move(watch) || std::move(end));
  lifecycle::ApplyReport report;
  report.failed = !std::get<2>(first);
  if (report.failed) report.problems.push_back("it has not come to its end within hours");
  co_return report;
}

}  // namespace

RackRun::RackRun(std::vector<std::string> nodes) : rack_(std::move(nodes)) {
  const auto end = test::live(rack_, store_);
  EXPECT_TRUE(end.ok) << end.problems;
  rack_.forgetCounts();
}

LifeEnd RackRun::live(Death death) {
  return serve(rack_, store_, rows_, death, [this] { return over(); });
}

void RackRun::ask(const app::RunRequest& request) {
  auto run = app::submitRun(runs_, request, kAnna, rack_.wall.now());
  EXPECT_TRUE(run) << run.error().str();
  id_ = run ? run->id : "";
}

bool RackRun::approve() {
  const auto known = run();
  if (known.state != lifecycle::RunState::NeedsApproval) return false;
  EXPECT_EQ(known.approvals_needed, 1u);
  EXPECT_FALSE(app::approveRun(runs_, id_, known.plan_hash, kAnna, rack_.wall.now()));
  EXPECT_TRUE(app::approveRun(runs_, id_, known.plan_hash, kBen, rack_.wall.now()));
  return true;
}

void RackRun::expectClean() {
  EXPECT_THAT(rack_.violations, ::testing::IsEmpty());
  EXPECT_THAT(*store_.openIntents(), ::testing::IsEmpty());
  EXPECT_TRUE(lifecycle::verifyAudit(store_, "")->ok());
}

LifeEnd serve(SimulatedRack& rack, lifecycle::Store& store, std::shared_ptr<MemoryRuns::Data> rows,
              Death death, std::function<bool()> until, Beside beside) {
  return live(
      rack, store, death,
      [&rack, rows, until, beside](auto& cluster, auto& engine, auto& durable, const auto& phases) {
        return serveUntil(rack, cluster, engine, durable, phases, rows, until, beside);
      });
}

}  // namespace muster::test
