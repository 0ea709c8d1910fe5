// The disks of this machine: which one is meant, what one holds, and how muster divides it.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

struct DiskInfo {
  std::filesystem::path path;   ///< "/dev/vda"; only valid for this boot
  std::string serial, wwn;
  std::uint64_t size_bytes = 0;
  bool read_only = false, removable = false;

  std::string str() const;      ///< "/dev/vda (serial X, 4.0 GiB)"
};

/// Whole disks, from sysfs. `root` is "/" but for tests.
std::vector<DiskInfo> listDisks(const std::filesystem::path& root);

/// The one disk that a rule (disk_rule.h) means; an empty one means the only disk.
/// Errors: NotFound, Conflict (several fit), InvalidInput (rule); each lists what there is
Result<DiskInfo> chooseDisk(const std::vector<DiskInfo>& disks, std::string_view rule);

/// muster's layout: BIOS boot (1 MiB), EFI system partition (128 MiB), root (the rest).
struct Layout {
  std::filesystem::path esp, root;     ///< device nodes
  std::string esp_partuuid, root_partuuid;
  int root_partition = 3;
  bool kept = false;                   ///< the disk already was divided like this, so its root may hold right chunks
};
inline constexpr std::string_view kWritingLabel = "muster-writing";  ///< of a partition while its disk holds half a system
inline constexpr int kEspPartition = 2, kRootPartition = 3;

/// The device node of a partition: /dev/vda3, /dev/nvme0n1p3.
std::filesystem::path partitionNode(const std::filesystem::path& disk, int number);

/// Divides the disk, its root labelled "muster-writing". A disk that is already divided like this keeps its partitions.
/// Errors: Internal (sfdisk), Conflict (in use)
Result<Layout> divideDisk(const std::filesystem::path& disk);
/// The last step of all: from now on the disk holds a system.
Result<void> markComplete(const std::filesystem::path& disk);

/// What `sfdisk --json` says, if it is muster's layout; `complete` tells a whole system from a half-written one.
struct FoundLayout {
  std::string esp_partuuid, root_partuuid;
  bool complete = false;
};
std::optional<FoundLayout> readLayout(std::string_view sfdisk_json);

}  // namespace muster::agent
