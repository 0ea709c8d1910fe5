// SPDX-License-Identifier: Apache-2.0
// Loading 10,000 nodes: from one YAML file, and from a CSV; beside yaml-cpp's own time for the same
// text.
#include "bench/bench.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/parse/hostlist.h"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace {

using namespace muster;

constexpr int kNodes = 10'000;
constexpr int kRuns = 7;
constexpr double kBeyondYamlSeconds = 0.3;  ///< "well under a second beyond yaml-cpp's own time"

constexpr std::string_view kHead = R"(cluster: {name: hall}
networks:
  provisioning: {cidr: 10.0.0.0/8}
credentials:
  bmc: {username: admin, password: {command: "true"}}
images:
  noble: {build: {suite: noble, packages: [linux-generic]}}
profiles:
  gpu: {image: noble}
nodes:
)";

struct Row {
  std::string name, rack, mac, address, bmc, serial;
  int unit;
};

Row row(int i) {
  int high = i / 250, low = i % 250 + 1;
  return {fmt::format("gpu{:05}", i + 1),
          fmt::format("r{:03}", i / 8),
          fmt::format("52:54:00:20:{:02x}:{:02x}", i >> 8, i & 255),
          fmt::format("10.20.{}.{}", high, low),
          fmt::format("https://10.21.{}.{}", high, low),
          fmt::format("S{:010}", i),
          i % 8 * 5 + 1};
}

std::string yamlOfNodes() {
  std::string out(kHead);
  for (int i = 0; i < kNodes; ++i) {
    Row r = row(i);
    out += fmt::format(
        "  - {{names: {}, profile: gpu, rack: {}, unit: {}, mac: \"{}\", address: {}, bmc: \"{}\", "
        "serial: {}}}\n",
        r.name, r.rack, r.unit, r.mac, r.address, r.bmc, r.serial);
  }
  return out;
}

std::string csvOfNodes() {
  std::string out = "name,rack,unit,mac,address,bmc,serial\n";
  for (int i = 0; i < kNodes; ++i) {
    Row r = row(i);
    out += fmt::format("{},{},{},{},{},{},{}\n", r.name, r.rack, r.unit, r.mac, r.address, r.bmc,
                       r.serial);
  }
  return out;
}

/// Seconds to load; leaves the program when the inventory is not what it should be, for a fast
/// failure is no result.
double loadSeconds(std::string_view yaml, const std::filesystem::path& file) {
  return bench::fastestSeconds(kRuns, [&] {
    auto loaded = inventory::loadText(yaml, file);
    if (!loaded.cluster || loaded.cluster->nodes.size() != kNodes) {
      fmt::print(stderr, "{}", inventory::checkText(loaded));
      std::exit(2);
    }
  });
}

}  // namespace

int main() {
  bench::Report report("inventory");
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("muster-bench-{}", ::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "racks.csv") << csvOfNodes();

  std::string yaml = yamlOfNodes();
  double plain = bench::fastestSeconds(kRuns, [&] {
    if (YAML::Load(yaml)["nodes"].size() != kNodes) std::exit(2);
  });
  double loaded = loadSeconds(yaml, folder / "cluster.yaml");
  report.record({.name = "load 10,000 nodes from one YAML file",
                 .value = loaded,
                 .unit = "s",
                 .bar = plain + kBeyondYamlSeconds,
                 .versus = plain});

  std::string with_csv =
      std::string(kHead) + "  - {names: \"gpu[00001-10000]\", profile: gpu, from: racks.csv}\n";
  double csv = loadSeconds(with_csv, folder / "cluster.yaml");
  report.record({.name = "load 10,000 nodes from a CSV file",
                 .value = csv,
                 .unit = "s",
                 .bar = kBeyondYamlSeconds,
                 .versus = plain});

  std::vector<std::string> names = *inventory::expandHostlist("gpu[00001-10000]");
  double fold = bench::fastestSeconds(kRuns, [&] {
    if (inventory::foldHostlist(names) != "gpu[00001-10000]") std::exit(2);
  });
  report.record({.name = "fold 10,000 names", .value = fold * 1e3, .unit = "ms", .bar = 200});
  std::filesystem::remove_all(folder);
  return report.exitCode();
}
