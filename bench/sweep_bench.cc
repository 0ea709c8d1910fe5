// SPDX-License-Identifier: Apache-2.0
// One look at the firmware of a thousand BMCs that take 200 ms for each answer: real HTTPS on
// loopback, a process of BMCs beside the client's; twenty components each.
//
// MUSTER_SWEEP_BMCS: how many (default 1,000).
#include "base/io/files.h"
#include "base/io/process.h"
#include "bench/bench.h"
#include "bmc/fleet.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/profile.h"
#include "lab/fleet/fleet.h"
#include "lifecycle/store/store.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

namespace muster::bench {
namespace {

namespace fleet = lab::fleet;
using namespace std::chrono_literals;

constexpr double kSweepSeconds = 20;
constexpr std::chrono::milliseconds kLatency{200};
constexpr std::size_t kComponents = 20, kDescriptors = 20'000;
constexpr const char* kPassword = "sweep";

[[noreturn]] void serveBmcs(int bmcs, int ready) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  io::raiseDescriptorLimit(kDescriptors);
  SystemClock clock;
  Workers workers(1);
  asio::io_context io;
  fleet::Conditions conditions;
  conditions.redfish = {kLatency, kLatency};
  fleet::World world{io.get_executor(),
                     clock,
                     workers,
                     conditions,
                     "http://127.0.0.1:9",
                     lab::vbmc::Account::make(fleet::kUsername, kPassword)};
  world.vendor_profile = *lab::vbmc::findVendorProfile("gb200");
  auto made = fleet::Fleet::make(std::move(world), bmcs);
  if (!made) {
    std::cerr << made.error().str() << "\n";
    ::_exit(1);
  }
  if (::write(ready, "1", 1) != 1) ::_exit(1);
  io.run();
  ::_exit(0);
}

inventory::Cluster clusterOf(int bmcs) {
  inventory::Cluster cluster;
  inventory::Credential credential{"bmc", fleet::kUsername, {}};
  credential.password.env = "MUSTER_SWEEP_PASSWORD";
  cluster.credentials["bmc"] = credential;
  cluster.profiles["sim"].name = "sim";
  for (int number = 1; number <= bmcs; ++number) {
    const auto spec = fleet::specOf(number);
    inventory::Node node;
    node.name = NodeName(spec.name);
    node.profile = "sim";
    node.bmc.url = fmt::format("https://{}:{}", spec.bmc_address, spec.bmc_port);
    cluster.nodes.push_back(node);
  }
  return cluster;
}

struct Sweep {
  int complete = 0, open = 0;
  std::string trouble;
};

Task<void> look(bmc::Bmc& bmc, Sweep& sweep, asio::io_context& io) {
  auto items = co_await bmc.firmware();
  if (!items) sweep.trouble = items.error().str();
  if (items && items->size() == kComponents) ++sweep.complete;
  if (--sweep.open == 0) io.stop();
}

int benchSweep(Report& report) {
  const char* wanted = std::getenv("MUSTER_SWEEP_BMCS");
  const int bmcs = wanted ? std::atoi(wanted) : 1'000;
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  const pid_t child = ::fork();
  if (child == 0) serveBmcs(bmcs, ends[1]);
  char said = 0;
  ::close(ends[1]);
  if (::read(ends[0], &said, 1) != 1) return 1;

  io::raiseDescriptorLimit(kDescriptors);
  ::setenv("MUSTER_SWEEP_PASSWORD", kPassword, 1);
  auto pattern = (std::filesystem::temp_directory_path() / "muster-sweep-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  {
    const auto store = std::move(*lifecycle::openSqliteStore(folder / "muster.db"));
    SystemClock clock;
    Workers workers(2);
    const auto cluster = clusterOf(bmcs);
    for (const auto* round : {"first contact", "again"}) {
      asio::io_context io;
      const auto bmc_fleet =
          bmc::makeBmcFleet(cluster, *store, clock,
                            workers);  // a new process, in effect; its connections end before io
      Sweep sweep;
      sweep.open = bmcs;
      const double seconds = fastestSeconds(1, [&] {
        for (const auto& node : cluster.nodes)
          asio::co_spawn(io, look(bmc_fleet->at(node.name), sweep, io),
                         [](std::exception_ptr thrown) {
                           if (thrown) std::rethrow_exception(thrown);
                         });
        io.run();
      });
      if (!sweep.trouble.empty()) std::cerr << sweep.trouble << "\n";
      const auto what = fmt::format("{} BMCs at {} ms, {} components each, {}: ", bmcs,
                                    kLatency.count(), kComponents, round);
      report.record({.name = what + "sweep", .value = seconds, .unit = "s", .bar = kSweepSeconds});
      report.record({.name = what + "complete",
                     .value = static_cast<double>(sweep.complete),
                     .unit = "BMCs",
                     .bar = bmcs,
                     .direction = Bar::AtLeast});
    }
  }
  std::filesystem::remove_all(folder);
  ::kill(child, SIGTERM);
  ::waitpid(child, nullptr, 0);
  return report.exitCode();
}

}  // namespace
}  // namespace muster::bench

int main() {
  muster::startLog({}, muster::LogLevel::Error);
  muster::bench::Report report("sweep");
  return muster::bench::benchSweep(report);
}
