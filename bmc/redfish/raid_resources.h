// SPDX-License-Identifier: Apache-2.0
// What Storage, Drive and Volume resources say of RAID. Pure.
// Source: DSP0268 Storage, StorageController, Drive, Volume, CollectionCapabilities; captures
#pragma once

#include "bmc/raid.h"
#include "bmc/redfish/json_view.h"

#include <string>
#include <vector>

namespace muster::bmc {

/// `uri` as all links to it are compared: a path without a '/' at its end.
std::string plainUri(std::string uri);

RaidDrive raidDriveOf(const Json& drive, std::string uri);
RaidVolume raidVolumeOf(const Json& volume, std::string uri);

/// The levels that a controller makes ("RAID1"), from the capabilities of its volumes (null: it
/// shows none), else from the controllers of the Storage. None: none of them says.
std::vector<std::string> raidLevelsOf(const Json& capabilities,
                                      const std::vector<Json>& controllers);
/// Where the capabilities of a collection of volumes are; "": it shows none.
std::string volumeCapabilitiesOf(const Json& collection);

/// When an order to this collection can be carried out.
struct ApplyTime {
  std::string asked;     ///< as @Redfish.OperationApplyTime; "": the collection takes none
  bool restart = false;  ///< only the machine's next start carries it out
};
ApplyTime applyTimeOf(const Json& collection);

/// The body that makes a volume. Source: DSP0266 (create), DSP0268 Volume
Json volumeBody(const VolumeOrder& order, const Json& capabilities, const ApplyTime& when);

/// Drives that do not show which volume they are of belong to one all the same: `unusable` says so.
void markHiddenUse(RaidController& controller, const std::vector<Json>& drives);

}  // namespace muster::bmc
