// SPDX-License-Identifier: Apache-2.0
// Netboot: ten thousand hosts for dnsmasq, and what a thousand of them get that start within ten
// seconds (netboot_start.h).
#include "bench/netboot_start.h"

#include "inventory/model/cluster.h"
#include "provision/netboot/dnsmasq_config.h"

#include <ctime>

namespace muster::provision {

constexpr int kHosts = 10000;

namespace {

double cpuSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void hosts(bench::Report& report) {
  const Folder folder;
  auto cluster = manyNodes(kHosts);
  HostFiles files(folder.path / "hosts");
  const auto take = [&](std::size_t expected) {
    const auto before = cpuSeconds();
    const auto change = files.write(renderHosts(cluster));
    const auto spent = cpuSeconds() - before;
    if (!change || change->added + change->removed != expected) std::abort();
    return spent;
  };
  report.record({"10,000 hosts rendered and written for dnsmasq, CPU", take(kHosts), "s", 2.0});
  cluster.nodes.pop_back();
  report.record({"one of 10,000 hosts removed, CPU", take(1) * 1e3, "ms", 50.0});
}

}  // namespace
}  // namespace muster::provision

int main() {
  muster::bench::Report report("netboot");
  muster::provision::hosts(report);
  muster::provision::startTogether(report, muster::provision::kHosts);
  return report.exitCode();
}
