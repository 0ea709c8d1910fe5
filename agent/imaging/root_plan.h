// SPDX-License-Identifier: Apache-2.0
// A system disk of several parts: md RAID over disks, LUKS on it, an LVM volume on that; each where
// the inventory says so.
//
// Every disk is divided alike: BIOS boot, EFI system partition (a boot loader on each), /boot (a
// mirror over all disks, whose superblock is at its end so that GRUB takes each copy for plain
// ext4), and its part of the root. /boot is never encrypted: firmware and GRUB must read it. Such a
// disk is always made anew: nothing of an earlier array is believed. What lies in it afterwards may
// still be right – arrays and volumes of one declaration begin at the same place –, and each chunk
// is compared by SHA-256: so a writing goes on where the power went. With encryption there is a new
// key, and nothing is right. docs/adr/0031
//
// Planning is pure, as in storage_plan.h, and refuses before the first byte.
#pragma once

#include "agent/imaging/storage_plan.h"

namespace muster::agent {

inline constexpr int kComposedBootPartition = 3, kComposedRootPartition = 4;
inline constexpr std::uint64_t kComposedBesideBytes =
    1300ull << 20;  ///< of each disk: the partitions before the root, tables, headers
inline constexpr std::string_view kRootSet = "root";  ///< of its steps, and the name of its key

struct RootPlan {
  std::vector<DiskInfo> disks;       ///< in the order of their serials; each gets a boot loader
  std::vector<StorageStep> steps;    ///< make it
  std::vector<StorageStep> closing;  ///< let go of it, so that the medium has all
  std::filesystem::path root, boot;  ///< the devices, once the steps are done
  std::string boot_uuid;             ///< of the file system of /boot
  std::string root_argument;         ///< of the kernel: "root=/dev/md/muster-root"
  std::vector<std::string> mdadm, crypttab;  ///< lines of the installed system
  wire::RootKey key = wire::RootKey::None;
};

/// Errors: NotFound, Conflict (another number of disks than declared), InvalidInput (declaration,
/// too small); each lists the disks
Result<RootPlan> planRoot(const std::vector<DiskInfo>& disks, std::string_view rule,
                          const wire::RootLayout& spec, std::uint64_t image_bytes,
                          const std::string& node);

/// Pure. Whether `sfdisk --json` tells of a disk that was divided so, whole or half written.
bool dividedForRoot(std::string_view sfdisk_json);

}  // namespace muster::agent
