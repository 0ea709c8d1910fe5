// SPDX-License-Identifier: Apache-2.0
// What the unit that runs dnsmasq lets it read (docs/adr/0360). It believes nothing of who asks: a
// configuration is taken only if every line of it is one of those that a boot server needs. No
// script, no other file, no DNS, no place to write but its own folder.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string_view>

namespace muster::provision {

struct DnsmasqFolders {
  std::filesystem::path own;     ///< configuration and leases
  std::filesystem::path shared;  ///< nodes and boot files lie below it
};

/// dnsmasq reads a line of 1,024 bytes or more as two, and the second is an option of its own.
inline constexpr std::size_t kMaxDnsmasqLineBytes = 1000;

/// `name`: dnsmasq.conf, dnsmasq.leases. Errors: InvalidInput, with the line
Result<void> checkDnsmasqFile(std::string_view name, std::string_view text,
                              const DnsmasqFolders& folders);

}  // namespace muster::provision
