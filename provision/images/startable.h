// SPDX-License-Identifier: Apache-2.0
// Whether a machine can start a root file system, from what is in it: kernel, initrd, init, C
// library, each for this architecture and whole. Nothing is run. What is missing is told before an
// image is kept, not on a wiped node (docs/adr/0229).
#pragma once

#include "base/architecture.h"
#include "base/elf.h"
#include "provision/images/file_tree.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::provision {

/// The oldest C library of a system that muster's programs are carried to (docs/adr/0228).
inline constexpr GlibcVersion kOldestGlibc{2, 28};

/// What stands against a system's start, one line each, in the order in which a machine would meet
/// it. Empty: nothing.
using Obstacles = std::vector<std::string>;

/// init (systemd) and every library that it needs, their architecture, the C library's release,
/// where it enforces SELinux, what muster labels files with, and folders that only root may enter.
Obstacles userspaceObstacles(const FileTree& tree, Architecture architecture);

/// /vmlinuz and /initrd.img, which muster's boot loader starts.
Obstacles kernelObstacles(const FileTree& tree, Architecture architecture);

/// Of a system that is started in memory, beside the userspace.
Obstacles inMemoryObstacles(const FileTree& tree);

/// A kernel and an initrd somewhere in a boot folder ("boot", or "" of a file system of its own),
/// as a boot loader that is not muster's would start them.
Obstacles bootFolderObstacles(const FileTree& tree, const std::string& folder,
                              Architecture architecture);

/// Errors: InvalidInput (all obstacles, in one text), where there are any
Result<void> refuseObstacles(const Obstacles& obstacles);

/// Of arm64 plain or compressed with gzip, as Ubuntu has it: muster's boot loader unpacks that.
/// Errors: InvalidInput (for another architecture, no kernel), Corrupt (cut short)
/// Source: Documentation/arch/x86/boot.rst of the kernel, "The Real-Mode Kernel Header";
/// Documentation/arch/arm64/booting.rst, "Call the kernel image"
Result<void> checkKernelImage(std::string_view content, Architecture architecture);

/// Archives one after the other, the last one compressed or not, to their end.
/// Errors: InvalidInput (nothing that a kernel unpacks), Corrupt (cut short)
/// Source: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel
Result<void> checkInitrd(std::string_view content);

}  // namespace muster::provision
