// SPDX-License-Identifier: Apache-2.0
// All stages over the real protocols: muster-fleet in a process of its own serves a BMC (HTTPS)
// and an agent (mutual TLS) a node; the controller here drives them with the real phases on a real
// store. Both share the machine.
//
// MUSTER_FLEET_NODES: how many (default 500). MUSTER_FLEET_REAL=1: latencies as metal has them;
// then the wall time is compared with the slowest node's own time.
#include "bench/fleet_site.h"
#include "inventory/model/cluster.h"

namespace muster::bench {
namespace {

constexpr double kNodesPerSecond = 50, kMebibytes = 1536, kIdlePercent = 15, kOverSlowest = 1.2;
constexpr std::chrono::seconds kSettle{30};  ///< connections to BMCs are kept for 20 s after the
                                             ///< last request; their end is not measured
constexpr std::chrono::seconds kIdle{40};

/// Seconds of the slowest node from its first intent to its last.
double slowestNode(Store& store, const inventory::Cluster& cluster) {
  double slowest = 0;
  for (const auto& node : cluster.nodes) {
    WallTime first = WallTime::max(), last{};
    const auto intents = *store.intentsOf(Subject(node.name), 1'000);
    for (const auto& intent : intents) {
      first = std::min(first, intent.opened_at);
      last = std::max(last, intent.closed_at);
    }
    slowest = std::max(slowest, std::chrono::duration<double>(last - first).count());
  }
  return slowest;
}

int benchFleet(Report& report) {
  const int nodes = numberFrom("MUSTER_FLEET_NODES", 500);
  const bool real = numberFrom("MUSTER_FLEET_REAL", 0) != 0;
  io::raiseDescriptorLimit(kDescriptors);
  ::setenv("MUSTER_FLEET_PASSWORD", "fleet", 1);
  Folder folder;
  const auto cluster = clusterOf(nodes, folder.path());
  Site site(cluster, folder);
  Children fleet_processes(nodes, site.bootUrl(), real);
  Engine engine(cluster, site.phases, site.store(), site.clock(), nullptr);

  const double cpu = secondsOf(CLOCK_PROCESS_CPUTIME_ID), fleet_cpu = fleet_processes.cpuSeconds();
  int done = 0;
  const double wall = fastestSeconds(1, [&] { done = runApply(engine, site, cluster); });
  const double cpu_s = secondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu,
               fleet_s = fleet_processes.cpuSeconds() - fleet_cpu;
  const bool arrived = site.yard.size() == static_cast<std::size_t>(nodes);
  const auto what = fmt::format("{} nodes, {:.1f} journaled actions each, {} latency: ", nodes,
                                static_cast<double>(done) / nodes, real ? "real" : "no");
  report.record({.name = what + "in the pool",
                 .value = static_cast<double>(site.yard.size()),
                 .unit = "nodes",
                 .bar = nodes,
                 .direction = Bar::AtLeast});
  if (real) {
    const double slowest = slowestNode(site.store(), cluster);
    report.record({.name = what + "wall time",
                   .value = wall,
                   .unit = "s",
                   .bar = kOverSlowest * slowest,
                   .versus = slowest});
  } else {
    report.record({.name = what + "wall",
                   .value = nodes / wall,
                   .unit = "nodes/s",
                   .bar = kNodesPerSecond,
                   .direction = Bar::AtLeast});
  }
  report.record({.name = what + "controller's memory",
                 .value = peakMebibytes(),
                 .unit = "MiB",
                 .bar = kMebibytes});

  site.io.restart();
  site.io.run_for(kSettle);
  const double idle_begin = secondsOf(CLOCK_PROCESS_CPUTIME_ID);
  site.io.run_for(kIdle);
  const double share =
      (secondsOf(CLOCK_PROCESS_CPUTIME_ID) - idle_begin) / static_cast<double>(kIdle.count());
  const double reports_per_s = nodes / static_cast<double>(wire::kPollWait.count());
  report.record({.name = fmt::format("{} connected agents: a core's share for 10,000 reporting "
                                     "every 10 s, scaled from {:.0f} reports/s",
                                     nodes, reports_per_s),
                 .value = 100 * share / reports_per_s * 1'000,
                 .unit = "%",
                 .bar = kIdlePercent});
  report.record(
      {.name = what + "CPU of the controller a node", .value = cpu_s / nodes * 1e3, .unit = "ms"});
  report.record({.name = what + "CPU of the simulated fleet a node",
                 .value = fleet_s / nodes * 1e3,
                 .unit = "ms"});
  report.record({.name = what + "nodes a second of two cores' CPU",
                 .value = 2 * nodes / (cpu_s + fleet_s),
                 .unit = "nodes/s"});
  return arrived ? report.exitCode() : 1;
}

}  // namespace
}  // namespace muster::bench

int main() {
  muster::startLog({}, muster::LogLevel::Error);
  muster::bench::Report report("fleet");
  return muster::bench::benchFleet(report);
}
