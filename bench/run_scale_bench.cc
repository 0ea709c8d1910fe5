// SPDX-License-Identifier: Apache-2.0
// The engine on a real store: nodes that take twenty journaled steps each, and a restart with all
// of them in the middle.
//
// The outside is in this process and answers at once; what is measured is the engine, its journal
// and SQLite with every commit synced. The engine has one thread and the journal another.
#include "bench/lifecycle_bench.h"
#include "inventory/model/cluster.h"
#include "lifecycle/executor/engine.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <set>

namespace muster::bench {
namespace {

using namespace lifecycle;

/// MUSTER_BENCH_NODES: fewer, for a profile.
const int kNodes =
    std::getenv("MUSTER_BENCH_NODES") ? std::atoi(std::getenv("MUSTER_BENCH_NODES")) : 10'000;
constexpr int kSteps = 20;
constexpr double kNodesPerSecond = 500, kRestartSeconds = 3.0, kMebibytes = 1536;

/// A chain of steps a node. In `stays` mode an effect never ends.
class Steps final : public Phase {
 public:
  explicit Steps(bool stays) : stays_(stays) {
    for (int i = 0; i < kSteps; ++i) facets_.emplace_back(fmt::format("step.{:02}", i));
  }
  std::string_view name() const override { return "steps"; }
  std::vector<Goal> goals(const inventory::Cluster&, const Subject& subject,
                          const FactSet&) const override {
    std::vector<Goal> out;
    if (subject.isCluster()) return out;
    out.reserve(kSteps);
    for (int i = 0; i < kSteps; ++i) {
      Goal goal;
      goal.facet = {subject, facets_[static_cast<std::size_t>(i)]};
      goal.want = "done";
      goal.deadline = std::chrono::seconds(3'600);
      if (i > 0) goal.needs.push_back({subject, facets_[static_cast<std::size_t>(i) - 1]});
      goal.why = "profile hgx-h100 wants it";
      out.push_back(std::move(goal));
    }
    return out;
  }
  Async<std::vector<Fact>> observe(Subject) override { co_return std::vector<Fact>(); }
  Async<Outcome> act(Action action, ActContext& context) override {
    CO_TRY_OK(co_await context.recordOperation(context.intentId()));
    if (acting_.insert(action.facet.subject).second &&
        acting_.size() == static_cast<std::size_t>(kNodes) && all_act)
      all_act();
    if (stays_) co_return Outcome(Again{std::chrono::seconds(30), "the outside"});
    done_.insert(action.facet);
    co_return Outcome(Done{});
  }
  Async<std::vector<Fact>> verify(Action action) override {
    std::vector<Fact> out;
    if (done_.contains(action.facet))
      out.push_back(Fact{action.facet.subject, action.facet.facet, "done", {}, "bench", ""});
    co_return out;
  }
  std::function<void()> all_act;
  std::size_t done() const { return done_.size(); }

 private:
  const bool stays_;
  std::vector<FacetName> facets_;
  std::set<FacetRef> done_;
  std::set<Subject> acting_;
};

inventory::Cluster clusterOf(int nodes) {
  inventory::Cluster cluster;
  cluster.digest = "bench";
  for (int i = 1; i <= nodes; ++i)
    cluster.nodes.emplace_back().name = NodeName(fmt::format("gpu{:05}", i));
  return cluster;
}

/// Plans and applies until the loop ends or is stopped. The store is opened here: a restart pays
/// for it too.
ApplyReport runEngine(const std::filesystem::path& file, const inventory::Cluster& cluster,
                      Steps& phase) {
  auto store = std::move(*openSqliteStore(file));
  SystemClock clock;
  asio::io_context io;
  Engine engine(cluster, {&phase}, *store, clock, nullptr);
  const auto facts = *store->facts();
  const auto plan = *makePlan(cluster, facts, *policyOf(*store, {}), {&phase});
  ApplyReport report;
  phase.all_act = [&io, stop = phase.all_act] {
    if (!stop) return;
    stop();
    io.stop();
  };
  asio::co_spawn(io, engine.apply(plan), [&](std::exception_ptr, Result<ApplyReport> ended) {
    if (ended) report = *ended;
  });
  io.run();
  phase.all_act = nullptr;
  return report;
}

void benchInstallation(Report& report) {
  Folder folder;
  const auto cluster = clusterOf(kNodes);
  Steps phase(false);
  const double control = secondsOf(CLOCK_THREAD_CPUTIME_ID),
               cpu = secondsOf(CLOCK_PROCESS_CPUTIME_ID);
  const double wall = fastestSeconds(1, [&] {
    const auto ended = runEngine(folder / "muster.db", cluster, phase);
    if (!ended.ok() || ended.done != kNodes * kSteps ||
        phase.done() != static_cast<std::size_t>(kNodes * kSteps))
      std::abort();
  });
  const double all_s = secondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu,
               control_s = secondsOf(CLOCK_THREAD_CPUTIME_ID) - control;
  const double busier_s = std::max(control_s, all_s - control_s);
  const auto what = fmt::format("{} nodes × {} journaled actions, SQLite: ", kNodes, kSteps);
  report.record({.name = what + "nodes a second, wall",
                 .value = kNodes / wall,
                 .unit = "nodes/s",
                 .bar = kNodesPerSecond,
                 .direction = Bar::AtLeast});
  report.record({.name = what + "nodes a second of the busier thread's CPU",
                 .value = kNodes / busier_s,
                 .unit = "nodes/s"});
  report.record({.name = what + "CPU of the engine's thread a node",
                 .value = control_s / kNodes * 1e3,
                 .unit = "ms"});
  report.record({.name = what + "CPU of the journal's thread a node",
                 .value = (all_s - control_s) / kNodes * 1e3,
                 .unit = "ms"});
  report.record({.name = what + "memory at its peak",
                 .value = peakMebibytes(),
                 .unit = "MiB",
                 .bar = kMebibytes});
}

void benchRestart(Report& report) {
  Folder folder;
  const auto cluster = clusterOf(kNodes);
  {
    Steps before(true);
    before.all_act = [] {};  // then the process is gone
    runEngine(folder / "muster.db", cluster, before);
  }
  Steps after(true);
  const auto begin = std::chrono::steady_clock::now();
  const double cpu = secondsOf(CLOCK_PROCESS_CPUTIME_ID);
  double seconds = 0, cpu_s = 0;
  after.all_act = [&] {
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    cpu_s = secondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  };
  runEngine(folder / "muster.db", cluster, after);
  report.record(
      {.name = fmt::format("restart with {} nodes in flight: until each is acted on again", kNodes),
       .value = seconds,
       .unit = "s",
       .bar = kRestartSeconds});
  report.record({.name = "… CPU of both threads", .value = cpu_s, .unit = "s CPU"});
}

}  // namespace

void benchScaleOfRuns(Report& report) {
  benchInstallation(report);
  benchRestart(report);
}

}  // namespace muster::bench
