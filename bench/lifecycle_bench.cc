// SPDX-License-Identifier: Apache-2.0
// Planning 10,000 nodes with 12 goals each, the plan's hash and JSON, and what the store's writes
// cost beside the floor of the same disk: a file that is appended to and synced.
#include "bench/lifecycle_bench.h"
#include "inventory/model/cluster.h"
#include "lifecycle/executor/engine.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

namespace {

using namespace muster;
using namespace muster::lifecycle;

constexpr int kNodes = 10'000;
constexpr int kRuns = 3;
constexpr int kWrites = 200;
constexpr double kPlanSeconds = 1.0;
constexpr double kWriteOverFloor = 8.0;  ///< a journal write may cost this many bare syncs

/// The usual stages of a node, as one phase.
class AllStages final : public Phase {
 public:
  std::string_view name() const override { return "stages"; }
  std::vector<Goal> goals(const inventory::Cluster&, const Subject& subject,
                          const FactSet& facts) const override {
    if (subject.isCluster()) return {goal(subject, "fabric.sm", "master:1", Disruption::None, {})};
    const auto serial = facts.value(subject, FacetName("hw.serial")).value_or("");
    std::vector<Goal> out{
        goal(subject, "enrolled", "yes", Disruption::None, {}),
        goal(subject, "firmware.BMC", "2.1.0", Disruption::Reset, {"enrolled"}),
        goal(subject, "firmware.BIOS", "1.4.2", Disruption::Reset, {"firmware.BMC"}),
        goal(subject, "inspected", "fits", Disruption::Reset, {"firmware.BMC", "firmware.BIOS"}),
        goal(subject, "image", "noble@1", Disruption::Wipe, {"inspected"}),
        goal(subject, "os", "running", Disruption::Reset, {"image"}),
        goal(subject, "driver.nvidia", "575.57.08", Disruption::Drain, {"os"}),
        goal(subject, "driver.rdma", "44.*", Disruption::Drain, {"os"}),
        goal(subject, "fabric.ports", "as-declared", Disruption::None, {"os"}),
        goal(subject, "gate.burn-in", "pass:" + serial, Disruption::Drain,
             {"driver.nvidia", "driver.rdma", "fabric.ports"}),
        goal(subject, "certificate", "valid:" + serial, Disruption::None, {"gate.burn-in"}),
        goal(subject, "pool", "in", Disruption::None, {"certificate"})};
    out[8].needs.push_back({Subject::cluster(), FacetName("fabric.sm")});
    return out;
  }
  Async<std::vector<Fact>> observe(Subject) override { co_return std::vector<Fact>(); }
  Async<Outcome> act(Action, ActContext&) override { co_return Outcome(Done{}); }
  Async<std::vector<Fact>> verify(Action) override { co_return std::vector<Fact>(); }

