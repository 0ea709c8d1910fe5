// SPDX-License-Identifier: Apache-2.0
// Cluster: the declared truth, immutable once loaded. Everything downstream reads it, nothing
// writes it.
#pragma once

#include "base/held.h"
#include "base/ids.h"
#include "inventory/model/fwd.h"
#include "inventory/model/node.h"
#include "inventory/model/section.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::inventory {

/// Its sections have headers of their own: who looks into one includes that one too.
struct Cluster {
  std::string name;
  Parts<Network> networks;
  Section<Credential> credentials;
  Section<Image> images;
  Held<RamOsSpec> ram_os;
  Section<Driver> drivers;
  Section<FirmwareBaseline> firmware;
  Section<Fabric> fabrics;
  Section<Gate> gates;
  Section<Pool> pools;
  Section<Profile> profiles;
  Section<MountedSystem> file_systems;
  Held<DiscoveryPolicy> discovery;
  BmcTrustPolicy bmc_trust{};  ///< FirstContact
  Parts<NodeFile> node_files;
  std::vector<Node> nodes;  ///< ordered by name, naturally (gpu2 before gpu10)
  Held<LabSpec> lab;
  Held<CertificatePolicy> certificates;
  Held<MonitorPolicy> monitor;
  Section<NotificationReceiver> notifications;
  Held<Limits> limits;
  Parts<ApprovalRule> approvals;
  Section<Rack> racks;
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
