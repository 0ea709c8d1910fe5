// SPDX-License-Identifier: Apache-2.0
// What the whole file reads into before nodes are expanded and rules between sections are checked.
#pragma once

#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/schema/spec.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace muster::inventory {

/// One entry of `nodes`: a single node, or a hostlist whose rows are in a CSV.
struct NodeGroup : Node {
  std::string names;
  std::string from;
  bool good = false;  ///< false: it counts for references only, its mistakes are reported already
  const Value* value = nullptr;  ///< the entry itself, for places; lives as long as the document
};

struct Declaration {
  Cluster cluster;
  std::vector<NodeGroup> groups;
};

/// A node with the places of what must be unique.
struct DeclaredNode {
  Node node;
  struct Place {
    int line = 0, column = 0;
  } mac, address, bmc, serial;
};

/// All nodes, with the names of those that could not be read, so that references to them are not
/// reported again.
struct DeclaredNodes {
  std::vector<DeclaredNode> nodes;
  std::map<std::string, SourceRef, std::less<>> names;
  std::vector<NodeFile> files;
  bool complete =
      true;  ///< false: a hostlist or a CSV could not be read, so more names may be meant
};

/// Says what is wrong with the file of a secret, if anything. (tables_secrets.cc)
void checkSecretFile(const std::filesystem::path& path, const Value& where, Reader& reader);

/// What the keys bmc_pin, bmc_ca and bmc_ssh_key say. (tables_bmc_trust.cc)
void readBmcPin(BmcTrust& trust, const Value& value, const Shape& shape, Reader& reader);
void readBmcCa(BmcTrust& trust, const Value& value, const Shape& shape, Reader& reader);
void readBmcSshKey(BmcTrust& trust, const Value& value, const Shape& shape, Reader& reader);

/// What the keys nics, addresses and ports of a node say. (tables_node_network.cc)
void readNodeNics(Node& node, const Value& value, const Shape& shape, Reader& reader);
void readNodeAddresses(Node& node, const Value& value, const Shape& shape, Reader& reader);
void readNodePorts(Node& node, const Value& value, const Shape& shape, Reader& reader);

inline constexpr std::size_t kMaxNodes = 200'000;

/// Expands hostlists and reads CSV files. (nodes.cc)
DeclaredNodes expandNodes(const std::vector<NodeGroup>& groups, const LoadOptions& options,
                          Reader& reader);
/// Rules between sections: references, networks, duplicates, partitions. (rules.cc)
void checkRules(Cluster& cluster, const DeclaredNodes& nodes, const Value& root, Reader& reader);
/// Rules of profiles on several fabrics, and of fabrics beside each other; makes the compute fabric
/// the first of each profile. (fabric_rules.cc)
void checkFabrics(Cluster& cluster, const DeclaredNodes& nodes, const Value& root, Reader& reader);
/// Rules of machines: mount points, rails, places in racks. (machine_rules.cc)
void checkMachines(const Cluster& cluster, const DeclaredNodes& nodes, const Value& root,
                   Reader& reader);
/// Rules of nodes' own networks. (node_network_rules.cc)
void checkNodeNetworks(const Cluster& cluster, const DeclaredNodes& nodes, const Value& root,
                       Reader& reader);
/// Rules of fabrics whose cables come from a discovery. (topology_rules.cc)
void checkTopologyFiles(const Cluster& cluster, const DeclaredNodes& nodes, const Value& root,
                        Reader& reader);

}  // namespace muster::inventory
