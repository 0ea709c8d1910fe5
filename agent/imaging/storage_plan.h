// SPDX-License-Identifier: Apache-2.0
// Disks beside the system disk, as the inventory wants them: GPT, md RAID, LUKS, LVM, file systems.
//
// Planning is pure: disks + declaration → ordered steps and the lines that the installed system
// needs to find it all. Everything that can be refused is refused here, before the first step, and
// before the system disk is touched: a rule that fits other than the declared number of disks, one
// disk in two sets, volumes that do not fit, sectors that a disk cannot be given or only with
// another namespace.
//
// Identities (partitions, arrays, file systems) follow from node, declaration and serials, so the
// same plan comes out each time. A set that is finished carries the label "muster-data"; one that
// was being made when the power went carries "muster-making" and counts as empty. A finished set of
// the same identity is kept with its data when a node is written anew, unless it is encrypted (its
// key went with the system disk) or its disks have other sectors than declared.
//
// What is no finished set of this identity – a member was replaced, the declaration changed,
// somebody's own data – is planned anew, but `guarded`: it is emptied only with a permission of its
// own (wipe_policy.h, docs/adr/0111).
#pragma once

#include "agent/imaging/disks.h"

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace muster::agent {

struct VolumeSpec {
  std::string name;
  std::uint64_t size_gib = 0;      ///< 0: what is left; only the last one
  std::string filesystem = "xfs";  ///< or ext4
  std::string mount;               ///< "/scratch"
};

struct DiskSetSpec {
  std::string name;
  std::string disks;  ///< disk_rule.h
  int count = 1;
  int raid = -1;         ///< 0, 1, 5, 6, 10; -1: none, and then one disk
  bool encrypt = false;  ///< LUKS, its key on the system disk
  int sector_bytes =
      0;  ///< NVMe namespaces are formatted to it, 512 or 4096; 0: they stay as they are
  std::vector<VolumeSpec> volumes;  ///< one without a size fills the set; several are LVM volumes
  bool lvm() const { return volumes.size() > 1 || (!volumes.empty() && volumes[0].size_gib > 0); }
};

/// One tool, run in the RAM OS.
struct StorageStep {
  std::string what;  ///< for people: "array scratch over 8 disks"
  std::string program;
  std::vector<std::string> args;
  std::string stdin_text;
  bool may_fail = false;   ///< lets go of what udev may have assembled; there may be nothing
  bool needs_key = false;  ///< the set's key is its standard input
  std::string set;
  friend bool operator==(const StorageStep&, const StorageStep&) = default;
};

/// After an array was made: what lay in one at the same place shows in it again, and udev may have
/// put a volume group of it to use.
void addForgetContent(std::vector<StorageStep>& steps, const std::string& set);

struct StoragePlan {
  struct DataDisk {
    std::string set;
    DiskInfo disk;
  };
  std::vector<DiskInfo> wiped;  ///< disks that lose what they hold
  std::vector<DataDisk>
      guarded;  ///< those of them whose content a permission for the system disk does not cover
  std::vector<StorageStep> steps;
  std::vector<std::string> kept;                    ///< names of sets that are as declared already
  std::vector<std::string> fstab, crypttab, mdadm;  ///< lines of the installed system
  std::vector<std::string> keys;                    ///< sets that need a key in /etc/muster/keys
};

/// A UUID that follows from its words (as RFC 4122 version 5 does, with SHA-256), and the same as
/// md writes it.
std::string storageUuid(const std::string& words);
std::string mdUuid(std::string uuid);

/// PARTUUIDs of muster's partitions on data disks, small letters.
struct FoundStorage {
  std::set<std::string> finished;  ///< labelled "muster-data"
  std::set<std::string> making;    ///< labelled "muster-making"
};

/// Errors: NotFound, Conflict (another number of disks than declared, a disk in two sets or the
/// system's), InvalidInput (a declaration
///         that cannot be, volumes that do not fit); each names the set and lists the disks
Result<StoragePlan> planStorage(const std::vector<DiskInfo>& disks,
                                const std::vector<DiskInfo>& system_disks,
                                const std::vector<DiskSetSpec>& sets, const std::string& node,
                                const FoundStorage& found);

using StorageTool = std::function<Result<void>(const StorageStep& step, const std::string& key)>;
/// Runs the steps in order. `keys`: by the name of the set. Errors: the step's, with what it was
/// for
Result<void> runSteps(const std::vector<StorageStep>& steps,
                      const std::map<std::string, std::string>& keys, const StorageTool& tool,
                      const std::function<void(const std::string&)>& notify);
/// The tools of this machine.
Result<void> runStorageTool(const StorageStep& step, const std::string& key);
/// Whether something (an array, a volume) is made of the disk or a partition of it now. `root` is
/// "/" but for tests.
bool isHeld(const std::filesystem::path& root, const DiskInfo& disk);
/// Stops arrays and volumes that udev assembled of what an earlier system left, when they hold the
/// disk; nothing of muster's RAM OS uses any.
void releaseDisk(const DiskInfo& disk);
/// Looks at the partition tables. Errors: none; a disk that cannot be read has nothing of muster's
FoundStorage findStorage(const std::vector<DiskInfo>& disks);

}  // namespace muster::agent
