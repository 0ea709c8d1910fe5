// SPDX-License-Identifier: Apache-2.0
// What the twin of a cluster is made of: names, addresses, folders and domains. Pure: cluster →
// Rack.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"
#include "lab/domain_xml.h"

namespace muster::lab {

struct RackNode {
  DomainSpec domain;
  Ipv4 address;
  Ipv4 bmc_address;
  std::uint16_t bmc_port = 443;
  std::string bmc_url;
};

/// Where things are inside the run folder.
struct Paths {
  std::filesystem::path root;
  std::filesystem::path disks;  ///< elsewhere when the run folder is in memory

  std::filesystem::path record() const {
    return root / "made.json";
  }  ///< written before anything is made
  std::filesystem::path handle() const { return root / "lab.json"; }
  std::filesystem::path libvirt() const { return root / "libvirt"; }
  std::filesystem::path libvirtSocket() const { return libvirt() / "run" / "libvirt-sock"; }
  std::filesystem::path bmc() const { return root / "bmc"; }
  std::filesystem::path console() const { return root / "console"; }
  std::filesystem::path fabric() const { return root / "fabric"; }  ///< the main one
  std::filesystem::path fabric(const std::string& name) const { return root / "fabrics" / name; }
  std::filesystem::path munge() const { return root / "munge"; }
  std::filesystem::path slurm() const { return root / "slurm"; }
  std::filesystem::path pid(const std::string& daemon) const { return root / "pids" / daemon; }
  std::filesystem::path log(const std::string& daemon) const {
    return root / "log" / (daemon + ".log");
  }
};

struct Rack {
  std::string name;
  std::string id;  ///< given by up
  std::string netns;
  std::string bridge = "rack0";
  Cidr network;
  Ipv4 controller;
  Paths paths;
  std::vector<RackNode> nodes;
  std::string libvirt_uri;
};

/// Errors: InvalidInput (a name or path that cannot be used, a BMC address outside
/// https://IPV4[:PORT])
Result<Rack> planRack(const inventory::Cluster& cluster, Paths paths, Accel accel);

/// The same for the same cluster and node, for ever.
std::string serialOf(std::string_view cluster, std::string_view node);
std::string uuidOf(std::string_view cluster, std::string_view node);
std::string diskSerialOf(std::string_view node);

/// slurm.conf. With `controller_side`, also what only slurmctld and the tools beside it need.
std::string slurmConf(const inventory::Cluster& cluster, const Rack& rack, bool controller_side);

}  // namespace muster::lab
