// SPDX-License-Identifier: Apache-2.0
// iPXE scripts. Pure.
#pragma once

#include "provision/netboot/kernel_line.h"

#include <string_view>

namespace muster::provision {

/// Leads into the RAM OS.
/// Errors: InvalidInput when something cannot stand on a kernel command line
Result<std::string> ramBootScript(const inventory::Node& node, const inventory::Profile& profile,
                                  const RamBoot& boot);

/// Goes on with the disk, and changes nothing.
std::string diskBootScript(std::string_view reason);

}  // namespace muster::provision
