// SPDX-License-Identifier: Apache-2.0
// A folder of its own with a small inventory that loads without a word; tests change one thing and
// look.
#pragma once

#include "inventory/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace muster::inventory {

class InventoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name =
        (std::filesystem::temp_directory_path() / "muster-inventory-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    write("secrets/bmc", "calvin\n");
    ::chmod((folder_ / "secrets/bmc").c_str(), 0600);
    write("racks.csv", kRacks);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, std::string_view content) {
    std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  static std::string read(const std::filesystem::path& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
  }

  Loaded loadYaml(std::string_view yaml) { return load(write("cluster.yaml", yaml)); }

  /// The small inventory with one piece of text replaced; the piece must be there.
  static std::string with(std::string_view old_text, std::string_view new_text,
                          std::string text = std::string(kSmall)) {
    auto at = text.find(old_text);
    EXPECT_NE(at, std::string::npos) << "the fixture has no " << old_text;
    if (at != std::string::npos) text.replace(at, old_text.size(), new_text);
    return text;
  }

  /// Diagnostics as lines, with the folder's name taken out: "cluster.yaml:3:4: error: …".
  std::vector<std::string> lines(const Loaded& loaded) const {
    std::vector<std::string> out;
    for (const Diagnostic& one : loaded.diagnostics.all()) {
      std::string line = one.str();
      for (std::string prefix = folder_.string() + "/"; line.find(prefix) != std::string::npos;)
        line.erase(line.find(prefix), prefix.size());
      out.push_back(std::move(line));
    }
    return out;
  }

  /// What loading the changed inventory says.
  std::vector<std::string> complaints(std::string_view old_text, std::string_view new_text) {
    return lines(loadYaml(with(old_text, new_text)));
  }

  static constexpr std::string_view kRacks =
      "name,rack,unit,mac,address,bmc,serial\n"
      "gpu001,r1,10,52:54:00:20:00:01,10.20.1.1,https://10.20.250.1,SN1\n"
      "gpu002,r1,12,52:54:00:20:00:02,10.20.1.2,https://10.20.250.2,\n";

  static constexpr std::string_view kSmall = R"(cluster: {name: small}
networks:
  provisioning:
    cidr: 10.20.0.0/16
    dhcp: {mode: authoritative, range: 10.20.240.1-10.20.247.254}
  storage: {cidr: 10.30.0.0/16, dhcp: {mode: none}}
credentials:
  bmc: {username: admin, password: {file: secrets/bmc}}
images:
  noble: {build: {suite: noble, packages: [linux-generic]}}
drivers:
  rdma: {packages: [rdma-core], verify: {module.rdma_rxe: loaded}}
firmware:
  base: {components: {BMC: {version: 2.1.0}, BIOS: {version: 1.4.2}}, order: [BMC]}
fabric:
  ib:
    rails: 2
    subnet_managers: [gpu001, controller]
    partitions:
      default: {pkey: 0x7fff, ipoib: true, limited: [ALL], full: [SELF]}
      batch: {pkey: 0x10, full: ["gpu[001-002]"]}
gates:
  burn-in: {level: quick, groups: [host, gpu]}
pools:
  batch: {slurm: {partition: gpu}}
profiles:
  gpu-node: {expect: {gpus: 8}, image: noble, drivers: [rdma], firmware: base, fabric: ib, gates: [burn-in], pool: batch}
nodes:
  - {names: "gpu[001-002]", profile: gpu-node, from: racks.csv}
  - {names: login1, profile: gpu-node, mac: "52:54:00:20:01:01", address: 10.20.2.1, bmc: "libvirt:login1", rack: r2, unit: 3}
)";

  std::filesystem::path folder_;
};

}  // namespace muster::inventory
