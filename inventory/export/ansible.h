// SPDX-License-Identifier: Apache-2.0
// The nodes as a dynamic inventory of Ansible. Source: "Developing dynamic inventory" of Ansible's
// documentation (script plugin, --list with _meta).
#pragma once

#include "inventory/model/cluster.h"

#include <string>

namespace muster::inventory {

/// Each node is in the groups profile_P, pool_P and rack_R; its address is `ansible_host`, and what
/// muster knows of it `muster_profile`, `muster_pool`, `muster_rack`, `muster_unit`, `muster_mac`,
/// `muster_bmc` (without an account). What Ansible takes in no group's name becomes '_'; of two
/// names that would then be one, both get a part of their hash.
std::string ansibleInventory(const Cluster& cluster);

}  // namespace muster::inventory
