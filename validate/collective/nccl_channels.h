// SPDX-License-Identifier: Apache-2.0
// Which way NCCL's data went, by its own words (NCCL_DEBUG=INFO, subsystems INIT and NET): RCCL
// prints the same.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace muster::collective {

struct NcclChannels {
  std::size_t direct = 0;                      ///< by NVLink, PCIe or shared memory
  std::map<std::string, std::size_t> network;  ///< by the network's name: "IB", "Socket"
  std::size_t gdr = 0;                         ///< of those, straight to the GPU's memory
  std::set<int> devices;                       ///< of the network IB, by NCCL's numbers
  std::map<int, std::string> names;            ///< of its devices: 0 → "mlx5_0"; what it says

  std::size_t over(const std::string& name) const {
    const auto found = network.find(name);
    return found == network.end() ? 0 : found->second;
  }
};

/// Of any mixture of lines, also under the prefixes of a launcher. Each end of a channel has a line
/// of its own. What says nothing of channels is passed over; none at all: all counts are 0.
/// Source: NCCL's src/transport/net.cc, p2p.cc, shm.cc and net_ib.cc, from 2.4 ("Ring 00 : …") to
/// 2.31
NcclChannels readNcclChannels(std::string_view text);

}  // namespace muster::collective
