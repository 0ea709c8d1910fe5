// SPDX-License-Identifier: Apache-2.0
// Miswires of one scalable unit in real ibsim: seen by ibnetdiscover, named, and mended by doing on
// its console what the repair text says.
#include "bench/bench.h"
#include "fabric/discovery/tools.h"
#include "fabric/rehearsal/simulator.h"
#include "inventory/model/cluster.h"
#include "tests/fabric/clusters.h"
#include "tests/run_async.h"

#include <random>

namespace {

using namespace muster;
using namespace muster::fabric;

constexpr int kMiswirings = 200;
constexpr std::chrono::minutes kLimit{12};

/// Two cables with their far ends exchanged, none of them the observer's own: what cuts off the
/// tools cannot be looked at.
std::pair<Link, Link> twoCables(const Topology& declared, std::mt19937& random) {
  while (true) {
    const auto &one = declared.links[random() % declared.links.size()],
               &other = declared.links[random() % declared.links.size()];
    const std::set<std::string> hosts = {one.a.node, one.b.node, other.a.node, other.b.node};
    if (!(one == other) && !hosts.contains(std::string(kControllerHca))) return {one, other};
  }
}

Async<int> healed(const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
                  std::filesystem::path folder) {
  const auto declared = fabric::test::declared(cluster);
  CO_TRY(simulator, co_await Simulator::start(declared, processes, clock, std::move(folder)));
  const auto seat = simulator->seat(kControllerHca);
  Tools tools(processes, seat);
  std::mt19937 random(5);
  int good = 0;
  for (int round = 0; round < kMiswirings; ++round) {
    const auto [one, other] = twoCables(declared, random);
    auto lines = Simulator::unlinkLine(one.a) + Simulator::unlinkLine(other.a) +
                 Simulator::linkLine(one.a, other.b) + Simulator::linkLine(other.a, one.b);
    CO_TRY_OK(co_await simulator->say(std::move(lines)));
    CO_TRY(found, co_await tools.discover());
    const auto compared = compare(declared, found);
    const std::set<Port> ends = {one.a, one.b, other.a, other.b};
    bool exact = compared.deviations.size() == 2 && compared.repairs.size() == 1;
    for (const auto& deviation : compared.deviations) exact = exact && ends.contains(deviation.at);
    CO_TRY_OK(co_await simulator->carryOut(compared.repairs));
    CO_TRY(after, co_await tools.discover());
    const bool mended = compare(declared, after).deviations.empty();
    good += exact && mended;
    if (!exact || !mended)
      fmt::print(stderr, "{} and {}: {}\n", toString(one.a), toString(other.a),
                 exact ? "not mended" : "not named exactly");
    if (mended) continue;
    CO_TRY_OK(co_await simulator->say(
        Simulator::unlinkLine(one.a) + Simulator::unlinkLine(other.a) +
        Simulator::linkLine(one.a, one.b) + Simulator::linkLine(other.a, other.b)));
  }
  co_return good;
}

}  // namespace

int main() {
  bench::Report report("miswire");
  muster::test::TempFolder folder;
  const auto processes = io::makeProcessRunner();
  SystemClock clock;
  const auto good = muster::test::runAsync(
      healed(fabric::test::scalableUnit(31, {"controller"}), *processes, clock, folder.path()),
      kLimit);
  if (!good) {
    fmt::print(stderr, "bench miswire: {}\n", good.error().str());
    return 2;
  }
  report.record(
      {.name = "200 random miswired pairs in ibsim named exactly and healed by the repair",
       .value = static_cast<double>(*good) / kMiswirings,
       .unit = "",
       .bar = 1.0,
       .direction = bench::Bar::AtLeast});
  return report.exitCode();
}
