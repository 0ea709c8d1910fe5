// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/special_networks.h"

#include <fmt/format.h>

#include <array>

namespace muster::inventory {

namespace {

struct Row {
  const char* network;
  const char* what;
};
constexpr std::array kRows = {
    Row{"0.0.0.0/8", "this network"},     Row{"127.0.0.0/8", "loopback"},
    Row{"169.254.0.0/16", "link-local"},  Row{"224.0.0.0/4", "multicast"},
    Row{"240.0.0.0/4", "reserved"},       Row{"::/127", "unspecified and loopback"},
    Row{"::ffff:0:0/96", "IPv4 in IPv6"}, Row{"fe80::/10", "link-local"},
    Row{"ff00::/8", "multicast"},
};

}  // namespace

std::string specialNetworkIn(const IpNetwork& network) {
  for (const auto& row : kRows)
    if (const auto special = IpNetwork::parse(row.network);
        special && special->family() == network.family() && special->overlaps(network))
      return fmt::format("{} ({})", row.network, row.what);
  return {};
}

}  // namespace muster::inventory
