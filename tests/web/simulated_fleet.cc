// SPDX-License-Identifier: Apache-2.0
#include "tests/web/simulated_fleet.h"

#include "app/effective_cluster.h"
#include "app/run_async.h"
#include "app/run_executor.h"
#include "app/session.h"
#include "lifecycle/executor/engine.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace muster::test {
namespace {

using lifecycle::Action;
using lifecycle::Fact;
using lifecycle::Subject;

/// A value that a goal takes: it may be a glob.
std::string valueFor(std::string want) {
  std::erase(want, '*');
  std::replace(want.begin(), want.end(), '?', '0');
  return want.empty() ? "1" : want;
}

/// The real phase's goals; its machines do what they are told.
class SimulatedPhase : public lifecycle::Phase {
 public:
  SimulatedPhase(const lifecycle::Phase& real, Clock& clock, std::chrono::milliseconds pause)
      : real_(real), clock_(clock), pause_(pause) {}
  std::string_view name() const override { return real_.name(); }
  bool isOnDemand() const override { return real_.isOnDemand(); }
  std::vector<lifecycle::Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                                     const lifecycle::FactSet& facts) const override {
    return real_.goals(cluster, subject, facts);
  }
  Async<std::vector<Fact>> observe(Subject) override { co_return std::vector<Fact>(); }
  Async<lifecycle::Outcome> act(Action action, lifecycle::ActContext& context) override {
    if (context.operation().empty()) {
      CO_TRY_OK(co_await context.recordOperation("begun"));
      context.progress(0.5, "half of " + action.facet.facet.str());
      co_return lifecycle::Again{pause_, "the machine"};
    }
    co_return lifecycle::Done{};
  }
  Async<std::vector<Fact>> verify(Action action) override {
    co_return std::vector<Fact>{{action.facet.subject, action.facet.facet, valueFor(action.to),
                                 clock_.now(), "simulated", ""}};
  }

 private:
  const lifecycle::Phase& real_;
  Clock& clock_;
  const std::chrono::milliseconds pause_;
};

Async<void> forever(app::RunExecutor& executor) {
  co_await executor.run();
  co_return Result<void>();
}

}  // namespace

Result<void> serveRuns(const app::Options& options, std::chrono::milliseconds pause) {
  TRY(live, app::effectiveCluster(options));
  TRY(session, app::Session::openStored(options, std::move(live)));
  TRY(store, app::openStoreForWriting(options));
  TRY(runs, app::openRunStore(options));
  SystemClock clock;
  std::vector<std::unique_ptr<lifecycle::Phase>> owned;
  lifecycle::Phases phases;
  for (const auto* real : session->controller->phases()) {
    owned.push_back(std::make_unique<SimulatedPhase>(*real, clock, pause));
    phases.push_back(owned.back().get());
  }
  lifecycle::Engine engine(session->cluster(), phases, *store, clock,
                           [](const lifecycle::Event&) {});
  engine.useOneThread();
  const auto known = [&store](const auto&) -> Async<lifecycle::FactSet> {
    co_return store->facts();
  };
  app::RunExecutor executor(
      {session->cluster(), *runs, *store, engine, clock, "the simulated fleet", known,
       [&](const lifecycle::FactSet& facts, const lifecycle::Policy& policy) {
         return session->controller->plan(facts, policy);
       },
       [&store](Subject subject) -> Async<std::vector<Fact>> {
         co_return store->factsOf(subject);
       }},
      std::make_shared<app::RunMemory>());
  return app::Loop().run(forever(executor));
}

}  // namespace muster::test
