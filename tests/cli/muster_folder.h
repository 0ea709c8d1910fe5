// SPDX-License-Identifier: Apache-2.0
// A folder with an inventory, a state and a cache of its own, and the real program run in it.
// Nothing of it needs a network.
#pragma once

#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/cli/exit_codes.h"
#include "tests/paths.h"
#include "tests/run_async.h"

namespace muster::test {

class MusterFolder {
 public:
  MusterFolder() {
    write("bmc-password", "calvin\n");
    std::filesystem::permissions(folder_ / "bmc-password", std::filesystem::perms::owner_read |
                                                               std::filesystem::perms::owner_write);
    write("cluster.yaml", kInventory);
    // As on a controller that has built something: each command but the first finds what the first
    // has worked out about the agent.
    if (const auto made = io::makeDirs(folder_ / "cache/ramos"); !made)
      ADD_FAILURE() << made.error().str();
  }

  /// Whole or not at all: a muster may read it meanwhile.
  void write(const std::string& name, std::string_view text) {
    if (const auto written = io::writeFileAtomic(folder_ / name, text); !written)
      ADD_FAILURE() << written.error().str();
  }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  /// Whether a process has held the state folder's lock: it wrote its pid into the file.
  bool wasLocked() const {
    std::error_code not_there;
    const auto bytes = std::filesystem::file_size(folder_ / "state/lock", not_there);
    return !not_there && bytes > 0;
  }

  /// `words` as typed behind "muster".
  io::Command command(std::vector<std::string> words) const {
    io::Command command{(binFolder() / "muster").string(), std::move(words)};
    command.env = {{"MUSTER_INVENTORY", (folder_ / "cluster.yaml").string()},
                   {"MUSTER_STATE", (folder_ / "state").string()},
                   {"MUSTER_CACHE", (folder_ / "cache").string()},
                   {"MUSTER_LAB", (folder_ / "no-lab").string()},
                   {"MUSTER_STORE", ""},
                   {"HOME", folder_.path().string()}};
    command.working_dir = folder_.path();
    return command;
  }
  io::ProcessExit muster(std::vector<std::string> words) const {
    auto ended = io::runBlocking(command(std::move(words)));
    if (!ended) return {-1, "", ended.error().str()};
    return std::move(*ended);
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
  TempFolder folder_;
};

}  // namespace muster::test
