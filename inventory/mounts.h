// MountedSystem: a file system that nodes mount, or make of their own disks, and what it must be able to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::inventory {

enum class MountKind { Nfs, Lustre, Gpfs, Raid };

struct MountedSystem {
  std::string name;
  MountKind kind = MountKind::Nfs;
  std::string source;                 ///< "server:/export", "10.0.0.1@o2ib:/scratch", a GPFS file system; of RAID: a glob of NVMe models
  std::string at;                     ///< the mount point, absolute
  std::vector<std::string> options;   ///< of the mount
  std::vector<std::string> packages;  ///< beyond the kind's own row
  int raid_level = 0;                 ///< of RAID: 0, 1, 5, 6, 10
  std::optional<int> devices;         ///< of RAID: how many disks fit, exactly
  std::optional<int> read_mb_s, write_mb_s;  ///< at least, by direct I/O of one stream; MB are 10^6 bytes
};

}  // namespace muster::inventory
