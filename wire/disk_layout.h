// SPDX-License-Identifier: Apache-2.0
// What becomes of a node's disks: one type from the inventory, which declares it, over the task
// (write_image.h) to the agent, which carries it out (agent/imaging/storage_plan.h, root_plan.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

enum class RaidLevel { None, Raid0, Raid1, Raid5, Raid6, Raid10 };
/// As md calls it; nullopt: none.
constexpr std::optional<int> raidNumber(RaidLevel level) {
  constexpr int kNumbers[] = {-1, 0, 1, 5, 6, 10};
  return level == RaidLevel::None ? std::nullopt : std::optional(kNumbers[static_cast<int>(level)]);
}
/// The fewest disks that make it.
constexpr int leastDisks(RaidLevel level) {
  return level == RaidLevel::Raid5                                 ? 3
         : level == RaidLevel::Raid6 || level == RaidLevel::Raid10 ? 4
         : level == RaidLevel::None                                ? 1
                                                                   : 2;
}
enum class FileSystem { Xfs, Ext4 };
constexpr std::string_view toString(FileSystem filesystem) {
  return filesystem == FileSystem::Xfs ? "xfs" : "ext4";
}

struct StorageVolume {
  std::string name;
  int size_gib = 0;  ///< 0: what is left; only the last one
  FileSystem filesystem = FileSystem::Xfs;
  std::string mount;  ///< "/scratch"

  friend bool operator==(const StorageVolume&, const StorageVolume&) = default;
};

/// Disks that are one: a single one, or an array.
struct StorageSet {
  std::string name;
  std::string disks;  ///< a disk rule (disk_rule.h) that fits exactly `count` disks
  int count = 1;
  RaidLevel raid = RaidLevel::None;
  bool encrypt = false;  ///< LUKS; the key is made on the node and lies on its system disk
  int sector_bytes = 0;  ///< NVMe namespaces are given this format before the set is made, 512 or
                         ///< 4096; 0: they stay as they are
  std::vector<StorageVolume>
      volumes;  ///< one without a size fills the set; several are LVM volumes

  bool lvm() const { return volumes.size() > 1 || (!volumes.empty() && volumes[0].size_gib > 0); }
  friend bool operator==(const StorageSet&, const StorageSet&) = default;
};

enum class RootKey { None, Tpm, File };

/// The system disk, where it is more than a partition: disks joined by md, encrypted by LUKS, a
/// volume of LVM – in this order, each where it is declared. /boot is beside it, readable to the
/// boot loader.
struct RootLayout {
  int count = 1;                     ///< disks that the profile's rule must fit
  RaidLevel raid = RaidLevel::None;  ///< Raid0 or Raid1
  RootKey encrypt =
      RootKey::None;  ///< Tpm: the key opens only on this machine, in its present Secure Boot state
  int lvm_gib = 0;    ///< size of the volume; the rest of its group stays free. 0: no LVM

  friend bool operator==(const RootLayout&, const RootLayout&) = default;
};

}  // namespace muster::wire
