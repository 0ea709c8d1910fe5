// SPDX-License-Identifier: Apache-2.0
// Imported images: what somebody else made becomes a root file system. Every format ends in the
// same ext4 file, or of a live image squashfs.
//
//   raw, qcow2, vmdk, vdi, raw.{gz,xz,zst,bz2}   its largest ext4 partition, or the bare ext4 that
//   it is tar, tar.{gz,xz,zst,bz2}                      a root file system, unpacked as it is OCI
//   archive                                   its layers, one over the other squashfs unpacked
//
// Trees must bring a kernel: an image that no machine can start is refused here, not on a wiped
// node.
#pragma once

#include "base/architecture.h"
#include "inventory/model/images.h"
#include "provision/images/system_builder.h"

namespace muster::provision {

enum class ImportFormat { Raw, Qcow2, Vmdk, Vdi, CompressedRaw, Tar, OciArchive, Squashfs };

/// By content, never by name. Errors: NotFound, Corrupt (a compressed file that cannot be read)
Result<ImportFormat> importFormatOf(const std::filesystem::path& file);

/// Errors: NotFound (file), Corrupt (SHA-256, cut short), InvalidInput (no ext4 inside, no kernel,
/// a qcow2 that needs another file),
///         Denied (a tree without being root), Unavailable (disk full)
/// `kind`: whether the root file system of a disk is taken, or the disk as it is.
/// `architecture`: the processor of the nodes that it is for.
Result<void> importImage(const inventory::ImageImport& import, inventory::ImageKind kind,
                         const std::filesystem::path& work, const std::filesystem::path& image_file,
                         const Say& say, Architecture architecture = Architecture::Amd64);

/// Lays the layers of an OCI image archive over each other. Each blob must have the SHA-256 that it
/// is named by. Of an index of platforms the manifest for this architecture is taken. Errors:
/// InvalidInput (there is none; those that are there are named)
Result<void> extractOci(const std::filesystem::path& archive, const std::filesystem::path& work,
                        const std::filesystem::path& root, Architecture architecture);

/// Makes /vmlinuz and /initrd.img, which muster's boot loader starts, from what is in /boot.
/// Errors: InvalidInput (there is none)
Result<void> linkKernel(const std::filesystem::path& root);

}  // namespace muster::provision
