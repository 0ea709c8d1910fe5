// SPDX-License-Identifier: Apache-2.0
// A network with one of everything, for the tests of its files.
#pragma once

#include "wire/node_network.h"

namespace muster::agent {

/// The NIC that boots; two NICs in a bond by LACP; a VLAN of both families on the bond; an
/// active-backup bond.
inline wire::NodeNetwork sampleNodeNetwork() {
  using wire::LinkKind;
  wire::NodeNetwork network;
  network.provisioning = {"52:54:00:20:00:01",
                          "boot",
                          "10.20.1.1/16",
                          {{"0.0.0.0/0", "10.20.0.254", 0}},
                          {"10.20.0.1"}};
  const auto ethernet = [&](std::string name, std::string mac, std::string pci) {
    wire::NetworkLink link;
    link.name = std::move(name);
    link.mac = std::move(mac);
    link.pci = std::move(pci);
    network.links.push_back(std::move(link));
  };
  ethernet("boot", "52:54:00:20:00:01", {});
  network.links[0].addresses = {"10.20.1.1/16", "fd00:20::1:1/64"};
  network.links[0].routes = {{"0.0.0.0/0", "10.20.0.254", 0}, {"::/0", "fd00:20::fffe", 0}};
  network.links[0].dns = {"10.20.0.53", "10.20.0.54"};
  ethernet("data0", {}, "0000:18:00.0");
  ethernet("data1", {}, "0000:3b:00.0");
  ethernet("mgmt0", "52:54:00:20:00:03", {});
  ethernet("mgmt1", "52:54:00:20:00:04", {});
  wire::NetworkLink bond;
  bond.name = "bond0";
  bond.kind = LinkKind::Bond;
  bond.members = {"data0", "data1"};
  bond.bond = {wire::BondMode::Lacp, wire::LacpRate::Fast, wire::BondHash::Layer34, 100, 1, {}};
  bond.mtu = 9000;
  network.links.push_back(bond);
  wire::NetworkLink backup;
  backup.name = "bond1";
  backup.kind = LinkKind::Bond;
  backup.mac = "52:54:00:20:00:03";
  backup.members = {"mgmt0", "mgmt1"};
  backup.bond.primary = "mgmt0";
  backup.addresses = {"10.50.0.7/24"};
  network.links.push_back(backup);
  wire::NetworkLink vlan;
  vlan.name = "stor";
  vlan.kind = LinkKind::Vlan;
  vlan.parent = "bond0";
  vlan.vlan_id = 30;
  vlan.mtu = 9000;
  vlan.addresses = {"10.30.1.1/16", "fd00:30::101/64"};
  vlan.routes = {{"10.40.0.0/16", "10.30.0.254", 50}, {"fd00:40::/48", "fd00:30::fffe", 0}};
  vlan.dns = {"10.30.0.53"};
  network.links.push_back(vlan);
  network.search = {"hall-2.example.com", "example.com"};
  return network;
}

}  // namespace muster::agent
