// SPDX-License-Identifier: Apache-2.0
// A simulated fleet: thousands of nodes in one process, each with a Redfish BMC on a loopback
// address of its own.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "lab/fleet/sim_node.h"

namespace muster::lab::fleet {

inline constexpr int kMaxNodes = 60'000;
inline constexpr std::uint16_t kBmcPort = 8443;
inline constexpr const char* kUsername = "admin";

/// The n-th node, from 1: node00001, BMC at 127.64.0.1 and on, a MAC and a serial of its own.
inline NodeSpec specOf(int number) {
  const auto address = Ipv4((127u << 24) + (64u << 16) + static_cast<std::uint32_t>(number));
  return {fmt::format("node{:05}", number), fmt::format("SIM{:05}", number),
          fmt::format("52:54:01:{:02x}:{:02x}:{:02x}", number >> 16 & 255, number >> 8 & 255,
                      number & 255),
          address.str(), kBmcPort};
}

class Fleet {
 public:
  /// Nodes `first` … `first + nodes - 1`: a fleet larger than one process may have connections is
  /// shared by several.
  static Result<std::unique_ptr<Fleet>> make(World world, int nodes, int first = 1) {
    std::unique_ptr<Fleet> fleet(new Fleet(std::move(world)));
    for (int number = first; number < first + nodes; ++number) {
      TRY(node, SimNode::make(fleet->world_, specOf(number)));
      fleet->nodes_.push_back(std::move(node));
    }
    return fleet;
  }

  std::size_t size() const { return nodes_.size(); }

 private:
  explicit Fleet(World world) : world_(std::move(world)) {}
  const World world_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
};

}  // namespace muster::lab::fleet
