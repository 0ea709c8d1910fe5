// Images of whole disks: somebody else's partitions, boot loader and system, brought onto a disk of another size and made a node's.
//
// Order, and why an interruption is harmless: the first and the last MiB of the disk, where partition tables lie, are emptied before
// anything else is written, and the image's first chunk comes last. A disk that is half written holds nothing to whoever looks. As soon
// as the first chunk has brought a GPT its last partition is called "muster-writing", until the system is the node's. (An MBR has no names:
// there an interruption after the first chunk leaves what looks like somebody's disk.)
#pragma once

#include "agent/writer/chunk_writer.h"
#include "agent/writer/install.h"

#include <filesystem>
#include <functional>
#include <string>

namespace muster::agent {

/// What is on the disk already is looked at, whatever the job says: that is how an interrupted writing goes on.
/// `there`: called in the pool as soon as the first chunk, and so all of the image, is there. Errors: those of writeAndVerify and of `there`
Async<ChunkReport> writeWholeDisk(ChunkJob job, std::function<Result<void>()> there);

struct GrownDisk {
  std::filesystem::path root;   ///< the partition that holds the system
  std::string filesystem;       ///< "ext4", "xfs"
  bool grown = false;           ///< the last file system reaches to the end of the disk now
  int last = 0;                 ///< number of the last partition
  std::string label;            ///< its name in the image; with a GPT it is "muster-writing" until finishDisk
  bool gpt = false;
};
/// Pure. The partition of `sfdisk --json` that comes last on the disk, and its number from 1. Errors: InvalidInput
Result<int> lastPartition(std::string_view sfdisk_json);

/// The device node of a partition.
using PartitionNodes = std::function<std::filesystem::path(int number)>;

/// Moves the copy of the partition table to the end of this disk, and says in it that the disk holds half a system. What it answers is
/// for growDisk, which knows nothing else of the image's own name. Errors: InvalidInput (no partitions), Internal
Result<GrownDisk> markWriting(const std::filesystem::path& disk);

/// Lets the last partition and its file system fill it, when that is
/// ext4 or xfs; anything else stays as it is. Finds the system: the partition with an os-release.
/// Errors: InvalidInput (no system in it that could run muster's agent), Internal
Result<GrownDisk> growDisk(GrownDisk grown, const std::filesystem::path& disk, const std::function<void(const std::string&)>& say, const PartitionNodes& node_of);

/// The last step of all: from now on the disk holds a system. Errors: Internal
Result<void> finishDisk(const std::filesystem::path& disk, const GrownDisk& grown);

/// Name, keys and agent of the node, into the image's own system. Its boot loader, fstab and kernel are its own business.
Result<void> installIntoImage(const GrownDisk& disk, const WriteImageParams& params, const InstalledIdentity& identity, const std::string& provisioning_mac,
                              const std::filesystem::path& agent_folder, const std::function<void(const std::string&)>& say,
                              const std::function<Result<void>(const std::filesystem::path&)>& configure_more);

}  // namespace muster::agent
