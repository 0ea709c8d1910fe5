// Imported images: a disk or file system image that somebody else made becomes a root file system.
#pragma once

#include "provision/image/system_builder.h"

namespace muster::provision {

/// Reads raw, qcow2, vmdk or vdi (by qemu-img). A disk image gives its largest ext4 partition; a bare ext4 is taken as it is.
/// Errors: NotFound (file), Corrupt (SHA-256), InvalidInput (no ext4 inside)
Result<void> importImage(const inventory::ImageImport& import, const std::filesystem::path& work, const std::filesystem::path& image_file,
                         const Say& say);

}  // namespace muster::provision
