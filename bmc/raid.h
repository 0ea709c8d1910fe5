// SPDX-License-Identifier: Apache-2.0
// The role of a BMC, or of a site's own command, that joins a machine's drives into volumes: what a
// RAID controller has, and making and deleting its volumes. Levels are Redfish's words ("RAID1").
#pragma once

#include "base/async/task.h"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::bmc {

struct RaidDrive {
  std::string uri, name, serial, wwn;
  std::uint64_t size_bytes = 0;
  std::string unusable = {};  ///< why no volume can be made of it ("Absent"); "": one can
};

/// What the controller shows the machine as one disk.
struct RaidVolume {
  std::string uri, name;
  std::string level;        ///< "RAID1"; "": the controller does not say
  bool is_raw = false;      ///< a drive that is shown as it is
  bool is_settled = false;  ///< it is there, and nothing is under way that makes or deletes it
  std::uint64_t size_bytes = 0;
  std::vector<std::string> drives;  ///< their URIs, none of them a spare
  std::string wwn = {};             ///< by which its disk is found; "": not said
};

struct RaidController {
  std::string id, name;             ///< id: as a declaration names it
  std::string volumes_uri;          ///< where volumes are made
  std::vector<std::string> levels;  ///< that it makes; none: it does not say
  bool at_restart = false;          ///< orders wait for the machine's next start
  std::vector<RaidDrive> drives;
  std::vector<RaidVolume> volumes;
};

struct VolumeOrder {
  std::string volumes_uri;  ///< of the controller
  std::string name, level;
  std::vector<std::string> drives;  ///< their URIs
};

/// What became of an order.
struct RaidOrder {
  std::string task = {};       ///< its URI; "": it is done, or only the volumes show it
  bool needs_restart = false;  ///< it waits for the machine's next start
};

class Raid {
 public:
  virtual ~Raid() = default;
  virtual std::string address() const = 0;
  /// Those that make volumes. Errors: NotFound (it shows none); what the reads end with: what was
  /// not read as a whole is not answered
  virtual Async<std::vector<RaidController>> raidControllers();
  /// Not idempotent: journal it before. Errors: InvalidInput (refused, with the BMC's words),
  /// NotFound
  virtual Async<RaidOrder> createVolume(VolumeOrder order);
  /// With all that it holds. As createVolume().
  virtual Async<RaidOrder> deleteVolume(std::string uri);
};

}  // namespace muster::bmc
