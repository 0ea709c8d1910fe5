// SPDX-License-Identifier: Apache-2.0
// Whether a machine can start what an import took from a disk: its format, its file systems, and of
// a whole disk its boot loader and its system (docs/adr/0229). Foreign file systems are never given
// to this machine's kernel: e2fsck, libext2fs and GRUB's own readers look at them.
#pragma once

#include "base/architecture.h"
#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace muster::provision {

/// `qemu-img check`: what a qcow2, VMDK or VDI says of its own clusters; and that it holds them.
/// Errors: Corrupt (errors or leaked clusters, cut short), Unavailable (qemu-img is not here)
Result<void> checkDiskFormat(const std::filesystem::path& file, const char* format);

/// `e2fsck -f -n` of an ext file system that begins at `offset_bytes` of a file.
/// Errors: Corrupt (its first complaint is quoted)
Result<void> checkExtFileSystem(const std::filesystem::path& file, std::uint64_t offset_bytes);

/// The root file system that muster's own boot loader will start: e2fsck, then kernel, initrd, init
/// and C library, and whether GRUB reads it. `work` is a folder for what is looked at.
/// Errors: Corrupt, InvalidInput (what is missing)
Result<void> checkRootFileSystem(const std::filesystem::path& image,
                                 const std::filesystem::path& work, Architecture architecture);

/// A whole disk: each partition lies in it, a boot loader for UEFI or BIOS is there, one partition
/// holds a system with its kernel (or another one that kernel).
/// `work`: a folder for parts of the disk, which are removed again.
/// Errors: Corrupt, InvalidInput (what is missing)
Result<void> checkWholeDisk(const std::filesystem::path& raw, const std::filesystem::path& work,
                            Architecture architecture);

/// A program that UEFI firmware of this architecture starts, complete.
/// Errors: InvalidInput (another machine, no such program), Corrupt (cut short)
/// Source: PE Format, Microsoft; UEFI 2.10, 3.5.1.1 (removable media)
Result<void> checkEfiProgram(std::string_view content, Architecture architecture);

}  // namespace muster::provision
