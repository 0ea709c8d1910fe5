// SPDX-License-Identifier: Apache-2.0
// The kernel command line of the RAM OS: the same for iPXE and for GRUB. Pure.
//
// A live image starts with its own kernel: the RAM OS comes up on that, fetches the image into
// memory and gives way to it.
#pragma once

#include "base/result.h"
#include "inventory/model/fwd.h"

#include <string>
#include <vector>

namespace muster::provision {

struct RamBoot {
  std::string http_url;   ///< "http://10.20.0.1:8080": who has kernel and initrds
  std::string agent_url;  ///< "https://10.20.0.1:8443"
  std::string ca_fingerprint;
  std::string enrollment;  ///< id of this arming; public, like all that is in boot files
  std::string live =
      {};  ///< digest of the live image whose kernel is started; empty: the RAM OS's own
};

/// Errors: InvalidInput when something cannot stand in a boot script, or on a kernel command line
Result<std::vector<std::string>> kernelWords(const inventory::Node& node,
                                             const inventory::Profile& profile,
                                             const RamBoot& boot);

}  // namespace muster::provision
