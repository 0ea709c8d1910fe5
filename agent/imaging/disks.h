// SPDX-License-Identifier: Apache-2.0
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
  std::filesystem::path path;  ///< "/dev/vda"; only valid for this boot
  std::string serial, wwn;
  std::uint64_t size_bytes = 0;
  int sector_bytes = 0;  ///< logical ones; 0: not known
  bool read_only = false, removable = false;

  std::string str() const;  ///< "/dev/vda (serial X, 4.0 GiB)"
};

/// Whole disks, from sysfs. `root` is "/" but for tests.
std::vector<DiskInfo> listDisks(const std::filesystem::path& root);

/// The one disk that a rule (disk_rule.h) means; an empty one means the only disk.
/// Errors: NotFound, Conflict (several fit), InvalidInput (rule); each lists what there is
Result<DiskInfo> chooseDisk(const std::vector<DiskInfo>& disks, std::string_view rule);

/// muster's layout: BIOS boot (1 MiB), EFI system partition (128 MiB), root (the rest). A root of
/// several parts (root_plan.h) has a file system of its own for /boot, and all but the root on
/// every disk.
struct Layout {
  struct BootDisk {
    std::filesystem::path disk, esp;
  };
  std::filesystem::path esp, root;  ///< device nodes
  std::string esp_partuuid, root_partuuid;
  int kernel_partition = 3;  ///< where GRUB finds the kernel: the root, or /boot
  bool kept = false;  ///< the disk already was divided like this, so its root may hold right chunks
  std::filesystem::path boot = {};             ///< device of /boot; empty: it is in the root
  std::string root_line = {}, boot_line = {};  ///< of fstab; empty: the root by its PARTUUID
  std::string root_argument = {};              ///< of the kernel; empty: by its PARTUUID
  std::vector<BootDisk> copies = {};           ///< other disks that get the boot loader too
};
/// The number of such a disk where its table is an MBR, which has no names: "must" as it lies on
/// the disk.
inline constexpr std::uint32_t kWritingDiskId = 0x7473756d;
inline constexpr std::string_view kWritingLabel =
    "muster-writing";  ///< of a partition while its disk holds half a system
inline constexpr int kEspPartition = 2, kRootPartition = 3;

/// The device node of a partition: /dev/vda3, /dev/nvme0n1p3.
std::filesystem::path partitionNode(const std::filesystem::path& disk, int number);

/// PARTUUID, small letters. Errors: Internal
Result<std::string> partitionUuid(const std::filesystem::path& disk, int number);

/// Divides the disk, its root labelled "muster-writing". A disk that is already divided like this
/// keeps its partitions. Errors: Internal (sfdisk), Conflict (in use)
Result<Layout> divideDisk(const std::filesystem::path& disk);
/// The last step of all: from now on the disk holds a system.
Result<void> markComplete(const std::filesystem::path& disk, int root_partition);

/// What `sfdisk --json` says, if it is muster's layout; `complete` tells a whole system from a
/// half-written one.
struct FoundLayout {
  std::string esp_partuuid, root_partuuid;
  bool complete = false;
};
std::optional<FoundLayout> readLayout(std::string_view sfdisk_json);

}  // namespace muster::agent
