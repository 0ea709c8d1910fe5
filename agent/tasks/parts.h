// SPDX-License-Identifier: Apache-2.0
// Parts: what can be pulled out of a machine, each with its place, model, size and firmware. From
// SMBIOS and sysfs.
#pragma once

#include "wire/messages.h"

#include <filesystem>
#include <string_view>

namespace muster::agent {

/// The populated memory slots of an SMBIOS table (/sys/firmware/dmi/tables/DMI; DSP0134, type 17).
/// A broken table ends where it breaks.
std::vector<wire::Part> dimmsOf(std::string_view smbios);
/// The product's name in a PCI device's vital product data; empty when there is none.
std::string vpdName(std::string_view vpd);
/// The board's serial number there (keyword SN of the read-only fields; PCI 3.0, appendix I); empty
/// when there is none.
std::string vpdSerial(std::string_view vpd);

/// All parts of the machine whose / is `root`. NICs' firmware is asked of the kernel only for the
/// real /.
std::vector<wire::Part> partsOf(const std::filesystem::path& root);

struct NicDriver {
  std::string driver, version, firmware;
};
/// What a NIC's driver says of itself (ETHTOOL_GDRVINFO), on the machine that this runs on. Errors:
/// NotFound
Result<NicDriver> nicDriver(const std::string& interface);

}  // namespace muster::agent
