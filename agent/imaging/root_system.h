// SPDX-License-Identifier: Apache-2.0
// What turns a written image into a system that starts from a disk of several parts (root_plan.h).
#pragma once

#include "agent/imaging/disks.h"
#include "agent/imaging/root_plan.h"

#include <functional>

namespace muster::agent {

/// Layout of a plan whose steps are done.
Layout layoutOf(const RootPlan& plan);

/// Puts what is in the root's /boot into the file system of /boot, which is mounted there
/// afterwards; GRUB finds the kernel there by the names vmlinuz and initrd.img, which the system
/// keeps up to date. Errors: InvalidInput (no kernel), Internal
Result<void> moveBoot(const std::filesystem::path& root, const std::filesystem::path& boot_mount);

/// One command, run in the installed system: "update-initramfs -u -k all".
using InSystem = std::function<Result<void>(const std::filesystem::path& root,
                                            const std::vector<std::string>& command)>;

/// Tells the system how its root is made, seals or lays down the key, and has it make its initrd
/// anew. Errors: InvalidInput (a package is missing in the image, named), Unavailable (the TPM),
/// Internal
Result<void> configureRoot(const std::filesystem::path& root, const RootPlan& plan,
                           const std::string& key, const InSystem& run);

/// In the installed system, with /dev, /proc, /sys and /run of this one.
Result<void> runInSystem(const std::filesystem::path& root,
                         const std::vector<std::string>& command);

}  // namespace muster::agent
