// iPXE scripts. Pure.
#pragma once

#include "inventory/cluster.h"

#include <string>

namespace muster::provision {

struct RamBoot {
  std::string http_url;   ///< "http://10.20.0.1:8080"
  std::string agent_url;  ///< "https://10.20.0.1:8443"
  std::string ca_fingerprint;
  std::string token;  ///< one-time
};

/// Leads into the RAM OS.
/// Errors: InvalidInput when something cannot stand on a kernel command line
Result<std::string> ramBootScript(const inventory::Node& node, const inventory::Profile& profile, const RamBoot& boot);

/// Goes on with the disk, and changes nothing.
std::string diskBootScript(std::string_view reason);

}  // namespace muster::provision
