// SPDX-License-Identifier: Apache-2.0
// A controller that works without a pause: a driver is changed on all nodes, again and again, each
// drained, changed, validated and joined again over the real protocols. What it keeps in memory
// must not grow.
//
// MUSTER_SOAK_SECONDS: how long (default 180; the store's page cache of 64 MiB is full after about
// a minute). MUSTER_FLEET_NODES: how many (default 100).
#include "bench/fleet_site.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"

#include <cstdio>

namespace muster::bench {
namespace {

constexpr double kMayGrow = 1.05, kSlackMebibytes = 4;

double residentMebibytes() {
  long pages = 0;
  std::ifstream statm("/proc/self/statm");
  statm >> pages >> pages;
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)) /
         (1024.0 * 1024.0);
}

int benchSoak(Report& report) {
  const int nodes = numberFrom("MUSTER_FLEET_NODES", 100);
  const std::chrono::seconds duration(numberFrom("MUSTER_SOAK_SECONDS", 180));
  io::raiseDescriptorLimit(kDescriptors);
  ::setenv("MUSTER_FLEET_PASSWORD", "fleet", 1);
  Folder folder;
  auto cluster = clusterOf(nodes, folder.path());
  Site site(cluster, folder);
  Children fleet_processes(nodes, site.bootUrl(), false);
  Engine engine(cluster, site.phases, site.store(), site.clock(), nullptr);
  int done = runApply(engine, site, cluster);

  const auto begin = std::chrono::steady_clock::now();
  int rounds = 0;
  double warm = 0, first_s = 0, last_s = 0;
  while (rounds < 4 || std::chrono::steady_clock::now() - begin < duration) {
    cluster.drivers.at("driver0").verify = {{"package.driver0", fmt::format("{}.*", 100 + rounds)}};
    cluster.digest = fmt::format("soak-{}", rounds);
    last_s = fastestSeconds(1, [&] { done += runApply(engine, site, cluster); });
    ++rounds;
    if (warm == 0 && std::chrono::steady_clock::now() - begin >= duration / 2) {
      warm = residentMebibytes();
      first_s = last_s;
    }
  }
  const double hours =
      std::chrono::duration<double, std::ratio<3600>>(std::chrono::steady_clock::now() - begin)
          .count();
  const auto what =
      fmt::format("{} nodes, {} drivers rolled over all of them in {:.0f} s, {} actions: ", nodes,
                  rounds, hours * 3600, done);
  report.record({.name = what + "nodes in the pool",
                 .value = static_cast<double>(site.yard.size()),
                 .unit = "nodes",
                 .bar = nodes,
                 .direction = Bar::AtLeast});
  report.record({.name = what + "memory at the end, beside that at half time",
                 .value = residentMebibytes(),
                 .unit = "MiB",
                 .bar = warm * kMayGrow + kSlackMebibytes,
                 .versus = warm});
  report.record({.name = what + "the last took, beside that at half time",
                 .value = last_s,
                 .unit = "s",
                 .versus = first_s});
  return report.exitCode();
}

}  // namespace
}  // namespace muster::bench

int main() {
  muster::startLog({}, muster::LogLevel::Error);
  muster::bench::Report report("soak");
  return muster::bench::benchSoak(report);
}
