// SPDX-License-Identifier: Apache-2.0
#include "tests/web/simulated_fleet.h"

#include "app/controller/run_async.h"
#include "app/plans/rollout_guard.h"
#include "app/runs/run_executor.h"
#include "app/runs/run_work.h"
#include "app/site/effective_cluster.h"
#include "app/site/session.h"
#include "lifecycle/executor/engine.h"
#include "lifecycle/rollout/record.h"
#include "wire/messages.h"

#include <fmt/format.h>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace muster::test {
namespace {

using lifecycle::Action;
using lifecycle::Fact;
using lifecycle::Subject;

constexpr std::chrono::milliseconds kReadAgainPoll{200};
constexpr double kSlowDriverShare = 0.88;

/// A value that a goal takes: it may be a glob.
std::string valueFor(std::string want) {
  std::erase(want, '*');
  std::replace(want.begin(), want.end(), '?', '0');
  return want.empty() ? "1" : want;
}

/// The real phase's goals; its machines do what they are told.
class SimulatedPhase : public lifecycle::Phase {
 public:
  SimulatedPhase(const lifecycle::Phase& real, lifecycle::Store& store, Clock& clock,
                 std::chrono::milliseconds pause)
      : real_(real), store_(store), clock_(clock), pause_(pause) {}
  std::string_view name() const override { return real_.name(); }
  bool isOnDemand() const override { return real_.isOnDemand(); }
  std::vector<lifecycle::Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                                     const lifecycle::FactSet& facts) const override {
    return real_.goals(cluster, subject, facts);
  }
  /// Only the scheduler is asked, as a rollout asks it again and again: whom does it have?
  Async<std::vector<Fact>> observe(Subject subject) override {
    std::vector<Fact> out;
    if (name() != "pool") co_return out;
    CO_TRY(facts, store_.factsOf(subject));
    for (auto& fact : facts)
      if (fact.facet.str() == "pool") out.push_back(std::move(fact));
    for (auto& fact : out) fact.observed_at = clock_.now();
    co_return out;
  }
  Async<lifecycle::Outcome> act(Action action, lifecycle::ActContext& context) override {
    if (context.operation().empty()) {
      CO_TRY_OK(co_await context.recordOperation("begun"));
      context.progress(0.5, "half of " + action.facet.facet.str());
      co_return lifecycle::Again{pause_, "the machine"};
    }
    co_return lifecycle::Done{};
  }
  Async<std::vector<Fact>> verify(Action action) override {
    const auto& who = action.facet.subject;
    std::string evidence;
    if (action.facet.facet.str().starts_with("gate.")) {
      CO_TRY(facts, store_.factsOf(who));
      evidence = measuredEvidence(who.str(), std::ranges::any_of(facts, [](const Fact& fact) {
                                    return fact.facet.str() == kSlowDriverFacet;
                                  }));
    }
    co_return std::vector<Fact>{
        {who, action.facet.facet, valueFor(action.to), clock_.now(), "simulated", evidence}};
  }

 private:
  const lifecycle::Phase& real_;
  lifecycle::Store& store_;
  Clock& clock_;
  const std::chrono::milliseconds pause_;
};

/// Ends when a run asks for the inventory to be read again, as the monitor does.
Task<void> untilReadAgain(Clock& clock, const bool& is_asked) {
  while (!is_asked) co_await clock.sleep(kReadAgainPoll);
}

Async<void> serve(app::RunExecutor& executor, Clock& clock, const bool& is_asked) {
  using namespace asio::experimental::awaitable_operators;
  auto runs = executor.run();
  auto end = untilReadAgain(clock, is_asked);
  auto first = std::move(runs) || std::move(end);
  co_await std::move(first);
  co_return Result<void>();
}

/// With the inventory as it is now, and what rollouts have changed and will change.
Result<void> serveOnce(const app::Options& options, std::chrono::milliseconds pause,
                       const std::shared_ptr<app::RunMemory>& memory) {
  TRY(live, app::servedCluster(options));
  TRY(session, app::Session::openStored(options, std::move(live)));
  TRY(store, app::openStoreForWriting(options));
  TRY(runs, app::openRunStore(options));
  SystemClock clock;
  std::vector<std::unique_ptr<lifecycle::Phase>> owned;
  lifecycle::Phases phases;
  for (const auto* real : session->controller->phases()) {
    owned.push_back(std::make_unique<SimulatedPhase>(*real, *store, clock, pause));
    phases.push_back(owned.back().get());
  }
  lifecycle::Engine engine(session->cluster(), phases, *store, clock,
                           [](const lifecycle::Event&) {});
  engine.useOneThread();
  const auto known = [&store](const auto&) -> Async<lifecycle::FactSet> {
    co_return store->facts();
  };
  app::RunWork work{
      session->cluster(),
      *runs,
      *store,
      engine,
      clock,
      "the simulated fleet",
      known,
      [&](const lifecycle::FactSet& facts, const lifecycle::Policy& policy) {
        return session->controller->plan(facts, policy);
      },
      [&store](Subject subject) -> Async<std::vector<Fact>> { co_return store->factsOf(subject); }};
  bool is_asked = false;
  work.read_inventory = [&is_asked] { is_asked = true; };
  work.live = session->live.get();
  work.phases = &phases;
  work.may_roll_back = [&](const lifecycle::RolloutRecord& record) {
    return app::mayRollBack(options, *store, record);
  };
  memory->begin_none = false;
  app::RunExecutor executor(std::move(work), memory);
  return app::Loop().run(serve(executor, clock, is_asked));
}

}  // namespace

std::string measuredEvidence(const std::string& node, bool has_slow_driver) {
  double own = 0;  // machines of one kind differ a little, each always by the same
  for (const char letter : node) own = own * 31 + letter;
  const double noise = 1 + 0.004 * std::sin(own);
  const double share = has_slow_driver ? kSlowDriverShare + 0.002 * std::cos(own) : 1;
  const double hbm = 2893 * noise * share, products = 688 * noise * share, triad = 412 * noise;
  using wire::CheckStatus::Pass;
  return wire::toJson(std::vector<wire::CheckResult>{
      {"gpu.burn",
       Pass,
       fmt::format("8 of 8 GPUs verified; HBM {:.0f} GB/s, bf16 {:.0f} TFLOP/s at least", hbm,
                   products),
       {{"hbm_gb_s", hbm}, {"bf16_tflops", products}},
       R"({"seed": 4711, "stages": "gemm,memory,copy", "gpus": 8})",
       61.2},
      {"host.stream",
       Pass,
       fmt::format("{:.0f} GB/s, every element right", triad),
       {{"stream_gb_s", triad}},
       R"({"numa_nodes": 2})",
       10.4}});
}

Result<void> serveRuns(const app::Options& options, std::chrono::milliseconds pause) {
  const auto memory = std::make_shared<app::RunMemory>();
  for (;;) TRY_OK(serveOnce(options, pause, memory));
}

}  // namespace muster::test
