// SPDX-License-Identifier: Apache-2.0
// Live images: a root file system that runs in memory, as a squashfs under an overlay.
//
// Nothing beside the squashfs is kept of a build: kernel and modules are taken out of it again, so
// that what a node starts and what it runs cannot be of two builds, and an exported image is whole.
// The machine starts the image's own kernel with the RAM OS's initrd and these modules, so any
// distribution's tree will do. docs/adr/0030
#pragma once

#include "provision/images/system_builder.h"

namespace muster::provision {

inline constexpr const char* kLiveKernel = "vmlinuz";
inline constexpr const char* kLiveModules = "modules.img";

/// A squashfs file with the content of a folder; equal content is an equal file. `since`: as
/// makeExt4 Errors: InvalidInput (no kernel in it), Internal
Result<void> makeSquashfs(const std::filesystem::path& folder,
                          const std::filesystem::path& image_file, std::int64_t since);

/// The newest kernel of a tree that has its modules: what a live image is started with. Errors:
/// InvalidInput (there is none)
Result<std::filesystem::path> liveKernelOf(const std::filesystem::path& tree);

/// Where kernel and modules of a kept image are; the name follows from the recipe, so another
/// recipe takes them out anew.
std::filesystem::path liveBootOf(const std::filesystem::path& entry);

/// Writes `out`/vmlinuz and `out`/modules.img (an initrd with the modules that servers need to
/// start) of the newest kernel in a squashfs. `work` is an empty folder that the caller removes.
/// Errors: InvalidInput (no kernel, or none with modules), Corrupt (no squashfs), Internal (a tool
/// failed)
Result<void> makeLiveBoot(const std::filesystem::path& squashfs, const std::filesystem::path& work,
                          const std::filesystem::path& out);

}  // namespace muster::provision
