// SPDX-License-Identifier: Apache-2.0
// A thousand of many declared nodes start within ten seconds, as BMCs power them on rack by rack:
// each gets its address from dnsmasq (as Netboot configures and supervises it), then its boot
// script and an index over HTTP, from its own address. Namespaces and a cable of the bench's own,
// so it needs root.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "bench/bench.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "tests/provision/clusters.h"

#include <filesystem>

namespace muster::provision {

/// Gone with its content when the bench ends.
struct Folder {
  std::filesystem::path path;
  Folder() {
    auto pattern = (std::filesystem::temp_directory_path() / "muster-bench-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) std::abort();
    path = pattern;
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

inline inventory::Cluster manyNodes(int count) {
  auto cluster = twoNodes();
  const auto pattern = cluster.nodes[0];
  cluster.nodes.clear();
  for (int i = 0; i < count; ++i) {
    auto node = pattern;
    node.name = NodeName(fmt::format("gpu{:05}", i));
    node.mac = *Mac::parse(fmt::format("52:54:00:00:{:02x}:{:02x}", i >> 8, i & 255));
    node.address = *Ipv4::parse(fmt::format("10.20.{}.{}", 64 + (i >> 8), i & 255));
    cluster.nodes.push_back(node);
  }
  return cluster;
}

/// `declared`: nodes in the inventory, of which the thousand are part.
void startTogether(bench::Report& report, int declared);

}  // namespace muster::provision
