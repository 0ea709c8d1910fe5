// SPDX-License-Identifier: Apache-2.0
// A small declared cluster for the tests of provision/.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fwd.h"
#include "inventory/model/images.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"

namespace muster::provision {

inline const NodeName kNode("gpu001");

/// gpu001 (UEFI) and gpu002 (BIOS) on 10.20.0.0/16.
inline inventory::Cluster twoNodes() {
  inventory::Cluster cluster;
  cluster.name = "test";
  inventory::Network network;
  network.name = "provisioning";
  network.cidr = *Cidr::parse("10.20.0.0/16");
  network.controller = *Ipv4::parse("10.20.0.1");
  network.dhcp_range = std::pair(*Ipv4::parse("10.20.240.1"), *Ipv4::parse("10.20.247.254"));
  cluster.networks.push_back(network);
  inventory::Image image;
  image.name = "bookworm";
  image.authorized_keys = {"ssh-ed25519 AAAA operator"};
  cluster.images["bookworm"] = image;
  inventory::Driver driver;
  driver.name = "rdma";
  driver.packages = {"rdma-core"};
  driver.repository = "/srv/repo";
  driver.modules = {"rdma_rxe"};
  driver.verify = {{"module.rdma_rxe", "loaded"}, {"package.rdma-core", "44.*"}};
  cluster.drivers["rdma"] = driver;
  for (const auto* name : {"uefi", "bios"}) {
    inventory::Profile profile;
    profile.name = name;
    profile.image = "bookworm";
    profile.drivers = {"rdma"};
    profile.boot =
        std::string(name) == "uefi" ? inventory::BootMode::Uefi : inventory::BootMode::Bios;
    profile.expect.gpus = 2;
    profile.expect.cpus_min = 1;
    profile.expect.memory_gib_min = 1;
    cluster.profiles[name] = profile;
  }
  for (int i = 1; i <= 2; ++i) {
    inventory::Node node;
    node.name = NodeName("gpu00" + std::to_string(i));
    node.profile = i == 1 ? "uefi" : "bios";
    node.mac = *Mac::parse("52:54:00:00:00:0" + std::to_string(i));
    node.address = *Ipv4::parse("10.20.1." + std::to_string(i));
    node.bmc.url = "https://10.20.250." + std::to_string(i);
    cluster.nodes.push_back(node);
  }
  return cluster;
}

}  // namespace muster::provision
