// SPDX-License-Identifier: Apache-2.0
// Which fabrics a profile is on, with which HCAs, and which fabrics of an inventory are managed.
#pragma once

#include "inventory/model/fwd.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::inventory {

bool isOn(const Profile& profile, std::string_view fabric);
/// The compute fabric first, then the others by name.
std::vector<std::string> fabricsOf(const Profile& profile);
/// HCAs on this fabric, rail after rail: those of `rails`, else mlx5_0 … as the fabric has rails.
/// Empty: the profile is not on it.
std::vector<std::string> hcasOn(const Profile& profile, const Fabric& fabric);
/// The fabric of a device; empty: of a profile on several fabrics it is on no rail.
std::string fabricOfHca(const Profile& profile, std::string_view hca);

/// The fabrics that are planned, checked and exported: those that nodes are on, or the only one.
/// Compute fabrics first, each kind by name.
std::vector<const Fabric*> managedFabrics(const Cluster& cluster);
/// Of those the ones with a subnet manager.
std::vector<const Fabric*> infiniBandFabrics(const Cluster& cluster);
/// The one that keeps the files and names that an only fabric has: the only managed one, or the
/// only managed compute fabric. Null: there is none such.
const Fabric* mainFabric(const Cluster& cluster);

}  // namespace muster::inventory