 private:
  static Goal goal(const Subject& subject, const char* facet, std::string want,
                   Disruption disruption, std::initializer_list<const char*> needs) {
    Goal out;
    out.facet = {subject, FacetName(facet)};
    out.want = std::move(want);
    out.disruption = disruption;
    out.deadline = std::chrono::seconds(600);
    for (const char* need : needs) out.needs.push_back({subject, FacetName(need)});
    out.why = "profile hgx-h100 wants it";
    return out;
  }
};

Fact fact(const Subject& subject, const std::string& facet, const std::string& value) {
  return {subject, FacetName(facet), value, WallTime(std::chrono::milliseconds(1)), "bench", ""};
}

FactSet allMet(const inventory::Cluster& cluster, const AllStages& stages) {
  FactSet facts;
  for (const auto& node : cluster.nodes) {
    const Subject subject(node.name);
    facts.put(fact(subject, "hw.serial", "S" + node.name.str()));
    facts.put(fact(subject, "disk.system", "noble@1"));
    for (int gpu = 0; gpu < 8; ++gpu)
      facts.put(fact(subject, fmt::format("hw.gpu.{}", gpu),
                     fmt::format("GPU-{}-{}", node.name.str(), gpu)));
    for (const auto& goal : stages.goals(cluster, subject, facts))
      facts.put(fact(subject, goal.facet.facet.str(), goal.want == "44.*" ? "44.0" : goal.want));
  }
  facts.put(fact(Subject::cluster(), "fabric.sm", "master:1"));
  return facts;
}

void benchPlans(bench::Report& report) {
  inventory::Cluster cluster;
  cluster.digest = "bench";
  for (int i = 1; i <= kNodes; ++i)
    cluster.nodes.emplace_back().name = NodeName(fmt::format("gpu{:05}", i));
  AllStages stages;
  const Phases phases{&stages};
  const auto met = allMet(cluster, stages);
  auto rollout = met, fresh = FactSet();
  for (const auto& node : cluster.nodes) {
    rollout.put(fact(Subject(node.name), "driver.nvidia", "570.124.06"));
    fresh.put(fact(Subject(node.name), "pool", "out"));
  }
  auto measure = [&](const char* name, const FactSet& facts, std::size_t actions) {
    Plan plan;
    const double seconds =
        bench::fastestCpuSeconds(kRuns, [&] { plan = *makePlan(cluster, facts, {}, phases); });
    if (plan.actions.size() != actions) std::abort();
    report.record({.name = fmt::format("plan {} nodes × 12 goals, {}", kNodes, name),
                   .value = seconds,
                   .unit = "s CPU",
                   .bar = kPlanSeconds});
    return plan;
  };
  measure("nothing to do", met, 0);
  measure("a driver for all: drain, install, join", rollout, 3u * kNodes);
  const auto plan = measure("all fresh", fresh, 12u * kNodes + 1);
  std::string text;
  report.record({.name = "hash and JSON of 120,001 actions",
                 .value = bench::fastestCpuSeconds(1, [&] { text = plan.toJson(); }),
                 .unit = "s CPU"});
  report.record({.name = "read that plan back and check its hash",
                 .value = bench::fastestCpuSeconds(1, [&] { (void)*Plan::fromJson(text); }),
                 .unit = "s CPU"});
}

/// Seconds of one append and fdatasync in the same folder.
double syncFloor(const std::filesystem::path& folder) {
  const int fd =
      ::open((folder / "floor").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string block(4'096, 'x');
  const double seconds = bench::fastestSeconds(kRuns, [&] {
    for (int i = 0; i < kWrites; ++i)
      if (::write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size()) ||
          ::fdatasync(fd) != 0)
        std::abort();
  });
  ::close(fd);
  return seconds / kWrites;
}

void benchStore(bench::Report& report) {
  std::string pattern = (std::filesystem::current_path() / "bench-store-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) std::abort();
  const std::filesystem::path folder = pattern;
  {
    auto store = std::move(*openSqliteStore(folder / "muster.db"));
    const double floor = syncFloor(folder) * 1e3;
    int next = 0;
    auto each = [&](const char* name, auto write) {
      const double seconds = bench::fastestSeconds(kRuns, [&] {
        for (int i = 0; i < kWrites; ++i) write();
      });
      const double millis = seconds / kWrites * 1e3;
      report.record({.name = name,
                     .value = millis,
                     .unit = "ms",
                     .bar = floor * kWriteOverFloor,
                     .versus = floor});
    };
    each("store: one event, on the disk", [&] {
      (void)*store->addEvent(Event{
          0, {}, EventKind::ActionProgress, Subject(NodeName("gpu001")), "a", "half way", 0.5});
    });
    each("store: open and close an intent", [&] {
      Intent intent;
      intent.id = std::to_string(next++);
      intent.action.facet = {Subject(NodeName("gpu001")), FacetName("image")};
      if (!store->openIntent(intent) || !store->closeIntent(intent.id, IntentState::Done, "", {}))
        std::abort();
    });
    std::vector<Fact> facts;
    for (int i = 0; i < kNodes; ++i)
      for (int f = 0; f < 12; ++f)
        facts.push_back(fact(Subject(NodeName(fmt::format("gpu{:05}", i))),
                             fmt::format("facet.{}", f), "value"));
    report.record({.name = "store: 120,000 facts in one commit",
                   .value = bench::fastestSeconds(1,
                                                  [&] {
                                                    if (!store->putFacts(facts)) std::abort();
                                                  }),
                   .unit = "s"});
    report.record({.name = "store: read 120,000 facts",
                   .value = bench::fastestSeconds(kRuns, [&] { (void)*store->facts(); }),
                   .unit = "s",
                   .bar = 1.0});
  }
  std::filesystem::remove_all(folder);
}

}  // namespace

int main() {
  bench::Report report("lifecycle");
  bench::benchScaleOfRuns(report);  // first: memory is counted at its peak
  bench::benchScaleOfPlans(report);
  bench::benchBudgets(report);
  benchPlans(report);
  benchStore(report);
  return report.exitCode();
}
