// SPDX-License-Identifier: Apache-2.0
// Images of whole disks: somebody else's partitions, boot loader and system, brought onto a disk of
// another size and made a node's.
//
// Order, and why an interruption is harmless: the first and the last MiB of the disk, where
// partition tables lie, are emptied before anything else is written, and the image's beginning
// comes last. A disk that is half written holds nothing to whoever looks. The beginning is put
// together beside the disk, and its table marked there: the last partition of a GPT is called
// "muster-writing", a disk with an MBR, which has no names, is the disk number kWritingDiskId. So
// there is no moment at which the disk has a table without the mark. It goes when the system is the
// node's.
#pragma once

#include "agent/imaging/chunk_writer.h"
#include "agent/imaging/install.h"

#include <filesystem>
#include <functional>
#include <string>

namespace muster::agent {

/// A partition table counts in sectors: on a disk with others it means other places. Pure. Errors:
/// InvalidInput with what to do
Result<void> checkSectorsOf(const wire::PackIndex& index, const DiskInfo& disk);

/// Where the image's beginning is put together, and what marks its table.
struct HeadMark {
  std::filesystem::path twin;  ///< a file that becomes as large as the disk, with holes. Empty: the
                               ///< mark comes when the beginning is on the disk
  std::function<Result<void>()> mark;  ///< called in the pool: for the twin, or else for the disk
};

/// What is on the disk already is looked at, whatever the job says: that is how an interrupted
/// writing goes on. Errors: those of writeAndVerify and of the mark, Internal
Async<ChunkReport> writeWholeDisk(ChunkJob job, HeadMark head);

struct GrownDisk {
  std::filesystem::path root;  ///< the partition that holds the system
  std::string filesystem;      ///< "ext4", "xfs"
  bool grown = false;          ///< the last file system reaches to the end of the disk now
  int last = 0;                ///< number of the last partition
  bool gpt = false;
  std::string label;          ///< its name in the image, with a GPT
  std::uint32_t disk_id = 0;  ///< of the image, with an MBR
};
/// Pure. The partition of `sfdisk --json` that comes last on the disk, and its number from 1.
/// Errors: InvalidInput
Result<int> lastPartition(std::string_view sfdisk_json);

/// The device node of a partition.
using PartitionNodes = std::function<std::filesystem::path(int number)>;

/// Says in the partition table that the disk holds half a system, and moves a GPT's copy to the
/// end. What it answers is for growDisk and finishDisk, which know nothing else of the image's own
/// name. Errors: InvalidInput (no partition table), Internal
Result<GrownDisk> markWriting(const std::filesystem::path& disk);

/// Lets the last partition and its file system fill it, when that is
/// ext4 or xfs; anything else stays as it is. Finds the system: the partition with an os-release.
/// Errors: InvalidInput (no system in it that could run muster's agent), Internal
Result<GrownDisk> growDisk(GrownDisk grown, const std::filesystem::path& disk,
                           const std::function<void(const std::string&)>& notify,
                           const PartitionNodes& node_of);

/// The last step of all: from now on the disk holds a system. Errors: Internal
Result<void> finishDisk(const std::filesystem::path& disk, const GrownDisk& grown);

/// Name, keys and agent of the node, into the image's own system. Its boot loader, fstab and kernel
/// are its own business.
Result<void> installIntoImage(
    const GrownDisk& disk, const wire::WriteImageParams& params, const InstalledIdentity& identity,
    const std::string& provisioning_mac, const std::filesystem::path& agent_folder,
    const std::function<void(const std::string&)>& notify,
    const std::function<Result<void>(const std::filesystem::path&)>& configure_more);

}  // namespace muster::agent
