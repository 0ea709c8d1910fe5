// SPDX-License-Identifier: Apache-2.0
// A found fabric against its declaration, from ibnetdiscover's text to the verdict; everything
// rendered for it; and whether faults are named.
#include "bench/bench.h"
#include "fabric/exports/plot.h"
#include "fabric/fabric_diff.h"
#include "fabric/opensm/subnet_manager.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/found_text.h"

#include <fstream>

namespace {

using namespace muster;
using namespace muster::fabric;

constexpr int kRuns = 5;
constexpr int kMiswirings = 200;
constexpr int kHealthy = 100;
constexpr double kLargeSeconds = 1.0, kUnitSeconds = 0.010, kRenderSeconds = 1.0, kMemoryMib = 500;

inventory::Cluster large() { return fabric::test::threeLevels(2048); }
inventory::Cluster unit() { return fabric::test::scalableUnit(32, {}); }

double peakMib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:") {
      double kib = 0;
      status >> kib;
      return kib / 1024;
    }
  return 0;
}

void must(bool good, std::string_view what) {
  if (good) return;
  fmt::print(stderr, "bench fabric: {}\n", what);
  std::exit(2);
}

/// From the declaration and the text to deviations; one cable is out, so that there is something to
/// find.
double checkSeconds(const inventory::Cluster& cluster) {
  auto topology = fabric::test::declared(cluster);
  topology.links.erase(topology.links.begin());
  const auto text = fabric::test::foundText(topology);
  topology = {};
  return bench::fastestSeconds(kRuns, [&] {
    auto report = diff(cluster, text);
    must(report.error.empty() && report.comparison.deviations.size() == 1,
         "the missing cable was not named");
  });
}

double renderSeconds(const inventory::Cluster& cluster) {
  return bench::fastestSeconds(kRuns, [&] {
    const auto& fabric = cluster.fabrics.at("ib");
    auto topology = fabric::test::declared(cluster);
    auto places = placesOf(cluster, fabric, topology);
    auto rules = declaredPartitions(cluster, fabric, topology);
    must(rules.has_value(), "no partitions");
    KnownGuids known;
    auto files = renderSm(fabric, topology, *rules, known, {"0x1", "/run", 0});
    auto size = cablingCsv(topology, places).size() + plotSvg("large", topology, places).size() +
                toIbsimNet(topology).size() + files.opensm_conf.size();
    must(size > 1'000'000, "too little was rendered");
  });
}

/// Share of single-cable faults that are named, alone, and mended by doing what is said.
double singleFaultsNamed() {
  const auto declared = fabric::test::declared(unit());
  std::size_t named = 0;
  for (const auto& link : declared.links) {
    auto found = declared;
    fabric::test::unplug(found, link.a);
    if (!declared.devices.at(link.a.node).is_switch) found.devices.erase(link.a.node);
    auto read = parseIbnetdiscover(fabric::test::foundText(found));
    must(read.has_value(), "cannot be read");
    auto compared = compare(declared, *read);
    bool exact = compared.deviations.size() == 1 && compared.repairs.size() == 1 &&
                 compared.deviations[0].at.node == link.a.node &&
                 compared.deviations[0].repair.find(toString(link.b)) != std::string::npos;
    for (const auto& repair : compared.repairs) apply(repair, *read, link.width_speed);
    named += exact && read->links == declared.links;
  }
  return static_cast<double>(named) / static_cast<double>(declared.links.size());
}

double miswiringsNamed() {
  const auto declared = fabric::test::declared(unit());
  std::mt19937 random(5);
  int named = 0;
  for (int round = 0; round < kMiswirings; ++round) {
    auto found = declared;
    auto first = random() % found.links.size();
    auto second = (first + 1 + random() % (found.links.size() - 1)) % found.links.size();
    auto &one = found.links[first], &other = found.links[second];
    const std::set<Port> ends = {one.a, one.b, other.a, other.b};
    std::swap(one.b, other.b);
    for (auto* link : {&one, &other})
      if (link->b < link->a) std::swap(link->a, link->b);
    std::sort(found.links.begin(), found.links.end());
    auto read = parseIbnetdiscover(fabric::test::foundText(found, static_cast<unsigned>(round)));
    must(read.has_value(), "cannot be read");
    auto compared = compare(declared, *read);
    bool exact = compared.deviations.size() == 2 && compared.repairs.size() == 1 &&
                 compared.repairs[0].moves.size() == 2;
    for (const auto& deviation : compared.deviations) exact = exact && ends.count(deviation.at);
    for (const auto& repair : compared.repairs) apply(repair, *read, "4xHDR");
    named += exact && read->links == declared.links;
  }
  return static_cast<double>(named) / kMiswirings;
}

int falseAlarms() {
  std::mt19937 random(23);
  auto upTo = [&](int most) {
    return 1 + static_cast<int>(random() % static_cast<unsigned>(most));
  };
  int alarms = 0;
  for (int round = 0; round < kHealthy; ++round) {
    auto cluster = fabric::test::railCluster(upTo(24), 4, 8, upTo(8), upTo(4));
    auto& fabric = cluster.fabrics["ib"];
    fabric.switch_ports = 64;
    fabric.uplinks_per_leaf_spine = upTo(2);
    if (round % 2) fabric.shape = inventory::FabricShape::FatTree, fabric.leaves_per_su = 2;
    if (round % 3 == 0) fabric.cores = 2 * fabric.spines_per_su;
    auto topology = fabric::test::declared(cluster);
    auto report = diff(cluster, fabric::test::foundText(topology, static_cast<unsigned>(round)));
    alarms += report.exitCode() != DiffReport::kEqual;
  }
  return alarms;
}

}  // namespace

int main() {
  bench::Report report("fabric");
  report.record({.name = "check of 1 SU (256 HCAs), text to verdict",
                 .value = checkSeconds(unit()),
                 .unit = "s",
                 .bar = kUnitSeconds});
  report.record({.name = "check of 16,384 HCAs on 3 levels, text to verdict",
                 .value = checkSeconds(large()),
                 .unit = "s",
                 .bar = kLargeSeconds});
  report.record({.name = "peak memory of that check, its text included",
                 .value = peakMib(),
                 .unit = "MiB",
                 .bar = kMemoryMib});
  report.record({.name = "render of everything for 16,384 HCAs",
                 .value = renderSeconds(large()),
                 .unit = "s",
                 .bar = kRenderSeconds});
  report.record({.name = "single-cable faults of 1 SU (512) named exactly and healed",
                 .value = singleFaultsNamed(),
                 .unit = "",
                 .bar = 1.0,
                 .direction = bench::Bar::AtLeast});
  report.record({.name = "200 random miswired pairs named exactly and healed",
                 .value = miswiringsNamed(),
                 .unit = "",
                 .bar = 1.0,
                 .direction = bench::Bar::AtLeast});
  report.record({.name = "false alarms on 100 random healthy fabrics",
                 .value = static_cast<double>(falseAlarms()),
                 .unit = "",
                 .bar = 0.0});
  return report.exitCode();
}
