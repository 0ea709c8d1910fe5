// SPDX-License-Identifier: Apache-2.0
// GRUB's configurations, for machines whose firmware checks signatures. Pure.
#pragma once

#include "provision/netboot/kernel_line.h"

namespace muster::provision {

inline constexpr const char* kRamOsFolder =
    "ramos";  ///< below the TFTP root: Debian's signed GRUB knows no HTTP

/// Shim and GRUB instead of iPXE: where firmware checks signatures, and on arm64, for which Debian
/// has no iPXE.
bool bootsBySignedLoaders(const inventory::Profile& profile);

/// Kernel and modules of a live image, below the TFTP root.
inline std::string liveFolder(const std::string& digest) { return "images/" + digest; }

/// Leads into the RAM OS; GRUB starts only a kernel with a signature that shim knows.
/// Errors: InvalidInput when something cannot stand on a kernel command line
Result<std::string> ramGrubScript(const inventory::Node& node, const inventory::Profile& profile,
                                  const RamBoot& boot);

/// For a machine that lost its own configuration while it was loading GRUB: it starts anew, and
/// then finds nothing to boot here.
std::string lostGrubScript();

}  // namespace muster::provision
