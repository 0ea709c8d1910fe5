// SPDX-License-Identifier: Apache-2.0
// The small inventory with a network of its own for its nodes: two NICs bonded, a VLAN on the bond,
// addresses by pools of both families.
#pragma once

#include "tests/inventory/inventory_fixture.h"

namespace muster::inventory {

class NodeNetworkFixture : public InventoryTest {
 protected:
  static constexpr std::string_view kStorage =
      "  storage: {cidr: 10.30.0.0/16, dhcp: {mode: none}}\n";
  static constexpr std::string_view kStorageWithPool =
      "  storage: {cidr: 10.30.0.0/16, cidr6: \"fd00:30::/64\", mtu: 9000, dns: [10.30.0.53], "
      "gateway: 10.30.255.254, gateway6: \"fd00:30::fffe\", "
      "pool: {base: 10.30.0.0, base6: \"fd00:30::\"}, dhcp: {mode: none}}\n";
  static constexpr std::string_view kProfile = "{expect: {gpus: 8}, image: noble";

  static constexpr std::string_view kNetwork = R"({
      ethernets: {boot: {match: provisioning}, data0: {match: "pci:0000:18:00.0"}, data1: {match: "pci:0000:3b:00.0"}},
      bonds: {bond0: {interfaces: [data0, data1], mtu: 9000}},
      vlans: {stor: {id: 30, link: bond0, addresses: [storage]}}})";

  /// The inventory with `network` for its profile.
  static std::string yaml(std::string_view network = kNetwork,
                          std::string_view storage = kStorageWithPool) {
    auto text = with(kStorage, storage);
    text = with("    dhcp: {mode: authoritative",
                "    gateway: 10.20.0.254\n    dhcp: {mode: authoritative", text);
    return with(kProfile, "{network: " + std::string(network) + ", expect: {gpus: 8}, image: noble",
                text);
  }
  /// `network` with one piece of text replaced.
  static std::string changed(std::string_view old_text, std::string_view new_text) {
    return yaml(with(old_text, new_text, std::string(kNetwork)));
  }
};

}  // namespace muster::inventory
