// SPDX-License-Identifier: Apache-2.0
// A small declared rack for the lab's tests.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fwd.h"
#include "inventory/model/lab.h"
#include "inventory/model/networks.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"

#include <string>

namespace muster::lab {

inline inventory::Cluster labCluster(const std::string& name) {
  inventory::Cluster cluster;
  cluster.name = name;
  inventory::Network network;
  network.name = "provisioning";
  network.cidr = *Cidr::parse("10.77.0.0/16");
  network.controller = *Ipv4::parse("10.77.0.1");
  cluster.networks.push_back(network);
  inventory::Credential credential{"bmc", "admin", {}};
  credential.password.env = "MUSTER_LAB_TEST_PASSWORD";
  cluster.credentials["bmc"] = credential;
  inventory::Fabric fabric;
  fabric.name = "infiniband";
  fabric.nodes_per_su = 2;
  fabric.rails = 2;
  fabric.subnet_managers = {"controller"};
  cluster.fabrics["infiniband"] = fabric;
  cluster.pools["batch"] = {"batch", inventory::SlurmPool{"gpu", {}}};
  for (auto [profile, boot] : {std::pair{"uefi-node", inventory::BootMode::Uefi},
                               {"bios-node", inventory::BootMode::Bios}}) {
    inventory::Profile made;
    made.name = profile;
    made.boot = boot;
    made.pool = "batch";
    made.fabric = "infiniband";
    cluster.profiles[profile] = made;
  }
  for (int index = 1; index <= 2; ++index) {
    inventory::Node node;
    node.name = NodeName(fmt::format("gpu{:03}", index));
    node.profile = index == 1 ? "uefi-node" : "bios-node";
    node.mac = *Mac::parse(fmt::format("52:54:00:77:00:{:02x}", index));
    node.address = *Ipv4::parse(fmt::format("10.77.1.{}", index));
    node.bmc.url = fmt::format("https://10.77.250.{}", index);
    cluster.nodes.push_back(node);
  }
  cluster.lab->memory_mib = 512;
  cluster.lab->disk_gib = 1;
  cluster.lab->gpus = 2;
  return cluster;
}

}  // namespace muster::lab
