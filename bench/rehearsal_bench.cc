// SPDX-License-Identifier: Apache-2.0
// Fabric CI of one scalable unit: real ibsim and OpenSM, every single fault alone; and how long
// nobody is master when the master dies.
#include "bench/bench.h"
#include "fabric/rehearsal/rehearsal.h"
#include "inventory/model/cluster.h"
#include "tests/fabric/clusters.h"
#include "tests/run_async.h"

namespace {

using namespace muster;
using namespace muster::fabric;

constexpr double kRehearsalSeconds = 180, kFailoverSeconds = 5;
constexpr std::chrono::minutes kLimit{20};

inventory::Cluster unit() { return fabric::test::scalableUnit(31, {"controller", "gpu031"}); }

}  // namespace

int main() {
  bench::Report report("rehearsal");
  muster::test::TempFolder folder;
  const auto cluster = unit();
  const auto processes = io::makeProcessRunner();
  SystemClock clock;
  RehearsalOptions options;
  options.folder = folder.path();
  auto run = muster::test::runAsync(rehearse(cluster, *processes, clock, options), kLimit);
  if (!run || !run->error.empty()) {
    fmt::print(stderr, "bench rehearsal: {}\n", run ? run->error : run.error().str());
    return 2;
  }
  fmt::print(stderr, "{}", toText(*run));
  std::size_t held = 0;
  double failover = 1e9;
  for (const auto& one : run->outcomes) {
    held += one.problems.empty();
    if (one.fault.kind == FaultKind::ManagerLost) failover = one.failover_seconds;
  }
  const auto faults = static_cast<double>(run->outcomes.size());
  report.record({.name = fmt::format("rehearsal of 1 SU, {} faults", run->outcomes.size()),
                 .value = run->seconds,
                 .unit = "s",
                 .bar = kRehearsalSeconds});
  report.record({.name = "faults that held: routed around, named exactly, mended by the repair",
                 .value = static_cast<double>(held) / faults,
                 .unit = "",
                 .bar = 1.0,
                 .direction = bench::Bar::AtLeast});
  report.record({.name = "subnet manager killed until the standby has the subnet up",
                 .value = failover,
                 .unit = "s",
                 .bar = kFailoverSeconds});
  return report.exitCode();
}
