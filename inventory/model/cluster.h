// SPDX-License-Identifier: Apache-2.0
// Cluster: the declared truth, immutable once loaded. Everything downstream reads it, nothing
// writes it.
#pragma once

#include "base/ids.h"
#include "inventory/model/certificates.h"
#include "inventory/model/credentials.h"
#include "inventory/model/discovery.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/firmware.h"
#include "inventory/model/gates.h"
#include "inventory/model/images.h"
#include "inventory/model/lab.h"
#include "inventory/model/limits.h"
#include "inventory/model/monitor.h"
#include "inventory/model/mounts.h"
#include "inventory/model/networks.h"
#include "inventory/model/node.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "inventory/model/racks.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace muster::inventory {

struct Cluster {
  std::string name;
  std::vector<Network> networks;
  std::map<std::string, Credential> credentials;
  std::map<std::string, Image> images;
  std::map<std::string, Driver> drivers;
  std::map<std::string, FirmwareBaseline> firmware;
  std::map<std::string, Fabric> fabrics;
  std::map<std::string, Gate> gates;
  std::map<std::string, Pool> pools;
  std::map<std::string, Profile> profiles;
  std::map<std::string, MountedSystem> file_systems;
  DiscoveryPolicy discovery;
  BmcTrustPolicy bmc_trust = BmcTrustPolicy::FirstContact;
  std::vector<NodeFile> node_files;
  std::vector<Node> nodes;  ///< ordered by name, naturally (gpu2 before gpu10)
  LabSpec lab;
  CertificatePolicy certificates;
  MonitorPolicy monitor;
  Limits limits;
  std::map<std::string, Rack> racks;
  std::filesystem::path
      folder;  ///< where relative paths of the file start; paths in here are absolute already
  std::string digest;  ///< SHA-256 over the canonical content, hex; independent of comments and
                       ///< order of keys

  const Node* findNode(const NodeName& name) const;
  const Profile& profileOf(
      const Node& node) const;  ///< references are checked at load, so this cannot fail
  bool isLive(
      const Profile& profile) const;  ///< its image runs in memory: no disk of the node is written
  const Network& provisioning() const;  ///< the network named "provisioning"
};

}  // namespace muster::inventory
