// SPDX-License-Identifier: Apache-2.0
// Presets: what it takes to have a known piece of the system's configuration, as rows. A driver
// that names a preset gets the row's values for the keys that it does not write itself; lists and
// maps are put together.
#pragma once

#include "inventory/model/fwd.h"

#include <span>
#include <string_view>

namespace muster::inventory {

struct Preset {
  std::string_view name, doc;
  std::vector<std::string> packages = {}, modules = {}, kernel_args = {}, services = {};
  std::map<std::string, std::map<std::string, std::string>> module_options = {};
  std::map<std::string, std::string> sysctl = {}, verify = {};
};

std::span<const Preset> presets();
const Preset* findPreset(std::string_view name);
/// Fills the driver from its preset's row. What the driver says wins.
void applyPreset(Driver& driver, const Preset& preset);

/// The probes that follow from what a driver declares: its modules, parameters, sysctls, kernel
/// arguments, services, kernel pin.
std::map<std::string, std::string> impliedProbes(const Driver& driver);

/// "570.124.06-1~deb12" → "570.124.06": without epoch and packaging revision.
std::string upstreamVersion(std::string_view package_version);

}  // namespace muster::inventory
