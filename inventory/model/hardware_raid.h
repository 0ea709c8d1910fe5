// SPDX-License-Identifier: Apache-2.0
// The volumes that a machine's RAID controllers must show before it is imaged.
#pragma once

#include "inventory/model/section.h"
#include "wire/disk_layout.h"

#include <string>
#include <vector>

namespace muster::inventory {

struct HardwareVolume {
  std::string name;
  std::string controller;  ///< a glob of its Id or name; empty: the only one that makes volumes
  wire::RaidLevel level = wire::RaidLevel::Raid1;
  std::string disks;  ///< a rule (wire/disk_rule.h) that fits exactly `count` of its drives
  int count = 2;

  friend bool operator==(const HardwareVolume&, const HardwareVolume&) = default;
};

/// Who makes them where no Redfish does. {node}, {rack} and {unit} are the node's; the others as in
/// bmc/raid_tool.h.
struct RaidTool {
  std::vector<std::string> show, create, remove;  ///< program and arguments, no shell
};

struct HardwareRaid {
  Parts<HardwareVolume> volumes;
  HeldOptional<RaidTool> tool;  ///< nullopt: its BMC
};

/// Of a drive count that a level cannot have; "": it can.
std::string whyNoRaid(wire::RaidLevel level, int drives);

}  // namespace muster::inventory
