// SPDX-License-Identifier: Apache-2.0
// MountedSystem: a file system of others that nodes mount, and what it must be able to do. What
// becomes of their own disks is in storage.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::inventory {

enum class MountKind { Nfs, Lustre, Gpfs };

struct MountedSystem {
  std::string name;
  MountKind kind = MountKind::Nfs;
  std::string source;  ///< "server:/export", "10.0.0.1@o2ib:/scratch", a GPFS file system
  std::string mount;   ///< the mount point, absolute
  std::vector<std::string> options;   ///< of the mount
  std::vector<std::string> packages;  ///< beyond the kind's own row
  std::optional<int> read_mb_s,
      write_mb_s;  ///< at least, by direct I/O of one stream; MB are 10^6 bytes
};

}  // namespace muster::inventory
