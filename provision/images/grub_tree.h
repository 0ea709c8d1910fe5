// SPDX-License-Identifier: Apache-2.0
// Seam: grub-fstest. The file systems that a boot loader reads (XFS, FAT, btrfs), looked at by
// GRUB's own readers in a process of their own: nothing is mounted.
#pragma once

#include "provision/images/file_tree.h"

namespace muster::provision {

/// `partition`: a file with one file system. `work`: where files that are read lie for a moment.
/// Links are followed by GRUB: a tree of this kind shows where they lead, not that they are links.
/// Errors: InvalidInput (GRUB does not know the file system, or grub-common is not installed)
Result<std::unique_ptr<FileTree>> openGrubTree(const std::filesystem::path& partition,
                                               const std::filesystem::path& work);

}  // namespace muster::provision
