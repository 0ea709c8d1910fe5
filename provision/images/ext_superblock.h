// SPDX-License-Identifier: Apache-2.0
// What the superblock of an ext file system says of it, read without a library: how large it is,
// how it was left, and whether nodes can mount it.
// Source: Documentation/filesystems/ext4/super.rst of the kernel
#pragma once

#include "base/result.h"

#include <cstdint>

namespace muster::provision {

/// Its size in bytes, of one that begins at `offset_bytes`; 0: none. 32 bits of blocks are enough
/// to tell that it was cut short.
std::uint64_t extBytes(int fd, std::uint64_t offset_bytes);

/// A root file system is grown on every node, and that is no place to find out that somebody must
/// look at it first. Errors: InvalidInput (mounted, faulty), Corrupt (no whole superblock)
Result<void> checkExtIsClean(int fd, std::uint64_t offset_bytes);

/// Whether the kernel of a node, and of the RAM OS that installs it, can mount it: blocks no larger
/// than a page of memory, its journal in itself. Errors: InvalidInput
Result<void> checkExtMounts(int fd, std::uint64_t offset_bytes);

}  // namespace muster::provision
