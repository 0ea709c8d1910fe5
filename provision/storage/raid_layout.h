// SPDX-License-Identifier: Apache-2.0
// Declared RAID volumes against what controllers show: which are there, which can be made of free
// drives, what would be lost otherwise. Pure.
#pragma once

#include "bmc/raid.h"
#include "inventory/model/hardware_raid.h"
#include "wire/messages.h"

#include <map>
#include <string>
#include <vector>

namespace muster::provision {

enum class VolumeState {
  Present,
  Free,        ///< it can be made, and nothing is lost
  Taken,       ///< its drives hold something: of other volumes, or that the machine's system saw
  Impossible,  ///< as things are; `why` says what would help
};

struct VolumeStatus {
  inventory::HardwareVolume declared;
  VolumeState state = VolumeState::Impossible;
  std::string why;                      ///< Taken, Impossible
  std::string controller, volumes_uri;  ///< Id of its controller, where volumes are made
  bool at_restart = false;              ///< the controller works at the machine's next start
  std::vector<std::string> drives;      ///< URIs: its own, or those that were chosen
  std::vector<std::string> in_the_way;  ///< URIs of volumes that must go first
  std::string wwn;                      ///< Present; "": not said
};

/// Redfish's word for a level.
std::string raidWord(wire::RaidLevel level);

/// What disks hold as the machine's own system sees them: serial → content. Only what somebody may
/// miss.
std::map<std::string, std::string> heldBySerial(const wire::Hardware& hardware);

/// In the order of declaration. A volume counts as declared if controller, level, number of drives
/// and their rule fit, whatever it is called.
std::vector<VolumeStatus> compareVolumes(const inventory::HardwareRaid& declared,
                                         const std::vector<bmc::RaidController>& controllers,
                                         const std::map<std::string, std::string>& held);

/// The facet's value: "system=raid1x2,data=raid6x8" as declared; what is not there as "none",
/// "taken" or "impossible".
std::string declaredRaid(const inventory::HardwareRaid& declared);
std::string observedRaid(const std::vector<VolumeStatus>& volumes);

}  // namespace muster::provision
