// SPDX-License-Identifier: Apache-2.0
// The files of a driver's settings, rendered whole. Pure: the same declaration is the same files,
// so that a digest tells drift.
#pragma once

#include "inventory/model/fwd.h"
#include "wire/task_params.h"

#include <map>
#include <string>

namespace muster::provision {

/// Path below / → content. Only for what the driver declares: modprobe.d, sysctl.d, kernel
/// arguments, apt pins.
std::map<std::string, std::string> osFiles(const inventory::Driver& driver);

/// apt's source for an archive, with the key's place; deb822.
std::string aptSource(const std::string& driver, const inventory::PackageArchive& archive);
/// dnf's.
std::string dnfSource(const std::string& driver, const inventory::PackageArchive& archive);

/// All that the agent's task of installing the driver is told. HTTPS_URL, and the root that vouches
/// for it: where its repository is. A key that cannot be read is left out, and the agent refuses
/// the archive.
wire::DriverParams driverParams(const inventory::Driver& driver, const std::string& https_url,
                                const std::string& ca_pem);

/// First 12 hex digits of the SHA-256 over the files' paths and contents;
/// agent/tasks/os_settings.cc computes the same.
std::string settingsDigest(const std::map<std::string, std::string>& files);

}  // namespace muster::provision
