// SPDX-License-Identifier: Apache-2.0
// A folder with an inventory, a state and a cache of its own, for use cases that need no process.
#pragma once

#include "app/site/options.h"
#include "base/io/files.h"
#include "lifecycle/store/store.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

namespace muster::app {

class SiteFolder {
 public:
  SiteFolder() {
    write("bmc-password", "calvin\n");
    std::filesystem::permissions(folder_ / "bmc-password", std::filesystem::perms::owner_read |
                                                               std::filesystem::perms::owner_write);
    write("cluster.yaml", kInventory);
  }

  void write(const std::string& name, std::string_view text) {
    if (const auto written = io::writeFileAtomic(folder_ / name, text); !written)
      ADD_FAILURE() << written.error().str();
  }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  Options options() const {
    Options out;
    out.inventory = folder_ / "cluster.yaml";
    out.state = folder_ / "state";
    out.cache = folder_ / "cache";
    out.lab = folder_ / "no-lab";
    out.command_line = "test";
    return out;
  }

  /// The store, made when it is missing.
  std::unique_ptr<lifecycle::Store> store() const {
    if (const auto made = io::makeDirs(options().state, 0700); !made)
      ADD_FAILURE() << made.error().str();
    auto opened = lifecycle::openStore(options().storeUrl());
    EXPECT_TRUE(opened) << opened.error().str();
    return std::move(*opened);
  }

  static constexpr std::string_view kInventory = R"(cluster: {name: small}
networks:
  provisioning: {cidr: 10.20.0.0/16, dhcp: {mode: authoritative, range: 10.20.240.1-10.20.247.254}}
credentials:
  bmc: {username: admin, password: {file: bmc-password}}
images:
  bookworm: {build: {suite: bookworm, packages: [linux-image-amd64]}}
profiles:
  gpu-node: {expect: {gpus: 8}, image: bookworm}
nodes:
  - {names: gpu001, profile: gpu-node, mac: "52:54:00:20:00:01", address: 10.20.1.1, bmc: "https://10.20.250.1", rack: r1, unit: 10}
  - {names: gpu002, profile: gpu-node, mac: "52:54:00:20:00:02", address: 10.20.1.2, bmc: "https://10.20.250.2", rack: r1, unit: 12}
)";

 private:
  test::TempFolder folder_;
};

}  // namespace muster::app
