// What becomes of a node's disks beside the system disk. Made when the node is imaged (agent/writer/storage_plan.h).
#pragma once

#include <string>
#include <vector>

namespace muster::inventory {

enum class RaidLevel { None, Raid0, Raid1 };
enum class FileSystem { Xfs, Ext4 };

struct StorageVolume {
  std::string name;
  int size_gib = 0;  ///< 0: what is left
  FileSystem filesystem = FileSystem::Xfs;
  std::string mount;
};

/// Disks that are one: a single one, or an array.
struct StorageSet {
  std::string name;
  std::string disks;  ///< a disk rule that fits exactly `count` disks
  int count = 1;
  RaidLevel raid = RaidLevel::None;
  bool encrypt = false;  ///< LUKS; the key is made on the node and lies on its system disk
  std::vector<StorageVolume> volumes;
};

}  // namespace muster::inventory
